package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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
	// Retried is when a person last asked to try again before it ended.
	Retried time.Time `json:"retried,omitzero"`
}

// mark is what the record of an item holds beside its outcome. A record that is
// replaced keeps its time, so that does not say what came first.
type mark struct {
	// Retried is when a person last asked to try again before it was made.
	Retried   time.Time `json:"retried,omitzero"`
	Exhausted bool      `json:"exhausted,omitzero"`
}

func markOf(rec *semel.StepRecord) (m mark) {
	_ = json.Unmarshal(rec.Result, &m) // none is zero
	return m
}

// marked is the record of an item.
func (x *execution) marked(path string, outcome semel.StepOutcome, what string) semel.StepRecord {
	data, _ := json.Marshal(mark{Retried: x.run.RetriedAt}) // always possible
	return semel.StepRecord{Path: path, Kind: semel.StepItem, What: what, Outcome: outcome, Result: data}
}

// retried reports whether a person asked to try again after an item's record
// was made.
func (x *execution) retried(rec *semel.StepRecord) bool {
	return x.run.RetriedAt.After(markOf(rec).Retried)
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
	again := recorded && rec.Outcome == semel.StepFailed && x.run.RetriedAt.After(l.Retried) && !x.later(b.path)
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
	l.Retried = x.run.RetriedAt
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
		if recorded && (rec.Outcome == semel.StepCompleted || rec.Outcome == semel.StepFailed && !x.retried(&rec)) {
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
			x.goOnSoon()
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
	returned, missed := end.reason == "" && !end.suspended, x.later(path)
	if returned && x.ctx.Err() != nil && (end.err != nil || missed) { // it may have stopped because the worker does
		x.goOnSoon()
		x.settle(b)
		return false
	}
	if returned && missed {
		reason := "changed code: the record of " + path + " has steps that the code no longer reaches"
		if end.err != nil {
			reason += "; it returned: " + end.err.Error()
		}
		end = ending{reason: reason}
	}
	if _, happened := errors.AsType[*semel.UnreadableError](end.err); happened {
		end = ending{reason: end.err.Error()}
	}
	if x.run.Crashes >= watchful && (end.suspended || end.reason != "") {
		b.keep(x.marked(path, semel.StepOpen, idle))
	}
	switch {
	case end.reason != "":
		x.wait(semel.RunWait{Path: path, Kind: semel.WaitPerson, Person: true, Since: x.w.e.estimate(), Reason: end.reason})
		x.settle(b)
		return false
	case end.suspended:
		x.settle(b)
		return false
	}
	rec := x.marked(path, semel.StepCompleted, "")
	if end.err != nil {
		rec.Outcome, rec.Failure = semel.StepFailed, end.err.Error()
		rec.Result, _ = json.Marshal(mark{Retried: x.run.RetriedAt, Exhausted: needsPerson(end.err)}) // always possible
	}
	b.keep(rec)
	return x.settle(b)
}

// settle makes durable what an item's branch kept. What could not be written is
// left to the run's own branch: a sleep that is over has no wait any more, and
// without its record it would begin anew.
func (x *execution) settle(b *branch) bool {
	err := b.settle()
	if err != nil {
		x.abort(err)
		x.main.giveBack(b.take())
	}
	return err == nil
}

// mark makes durable which item is under way. An item that was at two deaths of
// a worker needs a person: it is what kills them.
func (x *execution) mark(b *branch) bool {
	rec, ok := x.recorded(b.path)
	seen := ""
	if ok && underWay(&rec) && !x.retried(&rec) {
		seen = suspect
	}
	if seen == suspect && rec.What == suspect {
		x.wait(semel.RunWait{
			Path: b.path, Kind: semel.WaitPerson, Person: true, Since: x.w.e.estimate(),
			Reason: "the worker died while it executed " + b.path + ", more than once",
		})
		return false
	}
	b.keep(x.marked(b.path, semel.StepOpen, seen))
	if err := b.settle(); err != nil {
		x.abort(err)
		return false
	}
	return true
}

// suspects counts the items that were under way at two deaths of a worker, or
// are now for the second time. Each explains that many.
func (x *execution) suspects() (n int) {
	for _, r := range x.records {
		if r.Kind == semel.StepItem && r.Outcome == semel.StepOpen && r.What == suspect {
			n++
		}
	}
	return n
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
			out.Failed = append(out.Failed, semel.ItemFailure{Key: key, Reason: rec.Failure, Exhausted: markOf(&rec).Exhausted})
		}
	}
	if len(out.Failed) == 0 {
		return nil
	}
	return out
}
