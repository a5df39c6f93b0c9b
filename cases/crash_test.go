package cases

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
)

// Where a child process stops and waits to be killed.
const (
	afterClaim   = "after the claim, before the send"
	afterSend    = "after the send, before the answer"
	beforeRecord = "after the answer, before its record"
	nowhere      = "nowhere"
)

// child runs one operation in a process of its own.
type child struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func (r *rig) child(database, key, path, point string) *child {
	r.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SEMEL_CASE_CHILD="+strings.Join([]string{database, r.dest.URL, key, path, point}, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	r.dest.ready()
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &child{cmd, bufio.NewScanner(out)}
}

// kill is SIGKILL, and waits until the process is gone.
func (c *child) kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// runChild is the other side of rig.child.
func runChild(args string) error {
	parts := strings.Split(args, "\n")
	database, url, key, path, point := parts[0], parts[1], parts[2], parts[3], parts[4]
	ctx := context.Background()
	var store semel.Store
	var err error
	if file, ok := strings.CutPrefix(database, "sqlite:"); ok {
		store, err = sqlite.Open(ctx, file, sqlite.Options{Create: true})
	} else {
		store, err = postgres.Open(ctx, database, postgres.Options{Create: true})
	}
	if err != nil {
		return err
	}
	d, err := httpdest.New(httpdest.Options{})
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, stopping{store, point}, engine.Options{Lease: time.Second})
	if err != nil {
		return err
	}
	req, _, err := httpdest.NewRequest(http.MethodPost, url+path, nil, []byte(`{}`))
	if err != nil {
		return err
	}
	out, err := e.Do(ctx, semel.Call{
		Scope: "acct-1", Key: semel.Key(key), Request: req, Source: "child",
		Contract: semel.Contract{Protection: semel.Unprotected, Timeout: 20 * time.Second}, Destination: stopDest{d, point},
	})
	if err != nil {
		return err
	}
	fmt.Println(out.Status)
	return nil
}

type stopDest struct {
	*httpdest.Destination
	point string
}

func (s stopDest) Send(ctx context.Context, send *semel.Send) semel.Event {
	if s.point == afterClaim {
		stop()
	}
	return s.Destination.Send(ctx, send)
}

type stopping struct {
	semel.Store
	point string
}

func (s stopping) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	if s.point == beforeRecord && c.Event.Kind == semel.EvConfirmed {
		stop()
	}
	return s.Store.Commit(ctx, c)
}

func stop() {
	fmt.Println("stopped")
	time.Sleep(time.Hour) // until it is killed
}

// eachDatabase runs a case with a database that child processes can open.
func eachDatabase(t *testing.T, run func(r *rig, database string)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "semel.db")
		run(&rig{T: t, dest: newDest(t), open: func() shifted {
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
			return opened(t, s, err)
		}}, "sqlite:"+path)
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Shared(t).Database(t)
		run(&rig{T: t, dest: newDest(t), open: func() shifted {
			s, err := postgres.Open(t.Context(), url, postgres.Options{Create: true})
			return opened(t, s, err)
		}}, url)
	})
}

// C18: a worker killed at any point leaves an unknown within its lease, never
// a row in progress for ever, and nothing is sent again.
func TestC18KilledWorker(t *testing.T) {
	eachDatabase(t, func(r *rig, database string) {
		arrived := make(chan struct{}, 10)
		held := make(chan struct{})
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			act(a.path)
			arrived <- struct{}{}
			if a.path == "/p2" {
				<-held
			}
			answer(w, http.StatusCreated, `{"id":"ch"}`)
		}
		defer close(held)
		n := r.node(engine.Options{})
		for point, path := range map[string]string{afterClaim: "/p1", afterSend: "/p2", beforeRecord: "/p3"} {
			c := r.child(database, "key"+path, path, point)
			if point == afterSend {
				<-arrived
			} else if !c.lines.Scan() {
				r.Fatalf("%s: the child ended early", point)
			}
			c.kill()
		}
		time.Sleep(1200 * time.Millisecond) // longer than the child's lease
		for range 2 {
			for _, path := range []string{"/p1", "/p2", "/p3"} {
				n.want(n.submit(request{key: "key" + path, path: path, body: `{}`}), semel.StatusUnknown)
			}
			n = r.node(engine.Options{})
		}
		if got := []int{r.dest.count("/p1"), r.dest.count("/p2"), r.dest.count("/p3")}; got[0] != 0 || got[1] != 1 || got[2] != 1 {
			n.Errorf("effects %v, want 0, 1, 1", got)
		}
		n.wantEffects(2, 2)
		n.wantHonest()
		var input *semel.InputError
		for _, lease := range []time.Duration{-1, -time.Second} {
			if _, err := engine.New(n.Context(), n.store, engine.Options{Lease: lease}); !errors.As(err, &input) {
				n.Errorf("a lease of %v: %v, want an input error", lease, err)
			}
		}
	})
}

// lateReaper is a store whose lapse of a lease waits, as a paused process does.
type lateReaper struct {
	shifted
	decided, resume chan struct{}
	once            sync.Once
}

func (s *lateReaper) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	if c.Event.Kind == semel.EvLapsed {
		s.once.Do(func() {
			close(s.decided)
			<-s.resume
		})
	}
	return s.shifted.Commit(ctx, c)
}

// C19: a rescuer that decided before the worker finished does not undo it.
func TestC19RescuerRacesCompletion(t *testing.T) {
	eachStore(t, func(r *rig) {
		arrived, held := make(chan struct{}), make(chan struct{})
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			act(a.path)
			close(arrived)
			<-held
			answer(w, http.StatusCreated, `{"id":"ch"}`)
		}
		worker := r.node(engine.Options{Lease: time.Hour})
		done := make(chan semel.Outcome, 1)
		go func() { done <- worker.submit(request{key: "j-1", body: `{}`}) }()
		<-arrived
		reaper := &lateReaper{shifted: r.open(), decided: make(chan struct{}), resume: make(chan struct{})}
		reaper.Shift(2 * time.Hour)
		rescuer := r.nodeOn(reaper, engine.Options{})
		rescued := make(chan error, 1)
		go func() { _, err := rescuer.engine.Recover(rescuer.Context()); rescued <- err }()
		<-reaper.decided
		close(held)
		worker.want(<-done, semel.StatusCompleted)
		close(reaper.resume)
		if err := <-rescued; err != nil {
			r.Fatal(err)
		}
		out := worker.submit(request{key: "j-1", body: `{}`})
		worker.want(out, semel.StatusCompleted)
		events, err := worker.store.Events(r.Context(), out.Operation.ID)
		if err != nil {
			r.Fatal(err)
		}
		for _, ev := range events {
			if ev.Kind == semel.EvLapsed {
				r.Error("the stale rescue is on record")
			}
		}
		worker.wantEffects(1, 1)
	})
}

// C19: two rescuers over many expired operations count each lost attempt once.
func TestC19TwoRescuers(t *testing.T) {
	eachStore(t, func(r *rig) {
		arrived, held := make(chan struct{}), make(chan struct{})
		r.dest.script = func(a arrival, act func(string), _ http.ResponseWriter) {
			act(a.path)
			arrived <- struct{}{}
			<-held
			drop()
		}
		worker := r.node(engine.Options{Lease: time.Hour})
		const many = 40
		for i := range many {
			ctx, cancel := context.WithCancel(r.Context())
			go func() {
				<-arrived
				cancel()
			}()
			if _, err := worker.engine.Do(ctx, worker.call(request{key: fmt.Sprint("x-", i), body: `{}`, contract: semel.Contract{Timeout: time.Minute}})); err != nil {
				r.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 2 {
			n := r.node(engine.Options{})
			n.store.Shift(2 * time.Hour)
			wg.Go(func() {
				for range 3 {
					if _, err := n.engine.Recover(n.Context()); err != nil {
						r.Error(err)
					}
				}
			})
		}
		wg.Wait()
		seen := 0
		for o, err := range worker.store.List(r.Context(), semel.Filter{State: semel.Unknown}) {
			if err != nil {
				r.Fatal(err)
			}
			seen++
			events, err := worker.store.Events(r.Context(), o.ID)
			if err != nil {
				r.Fatal(err)
			}
			lapsed := 0
			for _, ev := range events {
				if ev.Kind == semel.EvLapsed {
					lapsed++
				}
			}
			if lapsed != 1 || len(o.Attempts) != 1 {
				r.Errorf("operation %q: %d rescues, %d attempts; want one of each", o.Key, lapsed, len(o.Attempts))
			}
		}
		if seen != many {
			r.Errorf("%d unknown operations, want %d", seen, many)
		}
		close(held)
	})
}

// C20: a frozen worker whose lease ran out. Nobody sends again, and its late
// answer completes the operation; or, where a person decided meanwhile that it
// did not happen and it was done again, both effects are visible.
func TestC20FrozenWorker(t *testing.T) {
	for name, decided := range map[string]bool{"nobody decided": false, "a person decided": true} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(r *rig, database string) {
				arrived, held := make(chan struct{}, 2), make(chan struct{})
				r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
					act(a.path)
					arrived <- struct{}{}
					if a.nth == 1 {
						<-held
					}
					answer(w, http.StatusCreated, fmt.Sprintf(`{"id":"ch_%d"}`, a.nth))
				}
				c := r.child(database, "z-1", "/z", nowhere)
				<-arrived
				if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
					r.Fatal(err)
				}
				time.Sleep(1200 * time.Millisecond)
				n := r.node(engine.Options{})
				out := n.submit(request{key: "z-1", path: "/z", body: `{}`})
				n.want(out, semel.StatusUnknown)
				n.wantEffects(1, 1)
				if decided {
					_, err := n.engine.Settle(n.Context(), out.Operation.ID, engine.Settlement{By: "op", Reason: "not in the export", Force: true})
					if err != nil {
						r.Fatal(err)
					}
					n.want(n.submit(request{key: "z-1", path: "/z", body: `{}`}), semel.StatusCompleted)
				}
				close(held)
				if err := c.Process.Signal(syscall.SIGCONT); err != nil {
					r.Fatal(err)
				}
				c.lines.Scan()
				if err := c.Wait(); err != nil {
					r.Fatal(err)
				}
				out = n.submit(request{key: "z-1", path: "/z", body: `{}`})
				if !decided {
					n.want(out, semel.StatusCompleted)
					n.wantEffects(1, 1)
					return
				}
				n.want(out, semel.StatusIncident)
				if !strings.Contains(out.Operation.Incident, "duplicate effect") || !strings.Contains(out.Operation.Incident, "ch_1") ||
					out.Operation.Result.Reference != "ch_2" {
					n.Errorf("incident %q beside %q: want the duplicate named, both ids visible", out.Operation.Incident, out.Operation.Result.Reference)
				}
				n.wantEffects(2, 2)
			})
		})
	}
}
