package semel

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Runs keeps runs and what starts and wakes them. Both stores implement it
// beside Store, over the same database. It owns time as Store does. All methods
// may be called concurrently; errors are those of Store.
type Runs interface {
	// Start makes the run durable, or finds the one that has its workflow and
	// key: then existing is true and the run is returned as it is, whatever its
	// input. A claim makes it one that this worker holds from the beginning.
	Start(ctx context.Context, n NewRun, claim *RunClaim) (r Run, existing bool, err error)
	// Claim takes up to limit runs that are due, of the given workflows and
	// versions, high priority first, then the longest overdue. No other worker
	// holds them: they were due, or the lease of their worker has lapsed, which
	// counts as a crash.
	Claim(ctx context.Context, c RunClaim, workflows []WorkflowRef, limit int) ([]Run, error)
	// RenewRuns extends the leases of runs that a worker holds and returns them
	// as they are now; a run that it lost is left out. Beside an error it returns
	// those that it extended all the same, and nothing is known of the others.
	RenewRuns(ctx context.Context, held []RunFence, lease time.Duration) ([]Run, error)
	// CommitRun makes one step of an execution durable, in one transaction.
	CommitRun(ctx context.Context, c RunCommit) RunCommitted
	// TakeEvent gives the oldest event that c asks for, and that no run of the
	// workflow took before, to the step, whose record it writes. Where there is
	// none, and the store's time is at or after c.Until, the record says that
	// it timed out. ErrNotFound: neither. A step that has a record gets it.
	TakeEvent(ctx context.Context, c EventClaim) (StepRecord, error)

	// LoadRun reads one run; ErrNotFound. FindRun finds it by its key.
	LoadRun(ctx context.Context, id ID) (Run, error)
	FindRun(ctx context.Context, workflow string, key Key) (Run, error)
	// History reads Steps and Waits at once.
	History(ctx context.Context, run ID) (RunHistory, error)
	// Steps reads the records of a run, oldest first, with their operations:
	// those that its steps wrote, and the operations that they claimed.
	Steps(ctx context.Context, run ID) ([]StepRecord, error)
	// Waits reads what a run waits for.
	Waits(ctx context.Context, run ID) ([]RunWait, error)
	// Notes reads what people and workers did to a run, oldest first.
	Notes(ctx context.Context, run ID) ([]RunNote, error)
	// ListRuns lists runs, newest first.
	ListRuns(ctx context.Context, f RunFilter) iter.Seq2[Run, error]
	// ChangeRun does what a person asks, if the run is in a state that takes
	// it, and writes a note; *RunStateError otherwise.
	ChangeRun(ctx context.Context, id ID, c RunCommand) (Run, error)
	// NextDue is when the next run of the given workflows, or the next
	// schedule, is due; zero for none.
	NextDue(ctx context.Context, workflows []WorkflowRef) (time.Time, error)

	// Send makes an event durable, and wakes the runs that wait for it and
	// starts those that it triggers. existing: an event of this name has the
	// ID; nothing was changed.
	Send(ctx context.Context, e InboxEvent) (existing bool, err error)
	// Deliver wakes and starts runs for up to limit events that were sent
	// inside a caller's transaction, and returns how many it took.
	Deliver(ctx context.Context, limit int) (int, error)
	// Inbox lists events, newest first, with the runs that took them.
	Inbox(ctx context.Context, f EventFilter) iter.Seq2[InboxEntry, error]

	// Approval reads one; ErrNotFound. Approvals lists those in a state, newest
	// first; empty lists all.
	Approval(ctx context.Context, id ID) (Approval, error)
	Approvals(ctx context.Context, run ID, state ApprovalState) iter.Seq2[Approval, error]
	// Decide records a decision: one pending approval gets one, and one that
	// was given can be revoked. *ApprovalStateError otherwise. The run wakes.
	Decide(ctx context.Context, id ID, d Decision) (Approval, error)

	// Register makes definitions known: their text, schedules and events. Those
	// of an older version than is registered change nothing.
	Register(ctx context.Context, definitions []WorkflowDefinition) error
	// Registered reads the text of a definition by its digest; ErrNotFound.
	Registered(ctx context.Context, digest string) ([]byte, error)
	// Definitions lists the definitions of a workflow that were registered and
	// have a text, oldest version first.
	Definitions(ctx context.Context, workflow string) ([]RegisteredDefinition, error)
	// Workflows lists the newest version of each workflow that was registered,
	// by name.
	Workflows(ctx context.Context) ([]RegisteredWorkflow, error)
	// Schedules lists all schedules. Fire starts the runs of one and moves it
	// on, if it still stands at f.Seen and is not paused; ErrStale otherwise.
	Schedules(ctx context.Context) ([]ScheduleState, error)
	Fire(ctx context.Context, f Firing) error
	// PauseSchedule stops a schedule, or lets it go on: ticks of the time between
	// are left out, they were not missed. ErrNotFound.
	PauseSchedule(ctx context.Context, workflow, name string, paused bool, by string) error

	// Acquire takes a place under a limit that holds for all workers, and
	// Release gives it back before its lease ends.
	Acquire(ctx context.Context, l Limit, holder ID, lease time.Duration) (Place, error)
	Release(ctx context.Context, l Limit, holder ID) error
}

// Further answers of a store that keeps runs.
var (
	// ErrStopped: the run was asked to stop or to pause, so nothing new begins.
	ErrStopped = errors.New("the run was asked to stop")
	// ErrNotApproved: no approval covers the request at this time.
	ErrNotApproved = errors.New("no approval covers this request now")
)

// RunClaim says which worker holds a run, and for how long unless renewed.
type RunClaim struct {
	By    string
	Lease time.Duration
}

// RunFence names a run and the claim that may write to it.
type RunFence struct {
	Run     ID
	Attempt int
}

// RunCommit is what one execution of a run makes durable at a time. Its parts
// share a transaction, and each has an answer of its own: a claim that is
// refused takes no outcome with it.
type RunCommit struct {
	RunFence
	// Outcome is an event of the operation before. It needs no fence: evidence
	// is never dropped.
	Outcome *Change
	// Steps are written, or replaced, if the fence holds.
	Steps []StepRecord
	// Claim is made if the fence holds and nobody asked the run to stop.
	Claim *Change
	// Next ends this execution, if the fence holds.
	Next *RunNext
}

// RunCommitted holds the answers to a RunCommit.
type RunCommitted struct {
	Outcome    Operation
	OutcomeErr error
	Claim      Operation
	// ClaimErr may also be ErrStopped or ErrNotApproved.
	ClaimErr error
	// NextAt is when Next was written, by the store's clock; zero where the store
	// does not know at once.
	NextAt time.Time
	// RunErr is ErrStale where another worker claimed the run, or it has ended:
	// then Steps, Claim and Next were not written.
	RunErr error
}

// RunNext is how an execution ends: the run waits, is held, or has ended.
type RunNext struct {
	State  RunState
	Reason string
	// DueAt is when a worker looks again; zero for never. A wait that is over
	// before it is durable makes the run due at once.
	DueAt  time.Time
	Waits  []RunWait // replace the ones before
	Result []byte
	Done   int
	Total  int
	// Stopped marks an end that honours a request to stop: it is refused with
	// ErrStale unless somebody asked.
	Stopped bool
}

// RunWait is what a step of a run waits for.
type RunWait struct {
	Path  string
	Kind  WaitKind
	Until time.Time // when it is over by itself; zero for never
	// Event and Match are set for an event.
	Event string
	Match string
	// Target is an operation, an approval or a run.
	Target ID
	// Version is that of the operation when it was last read: a newer one ends
	// the wait.
	Version int
	// Approval is written with the wait for an approval.
	Approval *Approval
	// Child is started with the wait for a run.
	Child *NewRun
	// Person: only a person can end it.
	Person bool
	// Since is when the step began to wait.
	Since  time.Time
	Reason string // in words
}

// WaitKind names what a step waits for.
type WaitKind string

// The kinds of wait.
const (
	WaitTime      WaitKind = "time"
	WaitEvent     WaitKind = "event"
	WaitOperation WaitKind = "operation"
	WaitApproval  WaitKind = "approval"
	WaitRun       WaitKind = "run"
	WaitPerson    WaitKind = "person"
)

// RunHistory is what earlier executions of a run left behind.
type RunHistory struct {
	Steps []StepRecord
	Waits []RunWait
}

// EventClaim asks for an event on behalf of a step.
type EventClaim struct {
	RunFence
	Path     string
	Workflow string
	Name     string
	Match    string
	Until    time.Time // zero for no end
}

// RunFilter selects runs. Zero fields select everything.
type RunFilter struct {
	Workflow string
	State    RunState
	Key      Key
	Parent   ID
	// Event and Match select runs that wait for such an event now.
	Event string
	Match string
	// WaitsFor selects runs that wait for this run, approval or operation now.
	WaitsFor ID
	Since    time.Time // created at or after
	Limit    int
}

// RunNote is something that was done to a run.
type RunNote struct {
	At   time.Time
	Kind string // a RunVerb, or "held", "lapsed"
	By   string
	Text string
}

// RunVerb is what a person asks of a run.
type RunVerb string

// The verbs.
const (
	CancelRun RunVerb = "cancel"
	PauseRun  RunVerb = "pause"
	ResumeRun RunVerb = "resume"
	RetryRun  RunVerb = "retry"
)

// RunCommand is a person's request about a run.
type RunCommand struct {
	Verb   RunVerb
	By     string
	Reason string
}

// RunStateError says that a run's state does not take what was asked. Nothing
// was changed.
type RunStateError struct {
	Run  Run
	Verb RunVerb
}

func (e *RunStateError) Error() string {
	switch {
	case e.Run.State.Ended() && e.Verb == CancelRun:
		return "it is too late to cancel run " + e.Run.ID.String() + ": it is " + string(e.Run.State)
	case e.Verb == RetryRun && !e.Run.State.Ended():
		return "run " + e.Run.ID.String() + " is " + string(e.Run.State) + ": it goes on by itself"
	}
	return "run " + e.Run.ID.String() + " is " + string(e.Run.State) + ", so there is nothing to " + string(e.Verb)
}

// ApprovalStateError says that an approval does not take a decision. Nothing
// was changed.
type ApprovalStateError struct {
	Approval Approval
	Problem  string
}

func (e *ApprovalStateError) Error() string { return e.Problem }

// EventFilter selects events. Zero fields select everything.
type EventFilter struct {
	Name  string
	Match string
	ID    string
	Limit int
}

// InboxEntry is an event with what became of it.
type InboxEntry struct {
	InboxEvent
	Delivered bool
	TakenBy   []ID // runs that waited for it
	Started   []ID // runs that it started
}

// RegisteredWorkflow is what a store knows of a workflow that a worker has.
type RegisteredWorkflow struct {
	WorkflowRef
	Owner      string
	Definition string // digest; empty for Go
}

// RegisteredDefinition is a definition that runs may have begun with.
type RegisteredDefinition struct {
	WorkflowRef
	Digest string
	Text   []byte
}

// ScheduleState is where a schedule stands.
type ScheduleState struct {
	Schedule
	Workflow   string
	Version    int
	Definition string // digest
	Paused     bool
	PausedBy   string
	// Seen is the last tick that was handled, or when it was registered.
	Seen time.Time
	// NextAt is when to look again.
	NextAt time.Time
}

// Firing starts the runs of a schedule's ticks and moves it on.
type Firing struct {
	Workflow string
	Name     string
	Seen     time.Time // as the caller read it
	Runs     []NewRun
	Last     time.Time // the new Seen
	NextAt   time.Time
	Skipped  int // ticks that were left out, for a note in the log
}

// Limit bounds how often, and how often at once, a destination is asked.
type Limit struct {
	Name string
	// AtOnce is the most places at a time; 0 for no bound.
	AtOnce int
	// Every is the least time between two places, Burst how many may come at
	// once after a rest; 0 for no bound.
	Every time.Duration
	Burst int
}

// Zero reports whether l bounds nothing.
func (l Limit) Zero() bool { return l.AtOnce == 0 && l.Every == 0 }

// Place is the answer to Acquire: taken, or when to ask again.
type Place struct {
	Taken bool
	At    time.Time
}
