package sandbox

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// disk is a ledger file that can fail. It keeps what a crash would leave.
type disk struct {
	mu                    sync.Mutex
	written, synced       string
	syncs                 int
	failWrite, failSync   error
	failTruncate          error
	writing, letWriteOnce chan struct{}
}

func (d *disk) Write(p []byte) (int, error) {
	if d.writing != nil {
		d.writing <- struct{}{}
		<-d.letWriteOnce
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failWrite != nil {
		d.written += string(p[:len(p)/2])
		return len(p) / 2, d.failWrite
	}
	d.written += string(p)
	return len(p), nil
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failSync != nil {
		return d.failSync
	}
	d.synced = d.written
	d.syncs++
	return nil
}

func (d *disk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failTruncate != nil {
		return d.failTruncate
	}
	d.written = d.written[:size]
	return nil
}

func (d *disk) Close() error { return nil }

func onDisk(t *testing.T, d *disk, options Options) *Server {
	t.Helper()
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	s.ledger.journal.file = d
	t.Cleanup(func() { _ = s.Close() }) // may fail with the disk
	return s
}

// answering calls check before the first byte of an answer.
type answering struct {
	*httptest.ResponseRecorder
	check func()
}

func (a answering) WriteHeader(status int) {
	a.check()
	a.ResponseRecorder.WriteHeader(status)
}

func charge(s *Server, key string, check func()) (status int) {
	r := httptest.NewRequest("POST", "/v1/charges", strings.NewReader(`{"amount":1,"reference":"r"}`))
	r.Header.Set("Idempotency-Key", key)
	w := answering{httptest.NewRecorder(), check}
	s.ServeHTTP(w, r)
	return w.Code
}

func TestEffectIsOnDiskBeforeTheAnswer(t *testing.T) {
	d := &disk{}
	s := onDisk(t, d, Options{})
	answered := false
	charge(s, "k", func() {
		answered = true
		if !strings.Contains(d.synced, s.Effects()[0].ID) {
			t.Errorf("on disk when answering: %q", d.synced)
		}
	})
	if !answered {
		t.Error("no answer")
	}
}

func TestUnwritableLedgerAnswers500WithoutActing(t *testing.T) {
	failure := errors.New("no space left")
	for name, row := range map[string]struct {
		disk     *disk
		recovers bool
	}{
		"write fails":               {disk: &disk{failWrite: failure}, recovers: true},
		"sync fails":                {disk: &disk{failSync: failure}},
		"half a line cannot be cut": {disk: &disk{failWrite: failure, failTruncate: failure}},
	} {
		t.Run(name, func(t *testing.T) {
			d := row.disk
			s := onDisk(t, d, Options{})
			if got := charge(s, "k", func() {}); got != http.StatusInternalServerError {
				t.Errorf("got %d, want 500", got)
			}
			if len(s.Effects()) != 0 || len(s.Requests()) != 0 {
				t.Errorf("got %d effects, %d requests; want none", len(s.Effects()), len(s.Requests()))
			}
			d.failWrite, d.failSync, d.failTruncate = nil, nil, nil
			want := http.StatusInternalServerError
			if row.recovers {
				want = http.StatusCreated
			}
			if got := charge(s, "k", func() {}); got != want {
				t.Errorf("once the disk is well: got %d, want %d", got, want)
			}
			for line := range strings.Lines(d.synced) {
				if !strings.HasPrefix(line, `{"request"`) || !strings.HasSuffix(line, "}}\n") {
					t.Errorf("torn line on disk: %q", line)
				}
			}
		})
	}
}

func TestLateEffectThatCannotBeRecordedDoesNotHappen(t *testing.T) {
	d := &disk{}
	s := onDisk(t, d, Options{Delay: time.Hour})
	func() {
		defer func() { _ = recover() }() // the dropped connection
		r := httptest.NewRequest("POST", "/v1/messages?fault=late", strings.NewReader(`{}`))
		s.ServeHTTP(httptest.NewRecorder(), r)
	}()
	d.failWrite = errors.New("no space left")
	if err := s.FinishLate(); !errors.Is(err, d.failWrite) {
		t.Errorf("finish: got %v", err)
	}
	if err := s.Close(); !errors.Is(err, d.failWrite) {
		t.Errorf("close: got %v", err)
	}
	if n := len(s.Effects()); n != 0 {
		t.Errorf("effects: got %d, want 0", n)
	}
}

func TestTwoCallersCanFinishLateEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		s := onDisk(t, d, Options{Delay: time.Hour})
		func() {
			defer func() { _ = recover() }() // the dropped connection
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/messages?fault=late", strings.NewReader(`{}`)))
		}()
		d.writing, d.letWriteOnce = make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		finish := func() {
			if err := s.FinishLate(); err != nil {
				t.Error(err)
			}
			if n := len(s.Effects()); n != 1 {
				t.Errorf("effects: got %d, want 1", n)
			}
		}
		wg.Go(finish)
		<-d.writing // the first caller's effect is being written
		wg.Go(finish)
		synctest.Wait() // both wait for it
		d.letWriteOnce <- struct{}{}
		wg.Wait()
	})
}

func TestConcurrentEntriesShareOneSync(t *testing.T) {
	d := &disk{writing: make(chan struct{}), letWriteOnce: make(chan struct{})}
	s := onDisk(t, d, Options{})
	var wg sync.WaitGroup
	wg.Go(func() { charge(s, "first", func() {}) })
	<-d.writing // the first holds the disk; the others queue
	for _, key := range []string{"a", "b", "c", "d"} {
		wg.Go(func() { charge(s, key, func() {}) })
	}
	for queued := 0; queued < 4; {
		s.ledger.journal.mu.Lock()
		queued = len(s.ledger.journal.queue)
		s.ledger.journal.mu.Unlock()
	}
	d.letWriteOnce <- struct{}{}
	<-d.writing
	d.letWriteOnce <- struct{}{}
	wg.Wait()
	d.writing = nil
	if d.syncs != 2 || len(s.Effects()) != 5 {
		t.Errorf("got %d syncs for %d effects, want 2 for 5", d.syncs, len(s.Effects()))
	}
}
