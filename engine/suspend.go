package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// How long a run that waits for an operation waits at most before it looks
// itself: whoever settles the operation wakes it.
const (
	lookAgain  = 30 * time.Second
	lookPerson = 5 * time.Minute // and then half of the time that it has waited
	lookRarely = 24 * time.Hour
)

// suspended is how an execution ends whose branches wait.
func (x *execution) suspended() semel.RunNext {
	switch {
	case x.cancel.Load():
		return x.cancelled()
	case x.pause.Load():
		n := x.next(semel.RunHeld, "paused")
		n.Stopped = true
		return n
	}
	n := x.next(semel.RunWaiting, "")
	own, stopped := map[string]bool{}, x.stopped()
	for _, w := range x.waits {
		own[w.Path] = true
	}
	persons, count := 0, 0
	for _, w := range n.Waits {
		if !own[w.Path] && stopped[branchOf(w.Path)] {
			continue
		}
		count++
		if w.Person || w.Kind == semel.WaitPerson {
			persons++
		}
		if !w.Until.IsZero() && (n.DueAt.IsZero() || w.Until.Before(n.DueAt)) {
			n.DueAt = w.Until
		}
		if n.Reason == "" || persons == 1 && (w.Person || w.Kind == semel.WaitPerson) {
			n.Reason = w.Reason // that of the first which needs a person
		}
	}
	if x.handOver || count == 0 {
		n.State, n.DueAt, n.Reason = semel.RunRunning, x.w.e.estimate(), ""
		return n
	}
	switch persons {
	case 0:
	case count:
		n.State = semel.RunHeld
	default:
		n.Reason = semel.PersonNeeded + n.Reason
	}
	if count > 1 {
		n.Reason += fmt.Sprintf(" (and %d more)", count-1)
	}
	return n
}

// cancelled is how an execution ends after a request to stop: what was sent is
// waited for, nothing new begins.
func (x *execution) cancelled() semel.RunNext {
	open := append(x.cancelChildren(), x.cancelOperations()...)
	if len(open) == 0 {
		n := x.next(semel.RunCancelled, "")
		n.Stopped = true
		return n
	}
	n := x.next(semel.RunWaiting, "it was asked to stop, and waits for what may have been sent: "+open[0].Reason)
	n.Waits = open
	for _, w := range open {
		if !w.Until.IsZero() && (n.DueAt.IsZero() || w.Until.Before(n.DueAt)) {
			n.DueAt = w.Until
		}
	}
	return n
}

// cancelOperations asks that nothing more is sent for what this run wanted, and
// returns the waits for what may have been sent on its behalf.
func (x *execution) cancelOperations() (open []semel.RunWait) {
	x.mu.Lock()
	records := maps.Clone(x.records)
	x.mu.Unlock()
	for path, r := range records {
		o := r.Effect
		if o == nil || o.Run == (semel.ID{}) || o.State != semel.Unknown && o.State != semel.InProgress {
			continue
		}
		if asked, err := x.cancelOperation(o); err != nil {
			x.w.e.log.Warn("cancel an operation", "operation", o.ID, "err", err)
		} else {
			o = &asked
		}
		if o.Run == x.run.ID && (o.State == semel.Unknown || o.State == semel.InProgress) {
			open = append(open, x.operationWait(path, o))
		}
	}
	slices.SortFunc(open, func(a, b semel.RunWait) int { return strings.Compare(a.Path, b.Path) })
	return open
}

// cancelOperation asks an operation to stop, unless the run that began it or
// another that waits for it goes on, and returns it as it is then.
func (x *execution) cancelOperation(o *semel.Operation) (semel.Operation, error) {
	if o.Cancel {
		return *o, nil
	}
	if o.Run != x.run.ID {
		if began, err := x.w.runs.LoadRun(x.ctx, o.Run); err != nil || !began.Cancel {
			return *o, err
		}
	}
	for other, err := range x.w.runs.ListRuns(x.ctx, semel.RunFilter{WaitsFor: o.ID}) {
		if err != nil {
			return *o, err
		}
		if other.ID != x.run.ID && !other.Cancel {
			return *o, nil
		}
	}
	asked, err := x.w.e.Cancel(x.ctx, o.ID, x.w.e.opt.Name, "run "+x.run.ID.String()+" was cancelled")
	if settled, ok := errors.AsType[*SettledError](err); ok {
		return settled.Operation, nil
	}
	return asked, err
}

// cancelChildren asks the runs that this one started to stop, too, and returns
// the waits for those that have not ended then.
func (x *execution) cancelChildren() (open []semel.RunWait) {
	asked := map[semel.ID]bool{}
	waits := slices.Clone(x.waits)
	for _, w := range x.before {
		waits = append(waits, w)
	}
	for _, w := range waits {
		if w.Kind != semel.WaitRun || w.Child != nil || asked[w.Target] {
			continue
		}
		asked[w.Target] = true
		again := lookAgain // its end wakes this run
		ended, err := x.cancelChild(w.Target)
		if err != nil {
			x.w.e.log.Warn("cancel a child run", "run", w.Target, "err", err)
			again = time.Second
		}
		if !ended {
			w.Until = x.w.e.estimate().Add(again)
			open = append(open, w)
		}
	}
	return open
}

// cancelChild asks a run to stop, if this one started it, and reports whether
// there is nothing to wait for.
func (x *execution) cancelChild(id semel.ID) (ended bool, err error) {
	child, err := x.w.runs.LoadRun(x.ctx, id)
	if err != nil || child.State.Ended() || child.Parent != x.run.ID {
		return err == nil, err
	}
	for other, err := range x.w.runs.ListRuns(x.ctx, semel.RunFilter{WaitsFor: id}) {
		if err != nil {
			return false, err
		}
		if other.ID != x.run.ID && !other.Cancel {
			return true, nil // it goes on for another run
		}
	}
	child, err = x.w.runs.ChangeRun(x.ctx, id, semel.RunCommand{Verb: semel.CancelRun, By: x.w.e.opt.Name, Reason: "run " + x.run.ID.String() + " was cancelled"})
	if state, ok := errors.AsType[*semel.RunStateError](err); ok {
		child, err = state.Run, nil
	}
	return err == nil && child.State.Ended(), err
}

// operationWait waits for an operation to be settled.
func (x *execution) operationWait(path string, o *semel.Operation) semel.RunWait {
	now := x.w.e.estimate()
	w := semel.RunWait{
		Path: path, Kind: semel.WaitOperation, Target: o.ID, Version: o.Version, Since: now,
		Until: now.Add(lookAgain), Reason: "step " + path + ": " + o.StateAt(now).Words(),
	}
	if was, ok := x.before[path]; ok && was.Kind == semel.WaitOperation && was.Target == o.ID {
		w.Since = was.Since
	}
	move := semel.Decide(o, o.Contract, now)
	if move.Kind == semel.MovePerson {
		w.Person, w.Until = true, now.Add(min(max(lookPerson, now.Sub(w.Since)/2), lookRarely))
	}
	if o.State == semel.InProgress {
		w.Until = now.Add(250 * time.Millisecond) // its outcome wakes nobody, to be quick
	}
	if move.Reason != "" {
		w.Reason += "; " + move.Reason
	}
	return w
}

// finish makes durable how the execution ended.
func (x *execution) finish(main *branch, n semel.RunNext) {
	n.Reason = plain(n.Reason)
	for i := range n.Waits {
		n.Waits[i].Reason = plain(n.Waits[i].Reason)
	}
	pause := 5 * time.Millisecond
	until := time.Now().Add(x.w.e.opt.Patience)
	for {
		at, err := main.end(&n)
		conflict, isConflict := errors.AsType[*semel.RunConflictError](err)
		switch {
		case err == nil:
			x.ended(&n, at)
			x.dueNow = n.State == semel.RunRunning || !n.DueAt.IsZero() && !n.DueAt.After(x.w.e.estimate())
			return
		case isConflict:
			n = x.conflicting(n, conflict)
			continue
		case errors.Is(err, semel.ErrStale) && n.Stopped:
			// Nobody asks any more: the request to pause was taken back.
			n = semel.RunNext{State: semel.RunRunning, DueAt: x.w.e.estimate(), Waits: n.Waits, Done: n.Done, Total: n.Total}
			continue
		case errors.Is(err, semel.ErrStale), errors.Is(err, semel.ErrNotFound):
			x.lose()
			return
		case x.aborted.Load() && n.State.Ended(): // it does not end over an outcome that is lost
			n = semel.RunNext{State: semel.RunRunning, DueAt: x.w.e.estimate(), Done: n.Done, Total: n.Total}
			continue
		case time.Now().After(until):
			x.w.e.log.Error("the end of an execution could not be recorded; the run goes on when its lease ends", "run", x.run.ID, "err", err)
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Second)
	}
}

// ended takes note of how the run ended, for whoever waits for it here.
func (x *execution) ended(n *semel.RunNext, at time.Time) {
	if !n.State.Ended() || at.IsZero() {
		return
	}
	r := x.run
	r.State, r.Reason, r.Result, r.Done, r.Total = n.State, n.Reason, n.Result, n.Done, n.Total
	r.LeaseUntil, r.DueAt, r.UpdatedAt, r.EndedAt, r.Crashes = time.Time{}, time.Time{}, at, at, 0
	x.arrival.run = &r
}

// conflicting is n where a run that a step starts has the key of another one:
// that step needs a person, and the other waits stay.
func (x *execution) conflicting(n semel.RunNext, c *semel.RunConflictError) semel.RunNext {
	found, persons := false, 0
	n.Waits = slices.Clone(n.Waits)
	for i, w := range n.Waits {
		if w.Child != nil && w.Child.Workflow == c.Run.Workflow && w.Child.Key == c.Run.Key && len(c.Run.DiffInput(w.Child.Input)) > 0 {
			n.Waits[i] = semel.RunWait{Path: w.Path, Kind: semel.WaitPerson, Person: true, Since: w.Since, Reason: "step " + w.Path + ": " + c.Error()}
			found = true
		}
		if n.Waits[i].Person {
			persons++
		}
	}
	switch {
	case !found:
		return semel.RunNext{State: semel.RunHeld, Reason: c.Error(), Done: n.Done, Total: n.Total}
	case n.State == semel.RunWaiting && persons == len(n.Waits):
		n.State, n.Reason = semel.RunHeld, c.Error()
	}
	return n
}

// afterTrouble is how long a run rests that the store could not take further.
const afterTrouble = time.Second

// handBack gives the run to the next worker after trouble with the store, for
// as long as that takes, so that it does not count as a crash.
func (x *execution) handBack(main *branch) {
	x.mu.Lock()
	n := semel.RunNext{State: semel.RunRunning, DueAt: x.w.e.estimate().Add(afterTrouble), Waits: x.allWaits(), Done: x.run.Done, Total: x.run.Total}
	x.mu.Unlock()
	x.finish(main, n)
}
