package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/semel-dev/semel"
)

// naiveExecution is one claim of a run in the hands of a naive worker: the
// function is called from its beginning, and its steps return what is recorded.
type naiveExecution struct {
	n       *naive
	ctx     context.Context
	p       *process
	r       *naiveRun // what is on record
	run     semel.Run // as it was claimed
	attempt int
	result  []byte
	over    bool // nothing more begins
}

var _ semel.Executor = (*naiveExecution)(nil)

// execute goes on with the run as far as it can.
func (x *naiveExecution) execute() error {
	def, err := x.n.definition(x.r)
	if err != nil {
		return err
	}
	run, done, returned := x.p.behind(def).Run, make(chan error, 1), false
	go func() {
		var err error
		defer func() {
			if r := recover(); r != nil {
				err, returned = fmt.Errorf("the workflow's code panicked: %v", r), true
			}
			done <- err
		}()
		err = run(semel.NewContext(x.ctx, x, ""))
		returned = true
	}()
	err = <-done
	if !returned || x.over {
		return nil
	}
	n := semel.RunNext{State: semel.RunCompleted, Result: x.result}
	if err != nil {
		n = semel.RunNext{State: semel.RunFailed, Reason: err.Error()}
	}
	_ = x.write("that the run is "+string(n.State), call{}, func() { x.n.end(x.p, x.r, n) })
	return nil
}

// write writes to the record of the run, if it is still this worker's. It
// reports whether the worker may go on.
func (x *naiveExecution) write(what string, c call, work func()) bool {
	mine := false
	alive := x.p.write(what, c, func() {
		if mine = x.r.Attempt == x.attempt && !x.r.State.Ended(); !mine {
			x.n.t.tell("%s has lost the run to another worker, and stops", x.p.name)
			return
		}
		x.r.LeaseUntil = x.n.now().Add(lease)
		work()
	})
	return alive && mine
}

// must writes, or ends the goroutine.
func (x *naiveExecution) must(what string, c call, work func()) {
	if !x.write(what, c, work) {
		x.exit()
	}
}

// exit ends the workflow function for now.
func (x *naiveExecution) exit() {
	x.over = true
	runtime.Goexit()
}

// suspend leaves the run until a time. It goes with the write before.
func (x *naiveExecution) suspend(until time.Time) {
	x.r.DueAt, x.r.LeaseUntil = until, time.Time{}
}

// Run is the run that is executed.
func (x *naiveExecution) Run() *semel.Run { return &x.run }

// Return sets the result of the run.
func (x *naiveExecution) Return(value any) (err error) {
	x.result, err = json.Marshal(value)
	return err
}

// Step performs one step, unless it is on record.
func (x *naiveExecution) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	if x.over || x.p.dead.Load() {
		x.exit()
	}
	if was, ok := x.r.steps[path]; ok && was.Outcome != semel.StepOpen {
		if was.Outcome == semel.StepFailed {
			return was.StepRecord, &semel.FailedError{Path: path, Reason: was.Failure}
		}
		return was.StepRecord, nil
	}
	switch s := s.(type) {
	case *semel.DoStep:
		return x.do(path, s)
	case *semel.ValueStep:
		data, err := s.Compute(x.n.now(), [16]byte{}) // the ports gave it random bytes
		if err != nil {
			return semel.StepRecord{}, err
		}
		return x.keep(semel.StepRecord{Path: path, Kind: semel.StepValue, Outcome: semel.StepCompleted, Result: data}), nil
	case *semel.SleepStep:
		return x.sleep(path, s), nil
	case *semel.EventStep:
		return x.event(path, s)
	case *semel.ApprovalStep:
		x.n.t.tell("a person approves %s", x.place(path))
		return x.keep(semel.StepRecord{Path: path, Kind: semel.StepApproval, Outcome: semel.StepCompleted}), nil
	case *semel.ChildStep:
		return x.child(path, s)
	case *semel.EachStep:
		return x.each(ctx, path, s)
	}
	return semel.StepRecord{}, fmt.Errorf("step %s is of a kind that nobody knows", path)
}

func (x *naiveExecution) place(path string) string { return x.n.t.placeOf(&x.run, path) }

// keep records a step that is over.
func (x *naiveExecution) keep(rec semel.StepRecord) semel.StepRecord {
	x.must("the record of "+x.place(rec.Path), call{}, func() { x.record(rec, intention{}) })
	return rec
}

func (x *naiveExecution) record(rec semel.StepRecord, of intention) {
	rec.At = x.n.now()
	x.r.steps[rec.Path] = naiveStep{rec, of}
	delete(x.r.tries, rec.Path)
}

// do performs an effect until it answers.
func (x *naiveExecution) do(path string, s *semel.DoStep) (semel.StepRecord, error) {
	c := &s.Call
	if s.Keyless {
		c.Key = semel.StepKey(&x.run, path)
	}
	if c.Scope == "" {
		c.Scope = semel.ActionScope("default", c.Request.Connection, c.Action)
	}
	o := semel.Operation{Identity: semel.Identity{Scope: c.Scope, Key: c.Key, Request: c.Request, Contract: c.Contract, Run: x.run.ID, Step: path}}
	if err := errors.Join(c.Scope.Validate(), c.Key.Validate(), c.Contract.Validate()); err != nil {
		return semel.StepRecord{}, &semel.FailedError{Path: path, Reason: err.Error()}
	}
	if c.Destination == nil {
		return semel.StepRecord{}, &semel.FailedError{Path: path, Reason: "the action has no destination"}
	}
	attempt := x.begin(&o)
	rec := semel.StepRecord{Path: path, Kind: semel.StepAction, What: c.Action, Outcome: semel.StepCompleted}
	ev := c.Destination.Send(x.ctx, x.send(&o, attempt))
	if x.p.dead.Load() {
		x.exit()
	}
	if ev.Kind == semel.EvConfirmed {
		rec.Effect = &semel.Operation{State: semel.Completed, Result: ev.Result}
		x.must("the record of "+x.place(path), call{contract: c.Contract}, func() {
			x.record(rec, of(&o))
			x.n.t.tell("%s records %s as done", x.p.name, x.place(path))
		})
		return rec, nil
	}
	again := false
	x.must("the failure of "+x.place(path), call{contract: c.Contract}, func() {
		again = x.failed(s, &o, &ev)
		if !again {
			rec.Outcome, rec.Failure = semel.StepFailed, ev.Reason
			x.record(rec, of(&o))
		}
	})
	if again {
		x.exit()
	}
	return rec, &semel.FailedError{Path: path, Reason: ev.Reason}
}

// begin takes note that a step begins, unless somebody cancelled the run.
func (x *naiveExecution) begin(o *semel.Operation) (attempt int) {
	t, stop := x.n.t, false
	x.must("the start of "+t.place(o), call{claims: true, contract: o.Contract}, func() {
		if stop = x.r.Cancel; stop {
			x.n.end(x.p, x.r, semel.RunNext{State: semel.RunCancelled})
			return
		}
		tries := x.r.tries[o.Step]
		tries.begun++
		attempt = tries.begun
		x.r.tries[o.Step] = tries
		x.n.asks[of(o)] = *o
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, ok := t.begun[of(o)]; !ok {
			t.begun[of(o)] = len(t.begun)
		}
	})
	if stop {
		x.exit()
	}
	if attempt > 1 {
		t.tell("%s has no record of %s, and does it again", x.p.name, t.place(o))
	}
	return attempt
}

// send is one attempt as a destination sees it, under a key of its own.
func (x *naiveExecution) send(o *semel.Operation, attempt int) *semel.Send {
	x.n.sent++
	now := x.n.now()
	o.State, o.Attempt, o.LeaseUntil = semel.InProgress, attempt, now.Add(lease)
	for i := range attempt {
		o.Attempts = append(o.Attempts, semel.Attempt{Number: i + 1, By: x.p.name, ClaimedAt: now, SendBy: now.Add(lease), Open: true})
	}
	place := x.n.t.place(o)
	return &semel.Send{
		Operation: o, Attempt: attempt, DestinationKey: fmt.Sprintf("%s-%d", x.run.ID, x.n.sent),
		Begin: func() error { return nil },
		Late:  func(semel.Event) { x.n.t.tell("%s has given up on %s, and does not listen", x.p.name, place) },
	}
}

// failed decides what follows an attempt without a confirmation: another, or
// the end. A refusal is repeated as often as the workflow wants, anything else
// counts as a failure that goes away.
func (x *naiveExecution) failed(s *semel.DoStep, o *semel.Operation, ev *semel.Event) (again bool) {
	tries := x.r.tries[o.Step]
	var pause time.Duration
	if ev.Kind == semel.EvRefused {
		tries.refused++
		again, pause = tries.refused < s.Retry.Attempts, s.Retry.Pause(tries.refused)
	} else {
		tries.lost++
		again, pause = tries.lost < o.Contract.Budget(), semel.Retry{Backoff: o.Contract.Backoff}.Pause(tries.lost)
	}
	text := "it is done again later"
	if !again {
		text = "the step is given up"
	}
	x.n.t.tell("%s counts %s as failed, %s: %s", x.p.name, x.n.t.place(o), text, ev.Reason)
	if again {
		x.r.tries[o.Step] = tries
		x.suspend(x.n.now().Add(pause))
	}
	return again
}

func (x *naiveExecution) sleep(path string, s *semel.SleepStep) semel.StepRecord {
	until := s.Until
	if until.IsZero() {
		until = x.n.now().Add(s.For)
	}
	x.wait(path, until)
	return x.keep(semel.StepRecord{Path: path, Kind: semel.StepSleep, Outcome: semel.StepCompleted})
}

// wait lets a time come, or the one that the step was begun with.
func (x *naiveExecution) wait(path string, until time.Time) {
	if begun, ok := x.r.timers[path]; ok {
		until = begun
	}
	if !until.After(x.n.now()) {
		return
	}
	x.must("the timer of "+x.place(path), call{}, func() {
		x.r.timers[path] = until
		x.suspend(until)
	})
	x.exit()
}

// event brings what the run waits for at once, or lets the wait end.
func (x *naiveExecution) event(path string, s *semel.EventStep) (semel.StepRecord, error) {
	rec := semel.StepRecord{Path: path, Kind: semel.StepEvent, Outcome: semel.StepCompleted}
	e := semel.InboxEvent{ID: "drill " + s.Name + " " + s.Match, Name: s.Name, Match: s.Match, Data: x.n.t.d.eventData(s.Name, path), At: x.n.now()}
	if e.Data == nil {
		if s.Timeout == 0 {
			x.must("that the run waits for event "+s.Name, call{}, func() {
				x.suspend(x.n.now())
				x.r.idle = true
			})
			x.exit()
		}
		x.wait(path, x.n.now().Add(s.Timeout))
		rec.Outcome = semel.StepTimedOut
		return x.keep(rec), nil
	}
	var err error
	if rec.Result, err = json.Marshal(&e); err != nil {
		return rec, err
	}
	x.n.t.tell("event %s comes", s.Name)
	return x.keep(rec), nil
}

// child starts a run and waits for its end. Its error is made anew each time.
func (x *naiveExecution) child(path string, s *semel.ChildStep) (semel.StepRecord, error) {
	child := x.n.start(x.p, &s.Run)
	if child == nil {
		x.exit()
	}
	if !child.State.Ended() {
		x.must("that the run waits for "+child.Workflow, call{}, func() {
			x.suspend(x.n.now())
			x.r.child = child
		})
		x.exit()
	}
	rec := semel.StepRecord{Path: path, Kind: semel.StepChild, Outcome: semel.StepCompleted, Result: child.Result}
	if child.State != semel.RunCompleted {
		return rec, &semel.ChildError{Path: path, Run: child.ID, State: child.State, Reason: child.Reason}
	}
	return x.keep(rec), nil
}

// each works on one item after the other. One that fails does not stop those
// after it.
func (x *naiveExecution) each(ctx semel.Context, path string, s *semel.EachStep) (semel.StepRecord, error) {
	rec := semel.StepRecord{Path: path, Kind: semel.StepEach, Outcome: semel.StepOpen}
	list := naiveList{s.Keys, s.Items}
	if was, ok := x.r.steps[path]; ok {
		if err := json.Unmarshal(was.Result, &list); err != nil {
			return rec, err
		}
	} else {
		var err error
		if rec.Result, err = json.Marshal(list); err != nil {
			return rec, err
		}
		x.keep(rec)
	}
	failed := &semel.ItemsError{Path: path, Total: len(list.Keys)}
	for i, key := range list.Keys {
		if err := s.Body(semel.NewContext(ctx, x, path+"["+key+"]"), list.Items[i]); err != nil {
			failed.Failed = append(failed.Failed, semel.ItemFailure{Key: key, Reason: err.Error()})
		}
	}
	rec.Outcome = semel.StepCompleted
	if len(failed.Failed) > 0 {
		return rec, failed // its items have records
	}
	return x.keep(rec), nil
}

// naiveList is the record of a list.
type naiveList struct {
	Keys  []string
	Items [][]byte
}
