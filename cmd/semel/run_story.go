package main

import (
	"encoding/json"
	"time"

	"github.com/semel-dev/semel"
)

// runStoryJSON is a run with all that is known about it.
type runStoryJSON struct {
	runJSON
	Steps     []stepJSON     `json:"steps"`
	Waits     []waitJSON     `json:"waits"`
	Approvals []approvalJSON `json:"approvals"`
	History   []noteJSON     `json:"history"`
	Children  []string       `json:"children"` // the newest runs that it started
}

type stepJSON struct {
	Path      string          `json:"path"`
	Kind      semel.StepKind  `json:"kind"`
	What      string          `json:"what,omitempty"`
	Standing  standing        `json:"standing"`
	Outcome   string          `json:"outcome"` // of the record, or the state of the operation
	Operation string          `json:"operation,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	At        *time.Time      `json:"at"`
}

type waitJSON struct {
	Path        string         `json:"path"`
	Kind        semel.WaitKind `json:"kind"`
	Until       *time.Time     `json:"until,omitempty"`
	Since       *time.Time     `json:"since,omitempty"`
	Event       string         `json:"event,omitempty"`
	Match       string         `json:"match,omitempty"`
	Target      string         `json:"target,omitempty"` // an operation, an approval or a run
	NeedsPerson bool           `json:"needs_person"`
	Reason      string         `json:"reason"`
}

type noteJSON struct {
	At   *time.Time `json:"at"`
	Kind string     `json:"kind"`
	By   string     `json:"by,omitempty"`
	Text string     `json:"text,omitempty"`
}

func (sh *shell) describeRunStory(s *runStory) runStoryJSON {
	d := runStoryJSON{
		runJSON: sh.describeRun(&s.run, s.waits, s.now), Steps: []stepJSON{}, Waits: []waitJSON{}, Approvals: []approvalJSON{}, History: []noteJSON{}, Children: []string{},
	}
	nodes := map[string]standing{}
	standings(treeOf(s.steps, s.waits, nil), nodes, s.now)
	for i := range s.steps {
		r := &s.steps[i]
		step := stepJSON{
			Path: r.Path, Kind: r.Kind, What: r.What, Standing: nodes[r.Path], Outcome: string(r.Outcome), Reason: r.Failure, Result: rawAnswer(r), At: instant(r.At),
		}
		if o := r.Effect; o != nil {
			step.Outcome, step.Attempt, step.Reason = string(o.StateAt(s.now)), o.Attempt, reasonAt(o, s.now)
		}
		step.Operation = idOrNone(r.Operation)
		d.Steps = append(d.Steps, step)
	}
	for _, w := range s.waits {
		d.Waits = append(d.Waits, waitJSON{
			Path: w.Path, Kind: w.Kind, Until: instant(w.Until), Since: instant(w.Since), Event: w.Event, Match: w.Match,
			Target: idOrNone(w.Target), NeedsPerson: w.Person, Reason: waitReason(&w),
		})
	}
	for i := range s.approvals {
		d.Approvals = append(d.Approvals, describeApproval(&s.approvals[i], s.now))
	}
	for _, n := range s.notes {
		d.History = append(d.History, noteJSON{instant(n.At), n.Kind, n.By, n.Text})
	}
	for i := range s.children {
		d.Children = append(d.Children, s.children[i].ID.String())
	}
	return d
}

func standings(n *node, into map[string]standing, now time.Time) {
	into[n.path] = n.standing(now)
	for _, c := range n.children {
		standings(c, into, now)
	}
}

func idOrNone(id semel.ID) string {
	if id == (semel.ID{}) {
		return ""
	}
	return id.String()
}

// rawAnswer is answerOf as JSON; what is no JSON is a text.
func rawAnswer(r *semel.StepRecord) json.RawMessage {
	answer := []byte(answerOf(r))
	if len(answer) == 0 || json.Valid(answer) {
		return answer
	}
	text, _ := json.Marshal(string(answer)) // a text always can be encoded
	return text
}
