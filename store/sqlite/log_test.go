package sqlite_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-dev/semel"
)

// TestLogDoesNotGrowForEver: SQLite writes its log back completely only when
// nobody reads. Reads that overlap without a pause do not keep it from that.
func TestLogDoesNotGrowForEver(t *testing.T) {
	if testing.Short() {
		t.Skip("280 MB are too much to write under the race detector; the run without -short executes it")
	}
	path := newPath(t)
	s := create(t, path)
	execRaw(t, raw(t, path), `
		with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000)
		insert into event (id, name, match, by, at, delivered)
		select i, 'paid', '', '', 1, 1
		from n`)
	var stop atomic.Bool
	var reads atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for !stop.Load() {
				for _, err := range s.Inbox(t.Context(), semel.EventFilter{ID: "none"}) { // it looks at all
					t.Error(err)
				}
				reads.Add(1)
			}
		})
	}
	body := make([]byte, 1<<20)
	most, half := int64(0), int64(0)
	for i := range 280 {
		o := newOperation(fmt.Sprint("large ", i))
		o.Request.Body = body
		if _, err := s.Commit(t.Context(), change(t, o, claimEvent())); err != nil {
			t.Fatal(err)
		}
		log, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, log.Size())
		if i == 140 {
			half = reads.Load()
		}
	}
	if most > 192<<20 {
		t.Errorf("the log grew to %d MB", most>>20)
	}
	if reads.Load() == half {
		t.Error("nobody reads any more")
	}
	stop.Store(true)
	wg.Wait()
}
