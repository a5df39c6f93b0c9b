package workflowfile

import (
	"time"

	"github.com/semel-dev/semel"
)

// Definition is a workflow as one file says it: checked, with every expression
// compiled. It is never changed, and is safe for concurrent use.
type Definition struct {
	File    string
	Name    string
	Version int
	// Owner is told about an outcome that only a person can settle.
	Owner       string
	Description string
	Triggers    Triggers
	Inputs      []Input
	Steps       []*Step
	// OnFailure runs after a known failure of a step, and never for an unknown
	// outcome.
	OnFailure []*Step
	// Digest identifies what a run depends on: everything but the file's name,
	// layout, comments and quoting, and but owner, description, triggers and
	// accepted risks. The texts that steps name are part of it.
	Digest string
	// Text is the file as it was read.
	Text []byte

	content *node
	files   map[string]string // texts that steps name
}

// Triggers are what starts a run, each nil where it does not. A run can always
// be started by hand.
type Triggers struct {
	Schedule *semel.Schedule // in UTC where the file names no zone
	Event    *EventTrigger
	HTTP     *HTTPTrigger
}

// EventTrigger starts a run for each event of a name.
type EventTrigger struct{ Name string }

// HTTPTrigger starts a run for each HTTP call.
type HTTPTrigger struct{}

// Step is a named point of a run. Exactly one of Uses, Each, Wait, Sleep and
// Approve is set, but that Approve may stand beside Uses.
type Step struct {
	ID string
	// If is a boolean; nil runs the step always.
	If      *Expr
	Uses    *Uses
	Each    *Each
	Wait    *Wait
	Sleep   *Sleep
	Approve *Approve
	// Accept are the risks that somebody knows of and takes.
	Accept []Accept

	Line, Column int

	asked bool // a person is asked about its request
}

// Uses performs an action.
type Uses struct {
	// Connection and Action are the two parts of uses. Connection is a name of
	// semel.yaml or, for a built-in action, sql or claim.
	Connection, Action string
	// With is a mapping; nil where the step has none. The files that it named
	// are read: file has become statement, and template holds the template.
	With *Value
	// Read: the action is known to have no effect.
	Read bool
	// Effect is what the file says; nil where the step inherits all of it.
	Effect *Effect
	// Retry is for known failures; nil leaves it to the contract.
	Retry *semel.Retry
	// Timeout of one attempt; 0 leaves it to the contract.
	Timeout time.Duration

	unknown bool // nobody could tell whether it is a read
}

// OnUnknown says who settles an unknown outcome.
type OnUnknown string

// The answers to an unknown outcome.
const (
	Recover OnUnknown = "recover" // the contract says how
	Ask     OnUnknown = "ask"     // a person
)

// Effect is what the step adds to the contract of its connection. Empty members
// leave it as it is.
type Effect struct {
	// Key names the work; nil means run key and step path.
	Key *Value
	// Kind and OnFailed are those of the contract.
	Kind      semel.EffectKind
	OnFailed  semel.OnFailed
	OnUnknown OnUnknown
}

// Each performs Steps once for each item of a list.
type Each struct {
	In     *Expr  // a list
	As     string // what the item is called
	Key    *Expr  // of the item: a text or an integer, different for each
	AtOnce int    // at least 1
	Steps  []*Step
}

// Wait is for an event. Its result is the event as a mapping of id, name and
// data, null after the timeout.
type Wait struct {
	Event string
	// Match is what the event has to be about, as [Value.Key] reads it: the
	// match that its sender gave. Nil takes an event that was sent without one.
	Match   *Value
	Timeout time.Duration // 0 waits for ever
}

// Sleep passes time. One of For and Until is set.
type Sleep struct {
	For   *Value // see [Value.Duration]
	Until *Value // see [Value.Time]
}

// Approve asks a person for one exact request.
type Approve struct {
	// Step is the later step of the same list whose request is approved; empty
	// for the step that Approve stands in.
	Step string
	Ask  semel.Ask
}
