package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// stranded is how long a function may go on after a wrong use of its Context:
// it may be waiting, for ever, for a goroutine that was ended.
const stranded = time.Second

// strand is a sequence of steps: the run's own, or those of an item of a list.
// It is the semel.Executor of that sequence's Context, and holds the code to
// what an engine holds it to.
type strand struct {
	r         *recorder
	path      string
	goroutine uint64 // that the steps must come from

	// Under the recorder's mutex.
	busy requested // the step under way
	over bool
}

var _ semel.Executor = (*strand)(nil)

func (r *recorder) strand(path string) *strand {
	return &strand{r: r, path: path, goroutine: goroutineID()}
}

// Run is the run that is executed.
func (s *strand) Run() *semel.Run { return s.r.Run() }

// Return takes the result of the run, and forgets it.
func (s *strand) Return(value any) error {
	_, err := json.Marshal(value)
	return err
}

// Step records a step.
func (s *strand) Step(ctx semel.Context, path string, step semel.Step) (semel.StepRecord, error) {
	r := s.r
	rec := semel.StepRecord{Path: path, Kind: semel.KindOf(step), Outcome: semel.StepCompleted, At: begun}
	if err := s.enter(path, step); err != nil {
		return rec, err
	}
	defer s.leave()
	switch step := step.(type) {
	case *semel.ValueStep:
		return s.value(rec, step)
	case *semel.EachStep:
		return rec, s.each(ctx, path, step)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive()
	return r.perform(path, step)
}

// errWrongContext is what a step brings that must not be asked for like this.
var errWrongContext = errors.New("wrong use of a Context")

// enter lets a step begin. One that comes from another goroutine fails: whoever
// waits for that goroutine shall go on. The goroutine of the strand ends.
func (s *strand) enter(path string, step semel.Step) error {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	foreign := s.goroutine != goroutineID()
	switch {
	case foreign:
		r.wrongly(path, "step "+plain(path)+" is asked for from a goroutine that the workflow started itself")
	case s.over:
		r.wrongly(path, "step "+plain(path)+" is asked for with the Context of "+plain(s.path)+", which is over")
	case s.busy.step == nil:
	case semel.KindOf(s.busy.step) == semel.StepEach:
		r.wrongly(path, "step "+plain(path)+" is asked for within "+plain(s.busy.path)+" with the Context from outside of it")
	default:
		r.wrongly(path, "step "+plain(path)+" is asked for while step "+plain(s.busy.path)+" is under way on the same Context")
	}
	if foreign {
		return errWrongContext
	}
	r.alive()
	r.begin(path, step)
	s.busy = requested{path, step}
	return nil
}

func (s *strand) leave() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.busy = requested{}
}

// alive ends the goroutine of a run that is of no use any more.
func (r *recorder) alive() {
	if r.over || r.misuse != "" {
		runtime.Goexit()
	}
}

// wrongly notes the first wrong use of a Context.
func (r *recorder) wrongly(path, problem string) {
	if r.misuse == "" {
		r.misuse, r.misused = problem, plain(path)
		close(r.wrong)
	}
}

// wrongContext is the finding of a wrong use in one of the dry runs.
func wrongContext(runs ...*recorder) (f Finding, found bool) {
	for _, r := range runs {
		r.mu.Lock()
		step, problem := r.misused, r.misuse
		r.mu.Unlock()
		if problem != "" {
			return Finding{
				Code: workflowfile.CodeWrongContext, Severity: workflowfile.SeverityError, Step: step, Message: problem + ": the run is held",
				Fix: "use Each or Parallel for parallel work, with the Context that they hand on, and call one step after the other",
			}, true
		}
	}
	return Finding{}, false
}

// value computes a value, outside of the lock: it is the workflow's code.
func (s *strand) value(rec semel.StepRecord, step *semel.ValueStep) (semel.StepRecord, error) {
	r := s.r
	known, ok, err := r.given(rec.Path)
	if err != nil || ok {
		rec.Result = known
		return rec, err
	}
	rec.Result, err = step.Compute(r.clock())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive()
	if err == nil && !r.varied {
		r.plan.values[rec.Path] = rec.Result
	}
	return rec, err
}

// given is the value or the failure that needs no code of the workflow.
func (r *recorder) given(path string) (result []byte, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive()
	result, ok = r.known(path)
	return result, ok, r.plan.failure(plain(path))
}

// each runs the branches one after the other. A run that goes on has the list
// that is on record.
func (s *strand) each(ctx semel.Context, path string, step *semel.EachStep) error {
	r := s.r
	list := r.list(path, step)
	failed := &semel.ItemsError{Path: path, Total: len(list.Keys)}
	for i, k := range list.Keys {
		branch := r.strand(path + "[" + k + "]")
		err := step.Body(semel.NewContext(ctx.Context, branch, branch.path), list.Items[i])
		r.mu.Lock()
		branch.over = true
		r.mu.Unlock()
		if _, unreadable := errors.AsType[*semel.UnreadableError](err); unreadable {
			return err
		}
		if err != nil {
			failed.Failed = append(failed.Failed, semel.ItemFailure{Key: k, Reason: err.Error()})
		}
	}
	if len(failed.Failed) > 0 {
		return failed
	}
	return nil
}

// list is the list that the branches are made from.
func (r *recorder) list(path string, step *semel.EachStep) *semel.EachStep {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive()
	if recorded := r.plan.lists[path]; recorded != nil && r.same() {
		return recorded
	}
	r.lists[path] = step
	return step
}

// goroutineID is the number that the runtime gives a goroutine. It is used to
// find mistakes, and decides nothing else.
func goroutineID() uint64 {
	var buf [32]byte
	var id uint64
	_, err := fmt.Sscanf(string(bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))), "%d", &id)
	if err != nil {
		return 0
	}
	return id
}
