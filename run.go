package semel

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// RunState is where a run stands.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"   // a worker executes it, or will as soon as one is free
	RunWaiting   RunState = "waiting"   // for a time, an event, an approval, another run, or the outcome of an operation
	RunHeld      RunState = "held"      // needs a person
	RunCompleted RunState = "completed" // the workflow returned
	RunFailed    RunState = "failed"    // the workflow returned a known failure
	RunCancelled RunState = "cancelled" // stopped at a person's request; what had happened stays
)

// Ended reports whether nothing happens to the run by itself any more.
func (s RunState) Ended() bool { return s == RunCompleted || s == RunFailed || s == RunCancelled }

// Priority orders runs that are due at the same time.
type Priority int

// The priorities.
const (
	Normal Priority = 0
	High   Priority = 1
	Low    Priority = -1
)

// Run is one execution of a workflow for one intention.
type Run struct {
	ID       ID
	Workflow string
	Version  int
	// Definition is the digest of the definition that it started with; empty
	// for a workflow written in Go, whose steps are compared one by one.
	Definition string
	// Key tells this run from every other of the workflow: starting twice under
	// one key is one run.
	Key         Key
	Input       []byte // JSON
	Fingerprint Fingerprint
	Trigger     Trigger
	Priority    Priority
	// Parent is the run that started it, and ParentStep the step there.
	Parent     ID
	ParentStep string

	State  RunState
	Reason string // why it waits, is held or failed, in words
	// Attempt counts the claims by workers: the fence.
	Attempt int
	// Crashes counts the last claims in a row that ended without a word.
	Crashes    int
	By         string    // the worker that holds or last held it
	LeaseUntil time.Time // of the current claim; zero when nobody holds it
	DueAt      time.Time // when a worker looks at it next; zero for never
	Cancel     bool      // somebody asked to stop it
	Paused     bool      // somebody asked to leave it alone for now
	// RetriedAt is when a person last asked to try again what had failed.
	RetriedAt time.Time
	Done      int // branches of its lists that have ended
	Total     int // and all of them
	Result    []byte
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time
}

// PersonNeeded begins the Reason of a waiting run some of whose branches only a
// person can move on.
const PersonNeeded = "a person is needed: "

// NeedsPerson reports whether the run, or a part of it, waits for a person to
// say what is true or what is to be done. A paused run does not.
func (r *Run) NeedsPerson() bool {
	return r.State == RunHeld && !r.Paused || r.State == RunWaiting && strings.HasPrefix(r.Reason, PersonNeeded)
}

// Trigger is what started a run.
type Trigger struct {
	Kind TriggerKind `json:"kind"`
	// By is who asked, for a person or a call.
	By string `json:"by,omitzero"`
	// Tick is set for a schedule, Event for an event.
	Tick  *Tick       `json:"tick,omitzero"`
	Event *InboxEvent `json:"event,omitzero"`
}

// TriggerKind names what started a run.
type TriggerKind string

// The triggers.
const (
	ByPerson      TriggerKind = "person"
	ByHTTP        TriggerKind = "http"
	ByEvent       TriggerKind = "event"
	BySchedule    TriggerKind = "schedule"
	ByTransaction TriggerKind = "transaction" // of the caller
	ByRun         TriggerKind = "run"         // a parent
)

// Tick is one occurrence of a schedule.
type Tick struct {
	At    time.Time `json:"at"`    // when it was due
	Label string    `json:"label"` // the run key
	Date  string    `json:"date"`  // in the zone of the schedule, 2006-01-02
}

// NewRun asks for a run. Make one with Workflow.New.
type NewRun struct {
	// ID may be zero: the store mints one.
	ID         ID
	Workflow   string
	Version    int
	Definition string
	Key        Key
	Input      []byte // JSON
	Trigger    Trigger
	Priority   Priority
	Parent     ID
	ParentStep string
	// At is when it may begin; zero means now.
	At time.Time
}

// MaxInput is the largest input of a run and the largest data of an event, in
// bytes.
const MaxInput = 1 << 20

// Validate reports what is wrong with n, and completes what it leaves open.
func (n *NewRun) Validate() error {
	if err := ValidateStepName(n.Workflow); err != nil {
		return &InputError{Field: "workflow", Problem: "has no usable name: " + err.Error(), Hint: "use letters, digits, dots and dashes"}
	}
	if n.Version < 1 {
		return &InputError{Field: "version", Problem: fmt.Sprintf("is %d", n.Version), Hint: "count versions from 1"}
	}
	if err := n.Key.Validate(); err != nil {
		return err
	}
	if len(n.Input) == 0 {
		n.Input = []byte("{}")
	}
	if len(n.Input) > MaxInput {
		return &InputError{Field: "input", Problem: fmt.Sprintf("has %d bytes, the limit is %d", len(n.Input), MaxInput), Hint: "pass a reference to the data"}
	}
	if n.Trigger.Kind == "" {
		n.Trigger.Kind = ByPerson
	}
	return nil
}

// Fingerprint binds the run key to the input. Two inputs that differ only in
// representation have one.
func (n *NewRun) Fingerprint() (Fingerprint, error) {
	r := n.request()
	return r.Fingerprint()
}

func (n *NewRun) request() Request {
	return Request{Kind: "run", Body: n.Input, MediaType: "application/json"}
}

// DiffInput names the fields in which another input differs from the run's.
func (r *Run) DiffInput(input []byte) []string {
	was := Request{Kind: "run", Body: r.Input, MediaType: "application/json"}
	is := Request{Kind: "run", Body: input, MediaType: "application/json"}
	fields := was.Diff(&is)
	for i, f := range fields {
		if len(f) > 5 && f[:5] == "body." {
			fields[i] = "input." + f[5:]
		} else if f == "body" {
			fields[i] = "input"
		}
	}
	return fields
}

// RunConflictError says that the run key belongs to a run with another input.
// That run is unchanged, and nothing was started.
type RunConflictError struct {
	Run    Run
	Fields []string
}

func (e *RunConflictError) Error() string {
	return fmt.Sprintf("run key %q of %s belongs to a run with another input; different: %s; run %s is unchanged, and nothing was started",
		e.Run.Key, e.Run.Workflow, fieldList(e.Fields), e.Run.ID)
}

// StepKey is the operation key of a step whose action has no natural key: the
// run's key and the step's path name the work.
func StepKey(r *Run, path string) Key {
	key := "run/" + r.Workflow + "/" + string(r.Key) + "/" + path
	if len(key) <= MaxKeyLen {
		return Key(key)
	}
	return Key("run/" + DestinationKey(Scope(prefixed(r.Workflow, string(r.Key), path)), "", 0))
}

// EventKey is the key of the runs that an event starts: sending the event again
// starts nothing. One that would be too long is replaced by a digest.
func EventKey(e *InboxEvent) Key {
	key := Key("event/" + e.Name + "/" + e.ID)
	if len(key) > MaxKeyLen {
		key = Key("event/" + DestinationKey(Scope(prefixed(e.Name, e.ID)), "", 0))
	}
	return key
}

// DecodeInput reads the input of a run, with numbers as they were written.
func (r *Run) DecodeInput(into any) error {
	if err := json.Unmarshal(r.Input, into); err != nil {
		return &InputError{Field: "input", Problem: "does not fit the workflow: " + err.Error(), Hint: "start a run with the right input"}
	}
	return nil
}
