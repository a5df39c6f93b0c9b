package workflowfile

import (
	"encoding/json"
	"strings"
	"time"

	"cel.dev/cel-go/common/ast"

	"github.com/semel-dev/semel"
)

// Sample is what a run needs from outside: its inputs, an answer to every
// request, and the events that its waits get. With it a workflow runs where
// nothing outside is real. It is derived from what the expressions read and
// compare, and says what of that could not be done.
type Sample struct {
	// Trigger starts the run: a person, but for a workflow whose steps use event
	// or tick.
	Trigger semel.Trigger
	// Input is a JSON object.
	Input json.RawMessage
	// Answers by the path of the step: the JSON that its destination says. The
	// path has no item keys (bill/charge) where all items get the same, and has
	// them (bill[invoice-2]/charge) where one gets another. See [Sample.Answer].
	Answers map[string]json.RawMessage
	// Events are those that the waits get, in their order. A wait that is not
	// here gets none, and times out.
	Events []SampleEvent
	// Unsure says, each with its place, which steps a run with the sample does
	// not reach, and what to write for that.
	Unsure []string
}

// SampleEvent is the event that a wait gets.
type SampleEvent struct {
	Path        string // of the wait, with item keys
	Name, Match string
	Data        json.RawMessage // nil for none
}

// Answer is what the destination says to the step at a path, which may have
// item keys; nil if the step has no answer.
func (s *Sample) Answer(path string) json.RawMessage {
	if a, ok := s.Answers[path]; ok {
		return a
	}
	return s.Answers[withoutItems(path)]
}

// withoutItems takes the item keys out of a step path.
func withoutItems(path string) string {
	for {
		before, rest, found := strings.Cut(path, "[")
		_, after, ended := strings.Cut(rest, "]/")
		if !found || !ended {
			return path
		}
		path = before + "/" + after
	}
}

// sampleTime is when a sample happens.
var sampleTime = time.Date(2040, time.January, 2, 9, 0, 0, 0, time.UTC)

// sampleKey is the key of the run in which a sample is tried.
const sampleKey = "sample"

// Sample derives one that reaches every step, as far as one run can: defaults
// that are constant, and otherwise values of the type that each expression
// needs and that make each if true. A list gets two items or more, of which
// each goes another way where conditions exclude each other. The sample is
// tried, and what it does not reach is in Unsure. The same definition gives the
// same sample.
func (d *Definition) Sample() Sample { return newSampling(d).try(own{}) }

// SampleRun asks for the run of a sample.
func (d *Definition) SampleRun(key semel.Key, s Sample) (semel.NewRun, error) {
	if s.Trigger.Kind == semel.ByPerson {
		return d.New(key, s.Input)
	}
	n := semel.NewRun{
		Workflow: d.Name, Version: d.Version, Definition: d.Digest,
		Key: key, Input: s.Input, Trigger: s.Trigger,
	}
	return n, n.Validate()
}

// sampling infers the sample of one definition.
type sampling struct {
	d        *Definition
	language *language
	trees    map[*Expr]ast.Expr
	inputs   map[string]*guess
	event    *guess            // the data of the event that starts the run
	answers  map[string]*guess // what steps and waits bring, by path
	paths    []stepPath
	cases    []condition
	trigger  semel.TriggerKind
	solved   int // steps of the effort for one condition
}

// stepPath is a step with its path, and the conditions under which it runs.
type stepPath struct {
	step  *Step
	path  string
	scope *reading
}

func newSampling(d *Definition) *sampling {
	s := &sampling{
		d: d, trees: map[*Expr]ast.Expr{}, inputs: map[string]*guess{}, answers: map[string]*guess{},
		event: &guess{name: "data"}, trigger: semel.ByPerson,
	}
	var items []string
	refs := map[string]bool{}
	d.eachStep(func(step *Step) {
		if step.Each != nil {
			items = append(items, step.Each.As)
		}
		for _, ref := range step.refs() {
			variable, _, _ := strings.Cut(ref, ".")
			refs[variable] = true
		}
	})
	switch {
	case refs["event"]:
		s.trigger = semel.ByEvent
	case refs["tick"]:
		s.trigger = semel.BySchedule
	}
	var err error
	if s.language, err = newLanguage(d.Inputs, items); err != nil {
		panic(err) // the definition was read with it
	}
	s.readInputs()
	scope := &reading{items: map[string]*guess{}, steps: map[string]*stepGuess{}}
	s.readSteps(d.Steps, "", scope)
	s.readSteps(d.OnFailure, aside, scope)
	for _, c := range s.cases {
		s.settle(c)
	}
	return s
}

// eachStep calls fn for every step.
func (d *Definition) eachStep(fn func(*Step)) {
	var all func(steps []*Step)
	all = func(steps []*Step) {
		for _, step := range steps {
			fn(step)
			if step.Each != nil {
				all(step.Each.Steps)
			}
		}
	}
	all(d.Steps)
	all(d.OnFailure)
}
