package check

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// Options say how a workflow in Go is checked. The zero value starts it with
// the input {}.
type Options struct {
	// Input of the dry runs; it becomes JSON. Nil means {}.
	Input any
	// Key of the dry runs; empty means "check".
	Key semel.Key
	// Answers are what steps bring: the destination's answer, the data of an
	// event, a computed value, or the result of a child run. Each becomes JSON.
	// A name is the path of a step without the keys of items, as in
	// "bill/charge", or the name of an action or of an event. An error is how
	// the step fails: semel.ErrTimedOut and semel.ErrRejected are what they say,
	// every other error is a known failure. A step without an answer brings
	// something that its type can hold.
	Answers map[string]any
	// Accept are the risks that are taken.
	Accept []Accept
	// Children are the workflows whose runs this one starts. What is found in
	// one is reported at the step that starts it, as in "invoice/charge"; one
	// that is not here is noted as not checked.
	Children []semel.WorkflowDefinition
	// OperatorTime is how long a person may take to look; 0 means
	// DefaultOperatorTime.
	OperatorTime time.Duration
}

// Accept says that a risk of a step is known, and why it is taken.
type Accept struct {
	// Step is the path of the step without the keys of items. For an action that
	// was not reached it is the action's name.
	Step   string
	Code   workflowfile.Code
	Reason string
}

// Workflow checks a workflow in Go from dry runs: its function is called, and
// every step is recorded and performed by nobody. Nothing is sent, no time
// passes, events arrive, and approvals are given. Functions that compute values
// are called, unless there is an answer for them; other code of the workflow
// runs as ever.
//
// A second run with the same input, at another time and as another run, finds
// keys that differ from try to try; one with another input finds keys that do
// not follow the work. Going through the first run again, as after a crash,
// finds steps and requests that differ then. Runs that are suspended at each
// step find effects in deferred functions.
//
// The error says that the workflow could not be run dry at all: it has no
// function, it panics, or the options cannot be used. A workflow that returns
// an error was run. It is safe for concurrent use if the workflow's code is.
func Workflow(d semel.WorkflowDefinition, o Options) (Report, error) {
	if d.Run == nil {
		return Report{}, fmt.Errorf("workflow %s has no function", d.Name)
	}
	w := &workflow{name: d.Name, version: max(d.Version, 1), owner: d.Owner, operator: cmp.Or(o.OperatorTime, DefaultOperatorTime)}
	for _, a := range o.Accept {
		if !slices.Contains(workflowfile.Acceptable(), a.Code) {
			return Report{}, fmt.Errorf("accept %q: there is no such risk", a.Code)
		}
		if strings.TrimSpace(a.Reason) == "" {
			return Report{}, fmt.Errorf("accept %s of step %s: say why the risk is taken", a.Code, a.Step)
		}
		w.accepts = append(w.accepts, acceptance{step: a.Step, code: a.Code, reason: a.Reason})
	}
	p, err := newPlan(d, o)
	if err != nil {
		return Report{}, err
	}
	first, err := p.run(dry{})
	if err != nil {
		return Report{}, err
	}
	p.lists = first.lists
	w.effects = first.effects(p, d.Owner)
	if f, wrong := wrongContext(first); wrong {
		return w.report(f), nil
	}
	again, err := p.run(dry{second: true})
	if err != nil {
		return Report{}, err
	}
	other, err := p.run(dry{varied: true})
	if err != nil {
		other = &recorder{} // the other input is not one that the code expects
	}
	if f, wrong := wrongContext(again, other); wrong {
		return w.report(f), nil
	}
	compare(w.effects, again, other)
	found, err := p.suspend(w.effects, len(first.steps))
	if err != nil || found != nil {
		return w.report(found...), err
	}
	if key, ok := errors.AsType[*semel.InputError](first.failed); ok && key.Field == "key" {
		return w.report(Finding{
			Code: workflowfile.CodeUnstableKey, Severity: workflowfile.SeverityError, Fix: key.Hint,
			Message: "a key " + key.Problem + ": each try would be another piece of work, and act again",
		}), nil
	}
	found, err = p.repeat(first, w.effects)
	if err != nil {
		return Report{}, err
	}
	steps, inChildren, err := p.children(first)
	if err != nil {
		return Report{}, err
	}
	r := w.report(slices.Concat(found, first.shared(), inChildren, unreached(d, first))...)
	r.Steps = append(r.Steps, steps...)
	return r, nil
}

// compare finds keys that differ where the work is the same, and keys that are
// the same where it differs.
func compare(effects []*effect, again, other *recorder) {
	today := time.Now()
	for _, e := range effects {
		if e.key.run {
			continue
		}
		same, ok := again.action(e.full)
		switch {
		case ok && string(same.Call.Key) != e.key.text:
			e.key.changing = fmt.Sprintf("is %q and then %q in two runs of the same work", e.key.text, same.Call.Key)
		case e.key.dated(today):
			e.key.changing = "has today's date or the present time in it, which neither the input nor an answer has"
		}
		varied, ok := other.sent(e.path)
		e.key.constant = ok && string(varied.step.Call.Key) == e.key.text && differ(e.call.Request, varied.step.Call.Request)
	}
}

func differ(a, b semel.Request) bool {
	x, errX := a.Fingerprint()
	y, errY := b.Fingerprint()
	return errX == nil && errY == nil && x != y
}

// dated reports whether a key names the present day or time, and what it is
// made of does not.
func (k *key) dated(now time.Time) bool {
	return slices.ContainsFunc(days(now), func(day string) bool {
		return strings.Contains(k.text, day) && !strings.Contains(k.source, day)
	})
}

// days are the ways in which the present day is written, and a time of these
// minutes that is counted since 1970: in seconds, or in parts of one.
func days(now time.Time) (all []string) {
	for _, at := range []time.Time{now, now.Add(-time.Minute)} { // the dry run was before
		all = append(all, strconv.FormatInt(at.Unix()/100, 10))
	}
	for _, layout := range []string{"2006-01-02", "20060102", "02.01.2006", "01/02/2006"} {
		all = append(all, now.Format(layout), now.UTC().Format(layout))
	}
	return all
}

// unreached are the actions that the dry run did not come to.
func unreached(d semel.WorkflowDefinition, r *recorder) (all []Finding) {
	why := ""
	if r.failed != nil {
		why = ", which ended with: " + r.failed.Error()
	}
	for _, a := range d.Actions {
		reached := slices.ContainsFunc(r.does, func(s did) bool {
			return s.step.Call.Action == a.Action && s.step.Call.Request.Connection == a.Connection
		})
		if reached || reads(a.Contract) {
			continue
		}
		all = append(all, Finding{
			Code: workflowfile.CodeNotReached, Severity: workflowfile.SeverityWarning, Step: a.Action,
			Message: fmt.Sprintf("action %s was not reached by the dry run%s", a.Action, why), Fix: "give an input and answers that lead to it",
		})
	}
	return all
}

// reads reports whether a contract is that of a read.
func reads(c semel.Contract) bool { return c.Protection == semel.Commutes && c.Effect == "" }

// plan is what the dry runs of one workflow have in common.
type plan struct {
	d       semel.WorkflowDefinition
	o       Options
	key     semel.Key
	input   []byte
	answers map[string][]byte
	fails   map[string]error
	values  map[string][]byte          // that were computed, by path
	lists   map[string]*semel.EachStep // of the first run, by path
	tries   map[string]int             // which made-up answer is given, by the name of an action or event
}

func newPlan(d semel.WorkflowDefinition, o Options) (*plan, error) {
	p := &plan{
		d: d, o: o, key: cmp.Or(o.Key, "check"), input: []byte("{}"),
		answers: map[string][]byte{}, fails: map[string]error{}, values: map[string][]byte{}, tries: map[string]int{},
	}
	if o.Input != nil {
		input, err := json.Marshal(o.Input)
		if err != nil {
			return nil, fmt.Errorf("encode input: %w", err)
		}
		p.input = input
	}
	for name, answer := range o.Answers {
		if err, ok := answer.(error); ok {
			p.fails[name] = err
			continue
		}
		data, err := json.Marshal(answer)
		if err != nil {
			return nil, fmt.Errorf("encode the answer of %s: %w", name, err)
		}
		p.answers[name] = data
	}
	return p, nil
}

// run makes one dry run. Where an answer that was made up cannot be read, it
// begins anew with another.
func (p *plan) run(how dry) (*recorder, error) {
	for {
		r := &recorder{
			plan: p, dry: how, wrong: make(chan struct{}),
			seen: map[string]bool{}, names: map[string]string{}, lists: map[string]*semel.EachStep{},
		}
		end := r.execute()
		unreadable, ok := errors.AsType[*semel.UnreadableError](end.failed)
		if !ok || p.tries[r.names[unreadable.Path]] >= len(madeUp)-1 {
			return r, end.panicked
		}
		p.tries[r.names[unreadable.Path]]++
	}
}

// suspend makes a run that is suspended at each step in turn, and marks the
// effects that were asked for all the same.
func (p *plan) suspend(effects []*effect, steps int) ([]Finding, error) {
	for at := 1; at <= min(steps, maxSuspensions); at++ {
		r, err := p.run(dry{stopAt: at})
		if err != nil {
			return nil, err
		}
		if f, wrong := wrongContext(r); wrong {
			return []Finding{f}, nil
		}
		for _, e := range effects {
			e.deferred = e.deferred || slices.Contains(r.late, e.path)
		}
	}
	return nil, nil
}
