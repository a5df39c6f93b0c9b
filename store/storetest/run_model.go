package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semel-dev/semel"
)

// testRunHistories: random histories of runs through two handles end as a
// model says that keeps what the design says and nothing else: who may claim,
// whose word counts, and what a request to stop does at each moment.
func testRunHistories(t *testing.T, h Harness) {
	stores := []RunStore{openRuns(t, h), openRuns(t, h)}
	o := claim(t, stores[0], contract())
	rapid.Check(t, func(r *rapid.T) {
		m := &runModel{T: r, h: h, stores: stores, ref: semel.WorkflowRef{Name: "history-" + string(newKey()), Version: 1}, operation: load(r, stores[0], o.ID)}
		r.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"start":  m.start,
			"claim":  m.claim,
			"end":    m.end,
			"change": m.change,
			"renew":  m.renew,
			"settle": m.settle,
			"shift": func(r *rapid.T) {
				h.Shift(time.Duration(rapid.IntRange(1, 60).Draw(r, "seconds")) * time.Second)
			},
		})
	})
}

type runModel struct {
	*rapid.T
	h         Harness
	stores    []RunStore
	ref       semel.WorkflowRef
	operation semel.Operation
	runs      []*modelRun
}

// modelRun is what the model knows of a run.
type modelRun struct {
	semel.Run
	due       time.Time // zero for never; an instant before the store's is as good
	waits     bool      // for the operation
	cancelled int       // the attempt in which it was asked
}

func (m *runModel) store(r *rapid.T) RunStore { return rapid.SampledFrom(m.stores).Draw(r, "handle") }

func (m *runModel) pick(r *rapid.T) *modelRun {
	if len(m.runs) == 0 {
		r.Skip("no run")
	}
	return rapid.SampledFrom(m.runs).Draw(r, "run")
}

func (m *runModel) start(r *rapid.T) {
	if len(m.runs) > 5 {
		r.Skip("enough")
	}
	s := m.store(r)
	n := newRun()
	n.Workflow = m.ref.Name
	run := start(r, s, n)
	m.runs = append(m.runs, &modelRun{Run: run, due: run.CreatedAt})
}

// claimable: a worker that asks at this time gets it.
func (w *modelRun) claimable(at time.Time) bool {
	return !w.State.Ended() && !w.Paused && !w.due.IsZero() && !w.due.After(at)
}

func (m *runModel) claim(r *rapid.T) {
	s := m.store(r)
	before := now(r, s)
	got, err := s.Claim(m.Context(), semel.RunClaim{By: "w", Lease: 30 * time.Second}, []semel.WorkflowRef{m.ref}, 100)
	if err != nil {
		r.Fatalf("claim: %v", err)
	}
	after := now(r, s)
	for _, w := range m.runs {
		i := slices.IndexFunc(got, func(g semel.Run) bool { return g.ID == w.ID })
		if i < 0 {
			if w.claimable(before) {
				r.Fatalf("run %s, which is due, was not claimed: %+v", w.ID, w)
			}
			continue
		}
		if !w.claimable(after) {
			r.Fatalf("run %s was claimed: %+v", w.ID, w)
		}
		if !w.LeaseUntil.IsZero() {
			w.Crashes++
		}
		w.State, w.Attempt, w.LeaseUntil, w.due = semel.RunRunning, w.Attempt+1, got[i].LeaseUntil, got[i].LeaseUntil
	}
}

// holds: the attempt may write.
func (w *modelRun) holds(attempt int) bool {
	return w.Attempt == attempt && w.State == semel.RunRunning && !w.LeaseUntil.IsZero()
}

// end ends an execution, of the current attempt or of an older one.
func (m *runModel) end(r *rapid.T) {
	s, w := m.store(r), m.pick(r)
	f := semel.RunFence{Run: w.ID, Attempt: w.Attempt - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(r, "older")}
	n := semel.RunNext{State: rapid.SampledFrom([]semel.RunState{semel.RunWaiting, semel.RunWaiting, semel.RunHeld, semel.RunFailed, semel.RunCompleted, semel.RunCancelled}).Draw(r, "state")}
	n.Stopped = (n.State == semel.RunCancelled || n.State == semel.RunHeld) && rapid.Bool().Draw(r, "stopped")
	at := now(r, s)
	wait := semel.RunWait{Path: "w", Kind: semel.WaitOperation, Target: m.operation.ID, Version: m.operation.Version}
	stale := false
	if !n.State.Ended() && rapid.Bool().Draw(r, "waits") {
		if stale = rapid.Bool().Draw(r, "stale"); stale {
			wait.Version--
		}
		n.Waits = []semel.RunWait{wait}
	}
	if !n.State.Ended() && rapid.Bool().Draw(r, "later") {
		n.DueAt = at.Add(time.Duration(rapid.IntRange(-5, 90).Draw(r, "in")) * time.Second)
	}
	if w.Attempt == f.Attempt && w.LeaseUntil.IsZero() && (w.State == n.State || w.Paused && !n.State.Ended()) {
		r.Skip("it may be taken for the same end, repeated")
	}
	out := s.CommitRun(m.Context(), semel.RunCommit{RunFence: f, Next: &n})
	asked := n.State == semel.RunCancelled && w.Cancel || n.State == semel.RunHeld && w.Paused
	if !w.holds(f.Attempt) || n.Stopped && !asked {
		wantErr(r, "an end that does not count", out.RunErr, semel.ErrStale)
		return
	}
	if out.RunErr != nil {
		r.Fatalf("end %s of attempt %d: %v, the run is %+v", n.State, f.Attempt, out.RunErr, w)
	}
	w.State, w.LeaseUntil, w.Crashes, w.due, w.waits = n.State, time.Time{}, 0, n.DueAt, len(n.Waits) > 0
	if n.State.Ended() {
		w.Paused, w.due = false, time.Time{}
		return
	}
	if w.Paused || w.Cancel && w.cancelled == w.Attempt || stale {
		w.due = at
	}
	if w.Paused {
		w.State = semel.RunHeld
	}
}

// change asks something of a run.
func (m *runModel) change(r *rapid.T) {
	s, w := m.store(r), m.pick(r)
	verb := rapid.SampledFrom([]semel.RunVerb{semel.CancelRun, semel.PauseRun, semel.ResumeRun, semel.RetryRun}).Draw(r, "verb")
	at := now(r, s)
	lapsed := !w.LeaseUntil.IsZero() && !w.LeaseUntil.After(at)
	if verb == semel.PauseRun && !w.LeaseUntil.IsZero() && w.LeaseUntil.Sub(at) < time.Second {
		r.Skip("whether its lease has lapsed is a matter of the moment")
	}
	_, err := s.ChangeRun(m.Context(), w.ID, semel.RunCommand{Verb: verb, By: "anna"})
	takes := map[semel.RunVerb]bool{
		semel.CancelRun: !w.State.Ended(),
		semel.PauseRun:  !w.State.Ended() && !w.Cancel,
		semel.ResumeRun: w.Paused,
		semel.RetryRun:  w.State == semel.RunFailed || w.State == semel.RunHeld && !w.Paused,
	}[verb]
	if _, refused := errors.AsType[*semel.RunStateError](err); refused == takes || !refused && err != nil {
		r.Fatalf("%s a run %+v: error %v", verb, w, err)
	}
	if !takes {
		return
	}
	switch verb {
	case semel.CancelRun:
		w.cancel(at)
	case semel.PauseRun:
		if w.LeaseUntil.IsZero() || lapsed {
			w.State = semel.RunHeld
		}
		w.Paused = true
	case semel.ResumeRun:
		w.Paused, w.State = false, semel.RunRunning
		if w.LeaseUntil.IsZero() || lapsed {
			w.due = at
		}
	case semel.RetryRun:
		w.State, w.due, w.Cancel, w.Crashes = semel.RunRunning, at, false, 0
	}
}

func (w *modelRun) cancel(at time.Time) {
	switch {
	case w.Cancel:
		return
	case (w.State == semel.RunWaiting || w.State == semel.RunHeld) && !w.waits:
		w.State, w.due, w.LeaseUntil, w.waits = semel.RunCancelled, time.Time{}, time.Time{}, false
	default:
		if w.State == semel.RunHeld {
			w.State = semel.RunRunning
		}
		if w.LeaseUntil.IsZero() {
			w.due = at
		}
	}
	w.Cancel, w.cancelled, w.Paused = true, w.Attempt, false
}

func (m *runModel) renew(r *rapid.T) {
	s, w := m.store(r), m.pick(r)
	before := now(r, s)
	got, err := s.RenewRuns(m.Context(), []semel.RunFence{{Run: w.ID, Attempt: w.Attempt}}, 20*time.Second)
	if err != nil {
		r.Fatalf("renew: %v", err)
	}
	after := now(r, s)
	held := func(at time.Time) bool { return w.holds(w.Attempt) && w.LeaseUntil.After(at) }
	switch {
	case len(got) == 1 && held(before):
		w.LeaseUntil, w.due = got[0].LeaseUntil, got[0].LeaseUntil
	case len(got) == 0 && !held(after):
	default:
		r.Fatalf("renewed %v of %+v", runIDs(got), w)
	}
}

// settle changes the operation that runs wait for.
func (m *runModel) settle(r *rapid.T) {
	s := m.store(r)
	at := now(r, s)
	m.operation = commit(r, s, m.operation, semel.Event{Kind: semel.EvJoined, By: "source"})
	for _, w := range m.runs {
		if w.waits && w.LeaseUntil.IsZero() && !w.State.Ended() && (w.due.IsZero() || w.due.After(at)) {
			w.due = at
		}
	}
}

// check reads everything back and compares.
func (m *runModel) check(r *rapid.T) {
	s := m.store(r)
	for _, w := range m.runs {
		got := loadRun(r, s, w.ID)
		type seen struct {
			State            semel.RunState
			Attempt, Crashes int
			Lease            time.Time
			Cancel, Paused   bool
			Due, Ended       bool
		}
		g := seen{got.State, got.Attempt, got.Crashes, got.LeaseUntil, got.Cancel, got.Paused, !got.DueAt.IsZero(), !got.EndedAt.IsZero()}
		diff(r, fmt.Sprintf("run %s", w.ID), g, seen{w.State, w.Attempt, w.Crashes, w.LeaseUntil, w.Cancel, w.Paused, !w.due.IsZero(), w.State.Ended()})
		if late := got.DueAt.Sub(w.due); late < -time.Millisecond || late > 10*time.Second {
			r.Fatalf("run %s is due at %v, want %v", w.ID, got.DueAt, w.due)
		}
	}
}
