package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/semel-dev/semel"
)

// After how many deaths of workers in a row each item of a list has a mark that
// says whether it is under way, and after how many they are executed one by one.
const (
	watchful = 1
	careful  = 2
)

// maxList is the most bytes of a list that a run records.
const maxList = 16 << 20

// list is the record of a list step.
type list struct {
	Keys  []string          `json:"keys"`
	Items []json.RawMessage `json:"items"`
}

// each runs a list of branches, as far as they can go.
func (b *branch) each(ctx semel.Context, path string, s *semel.EachStep, rec semel.StepRecord, recorded bool) (semel.StepRecord, error) {
	x := b.x
	var l list
	switch {
	case !recorded:
		if err := b.record(path, s, &l); err != nil {
			return rec, err
		}
	default:
		if err := json.Unmarshal(rec.Result, &l); err != nil {
			b.hold(path, "the list of step "+path+" cannot be read: "+err.Error())
		}
	}
	again := recorded && rec.Outcome == semel.StepFailed && x.run.RetriedAt.After(rec.At) && !x.later(b.path)
	if recorded && rec.Outcome != semel.StepOpen && !again {
		x.count(len(l.Keys), len(l.Keys))
		return rec, x.failures(path, &l)
	}
	ended := b.items(path, s, &l)
	x.count(ended, len(l.Keys))
	b.check()
	if ended < len(l.Keys) {
		b.exit()
	}
	err := x.failures(path, &l)
	data, _ := json.Marshal(&l) // it was made of JSON
	rec = semel.StepRecord{Path: path, Kind: semel.StepEach, Outcome: semel.StepCompleted, Result: data}
	if err != nil {
		rec.Outcome, rec.Failure = semel.StepFailed, err.Error()
	}
	return b.keep(rec), err
}

// record makes the list durable before its first item begins.
func (b *branch) record(path string, s *semel.EachStep, l *list) error {
	if err := s.Validate(path); err != nil {
		return err
	}
	l.Keys = s.Keys
	for _, item := range s.Items {
		l.Items = append(l.Items, item)
	}
	data, err := json.Marshal(l)
	if err == nil && len(data) > maxList {
		err = &semel.InputError{Field: "each " + path, Problem: fmt.Sprintf("has a list of %d bytes, the limit is %d", len(data), maxList), Hint: "let each item be a reference to the data"}
	}
	if err != nil {
		return err
	}
	b.keep(semel.StepRecord{Path: path, Kind: semel.StepEach, Outcome: semel.StepOpen, Result: data})
	if err := b.settle(); err != nil {
		b.x.abort(err)
		b.exit()
	}
	return nil
}

// items runs the items that can go on and returns how many have ended.
func (b *branch) items(path string, s *semel.EachStep, l *list) (ended int) {
	x := b.x
	waits := x.waitsOf(path)
	slots := make(chan struct{}, max(1, s.AtOnce))
	if x.run.Crashes >= careful {
		slots = make(chan struct{}, 1)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, key := range l.Keys {
		item := path + "[" + key + "]"
		rec, recorded := x.recorded(item)
		if recorded && (rec.Outcome == semel.StepCompleted || rec.Outcome == semel.StepFailed && !x.run.RetriedAt.After(rec.At)) {
			mu.Lock()
			ended++
			mu.Unlock()
			continue
		}
		if x.sleeping(waits[item]) {
			x.leave(waits[item])
			continue
		}
		slots <- struct{}{}
		if x.mustStop() {
			<-slots
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if x.item(item, s, l.Items[i]) {
				mu.Lock()
				defer mu.Unlock()
				ended++
			}
		})
	}
	wg.Wait()
	return ended
}

// mustStop reports whether nothing new may begin.
func (x *execution) mustStop() bool {
	return x.lost() || x.aborted.Load() || x.cancel.Load() || x.pause.Load() || x.w.draining.Load()
}

// item runs one branch of a list and reports whether it has ended.
func (x *execution) item(path string, s *semel.EachStep, data []byte) bool {
	b := x.branch(path)
	if x.run.Crashes >= watchful && !x.mark(b) {
		return false
	}
	end := b.call(func(ctx semel.Context) error { return s.Body(ctx, data) })
	if end.err == nil && end.reason == "" && !end.suspended && x.later(path) {
		end.reason = "changed code: the record of " + path + " has steps that the code no longer reaches"
	}
	if _, happened := errors.AsType[*semel.UnreadableError](end.err); happened {
		end = ending{reason: end.err.Error()}
	}
	if x.run.Crashes >= watchful && (end.suspended || end.reason != "") {
		b.keep(semel.StepRecord{Path: path, Kind: semel.StepItem, What: idle, Outcome: semel.StepOpen})
	}
	switch {
	case end.reason != "":
		x.wait(semel.RunWait{Path: path, Kind: semel.WaitPerson, Person: true, Since: x.w.e.estimate(), Reason: end.reason})
		_ = b.settle() // what is kept is recorded with the next commit, or found again
		return false
	case end.suspended, errors.Is(end.err, context.Canceled) && x.ctx.Err() != nil:
		if err := b.settle(); err != nil {
			x.abort(err)
		}
		return false
	}
	rec := semel.StepRecord{Path: path, Kind: semel.StepItem, Outcome: semel.StepCompleted}
	if end.err != nil {
		rec.Outcome, rec.Failure = semel.StepFailed, end.err.Error()
		rec.Result, _ = json.Marshal(needsPerson(end.err)) // a bool
	}
	b.keep(rec)
	if err := b.settle(); err != nil {
		x.abort(err)
		return false
	}
	return true
}

// mark makes durable which item is under way. An item that was at two deaths of
// a worker needs a person: it is what kills them.
func (x *execution) mark(b *branch) bool {
	rec, ok := x.recorded(b.path)
	seen := ""
	if ok && underWay(&rec) && !x.run.RetriedAt.After(rec.At) {
		seen = suspect
	}
	if seen == suspect && rec.What == suspect {
		x.wait(semel.RunWait{
			Path: b.path, Kind: semel.WaitPerson, Person: true, Since: x.w.e.estimate(),
			Reason: "the worker died while it executed " + b.path + ", more than once",
		})
		return false
	}
	b.keep(semel.StepRecord{Path: b.path, Kind: semel.StepItem, What: seen, Outcome: semel.StepOpen})
	if err := b.settle(); err != nil {
		x.abort(err)
		return false
	}
	return true
}

// blamed reports whether an item is known to have been under way when a worker
// died.
func (x *execution) blamed() bool {
	for _, r := range x.records {
		if r.Kind == semel.StepItem && underWay(&r) {
			return true
		}
	}
	return false
}

// What the mark of an item says: idle that it waits, so that it is not to blame
// for a death, and suspect that it was under way at one before.
const (
	idle    = "waits"
	suspect = "suspect"
)

func underWay(mark *semel.StepRecord) bool {
	return mark.Outcome == semel.StepOpen && mark.What != idle
}

// waitsOf are the waits of earlier executions inside a list, by item.
func (x *execution) waitsOf(path string) map[string][]semel.RunWait {
	x.mu.Lock()
	defer x.mu.Unlock()
	waits := map[string][]semel.RunWait{}
	for p, w := range x.before {
		rest, inside := strings.CutPrefix(p, path+"[")
		if key, _, ok := strings.Cut(rest, "]"); inside && ok {
			item := path + "[" + key + "]"
			waits[item] = append(waits[item], w)
		}
	}
	return waits
}

// sleeping reports whether none of an item's waits can be over: there is
// nothing to execute.
func (x *execution) sleeping(waits []semel.RunWait) bool {
	now := x.w.e.estimate()
	for _, w := range waits {
		switch w.Kind {
		case semel.WaitTime:
			if !w.Until.After(now) {
				return false
			}
		case semel.WaitPerson:
			if x.run.RetriedAt.After(w.Since) {
				return false
			}
		case semel.WaitOperation:
			rec, ok := x.recorded(w.Path)
			if !ok || rec.Effect == nil || rec.Effect.Version > w.Version || !w.Until.After(now) {
				return false
			}
		case semel.WaitEvent, semel.WaitApproval, semel.WaitRun:
			return false
		}
	}
	return len(waits) > 0
}

// leave takes note that nothing was executed to which these waits belong.
func (x *execution) leave(waits []semel.RunWait) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range waits {
		x.asleep[w.Path] = true
	}
}

// count adds a list to the progress of the run.
func (x *execution) count(done, total int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done += done
	x.total += total
}

// failures are the items of a list that failed, nil for none.
func (x *execution) failures(path string, l *list) error {
	out := &semel.ItemsError{Path: path, Total: len(l.Keys)}
	for _, key := range l.Keys {
		rec, ok := x.recorded(path + "[" + key + "]")
		if ok && rec.Outcome == semel.StepFailed {
			out.Failed = append(out.Failed, semel.ItemFailure{Key: key, Reason: rec.Failure, Exhausted: string(rec.Result) == "true"})
		}
	}
	if len(out.Failed) == 0 {
		return nil
	}
	return out
}
