package semel

import "time"

// StepKind names what a step does.
type StepKind string

// The kinds of step.
const (
	StepAction   StepKind = "action"   // performs an effect: an operation, or one that commutes
	StepValue    StepKind = "value"    // computes a value that is recorded
	StepSleep    StepKind = "sleep"    // waits for a time
	StepEvent    StepKind = "event"    // waits for an event
	StepApproval StepKind = "approval" // waits for a person's approval
	StepChild    StepKind = "run"      // starts a child run and waits for its end
	StepEach     StepKind = "each"     // a list of branches
	StepItem     StepKind = "item"     // one of these branches
)

// StepOutcome is how a recorded step ended.
type StepOutcome string

// The outcomes. An action's is that of its operation.
const (
	StepCompleted StepOutcome = "completed"
	StepFailed    StepOutcome = "failed"    // a known failure
	StepTimedOut  StepOutcome = "timed_out" // nothing came in time
	StepRejected  StepOutcome = "rejected"  // a person said no
	StepOpen      StepOutcome = "open"      // of a list whose items are not all done
)

// StepRecord is what a run remembers of a step.
type StepRecord struct {
	Path string
	Kind StepKind
	// What says what the step is about, for example the action's name. A run
	// whose code asks for something else at the same path is held.
	What string
	// Operation is the effect of an action, zero for a step without one. The
	// outcome and the answer are the operation's, nothing is copied.
	Operation ID
	Outcome   StepOutcome
	// Result is JSON, for a step without an operation.
	Result []byte
	// Failure says in words why it failed.
	Failure string
	// At is when the record was made, by the store's clock.
	At time.Time
	// Effect is the operation where it was loaded with the record.
	Effect *Operation
}

// Answer is what the destination said, for the record of an action; nil for
// nothing.
func (r *StepRecord) Answer() *Result {
	if r.Effect != nil {
		return r.Effect.Result
	}
	return &Result{MediaType: "application/json", Body: r.Result}
}

// Step is one request of workflow code to its Executor: DoStep, ValueStep,
// SleepStep, EventStep, ApprovalStep, ChildStep or EachStep.
type Step interface{ kind() StepKind }

// DoStep performs an effect.
type DoStep struct {
	Call Call
	// Keyless: the action has no natural key, the run's key and the path of the
	// step make one.
	Keyless bool
	Retry   Retry
	// Exempt: nobody is asked about this step, and an approval of another step
	// of the action does not concern it. Without it, an approval in the run
	// covers its request, or the step stops.
	Exempt bool
	// Read takes in the answer; nil needs none. The effect has happened, so one
	// that cannot be read is nothing that code may deal with: the run is held.
	Read func(*Result) error
}

// Retry is what to do about known failures, after which nothing happened. It
// never applies to an unknown outcome.
type Retry struct {
	// Attempts is the most attempts in all; 0 and 1 mean no second one.
	Attempts int
	// Backoff is the pause before the second attempt, doubled each time up to
	// MaxBackoff; 0 means DefaultBackoff.
	Backoff time.Duration
}

// Pause is the pause after the n-th attempt, n counting from 1.
func (r Retry) Pause(n int) time.Duration {
	c := Contract{Backoff: r.Backoff}
	return c.backoff(n)
}

// ValueStep computes a value that is recorded before anything that follows is
// sent.
type ValueStep struct {
	// Compute gets the store's time and 16 random bytes, and returns JSON.
	Compute func(now time.Time, random [16]byte) ([]byte, error)
}

// SleepStep waits until a time, or for a duration from now.
type SleepStep struct {
	For   time.Duration
	Until time.Time // if not zero
}

// EventStep waits for an event.
type EventStep struct {
	Name  string
	Match string
	// Timeout is how long to wait; 0 means for ever.
	Timeout time.Duration
}

// ApprovalStep waits until a person approves the exact request of Call.
type ApprovalStep struct {
	Call    Call
	Keyless bool
	Ask     Ask
}

// ChildStep starts a run and waits until it has ended.
type ChildStep struct{ Run NewRun }

// EachStep runs a list of branches.
type EachStep struct {
	// Keys names the branches, Items holds what each works on, as JSON. They
	// are recorded before the first branch begins, and the record is what the
	// branches get on every resume.
	Keys  []string
	Items [][]byte
	// AtOnce is how many branches run at a time; 0 means 1.
	AtOnce int
	// Body runs one branch.
	Body func(ctx Context, item []byte) error
}

func (*DoStep) kind() StepKind       { return StepAction }
func (*ValueStep) kind() StepKind    { return StepValue }
func (*SleepStep) kind() StepKind    { return StepSleep }
func (*EventStep) kind() StepKind    { return StepEvent }
func (*ApprovalStep) kind() StepKind { return StepApproval }
func (*ChildStep) kind() StepKind    { return StepChild }
func (*EachStep) kind() StepKind     { return StepEach }

// KindOf is the kind of a step.
func KindOf(s Step) StepKind { return s.kind() }
