package drill

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// note counts a call and returns what breaks there.
func (t *trial) note(c call) Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.n = len(t.calls) + 1
	t.calls = append(t.calls, c)
	f := t.schedule.at(c.n)
	switch {
	case f == SlowCode && c.port != codePort:
		t.slow = true // there are more calls where the outcome is written before the code goes on
		return ""
	case t.slow && c.port == codePort:
		t.slow = false
		return SlowCode
	}
	return f
}

// tell adds a line to the story.
func (t *trial) tell(format string, args ...any) {
	text := t.plain(fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Duration(t.ahead.Load()).Round(time.Second)
	t.story = append(t.story, fmt.Sprintf("%12s  %s", clock(at), text))
}

// plain is text with times since the beginning, and without identifiers.
func (t *trial) plain(text string) string {
	text = identifier.ReplaceAllString(text, "...")
	return moment.ReplaceAllStringFunc(text, func(at string) string {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return at
		}
		return clock(when.Sub(t.began).Round(time.Minute))
	})
}

// What differs from one execution of a schedule to the next, and is not told.
var (
	identifier = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moment     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// clock is a time since the beginning, as people read it.
func clock(d time.Duration) string {
	days, d := d/(24*time.Hour), d%(24*time.Hour)
	text := fmt.Sprintf("%02d:%02d:%02d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
	if days > 0 {
		text = fmt.Sprintf("%d d %s", days, text)
	}
	return text
}

// place names the step of an operation, with its item.
func (t *trial) place(o *semel.Operation) string {
	if o.Step == "" {
		return o.Request.Action
	}
	return t.prefix(o.Run) + o.Step
}

func (t *trial) placeOf(r *semel.Run, path string) string {
	t.know(r)
	return t.prefix(r.ID) + path
}

// know remembers whose run it is.
func (t *trial) know(r *semel.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names[r.ID] = r.Workflow
}

// prefix tells the steps of a child run from the run's own.
func (t *trial) prefix(run semel.ID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if name := t.names[run]; name != "" && name != t.d.workflows[0].Name {
		return name + ": "
	}
	return ""
}

// column is the step of an operation whatever its item.
func (t *trial) column(o *semel.Operation) string { return withoutItems(t.place(o)) }

func withoutItems(path string) string {
	var b strings.Builder
	depth := 0
	for _, r := range path {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// change says in words what a commit of an operation does.
func (t *trial) change(c *semel.Change) string {
	o := c.After
	if c.Event.Kind == semel.EvClaimed {
		return fmt.Sprintf("the claim of attempt %d of %s", c.Event.Attempt, t.place(&o))
	}
	return fmt.Sprintf("the commit that %s is %s", t.place(&o), c.Event.Kind)
}

// commit says in words what a commit of a run does.
func (t *trial) commit(c *semel.RunCommit) string {
	var parts []string
	if c.Outcome != nil {
		parts = append(parts, "the outcome of "+t.place(&c.Outcome.Before))
	}
	if len(c.Steps) > 0 {
		parts = append(parts, "records")
	}
	if c.Claim != nil {
		parts = append(parts, "the claim of "+t.place(&c.Claim.After))
	}
	if c.Next != nil {
		parts = append(parts, "that the run is "+string(c.Next.State))
	}
	return "the commit of " + strings.Join(parts, " and ")
}

// recorded tells what a commit made durable.
func (t *trial) recorded(p *process, c *semel.Change) {
	o := c.After
	t.mu.Lock()
	if _, ok := t.begun[of(&o)]; !ok {
		t.begun[of(&o)] = len(t.begun)
	}
	t.mu.Unlock()
	switch c.Event.Kind {
	case semel.EvClaimed:
		t.tell("%s claims %s, attempt %d", p.name, t.place(&o), c.Event.Attempt)
	case semel.EvJoined:
		t.tell("%s meets %s, which is on record", p.name, t.place(&o))
	default:
		text := fmt.Sprintf("%s records %s as %s", p.name, t.place(&o), o.State.Words())
		if o.Reason != "" && o.State != semel.Completed {
			text += ": " + o.Reason
		}
		t.tell("%s", text)
	}
}

// ended tells how an execution ended.
func (t *trial) ended(p *process, run semel.ID, n *semel.RunNext) {
	text := fmt.Sprintf("%s leaves the run %s", p.name, n.State)
	if n.Reason != "" {
		text += ": " + n.Reason
	}
	t.tell("%s", text)
	t.mu.Lock()
	stopped := t.cancels
	t.mu.Unlock()
	if stopped {
		t.world.stop(run)
	}
}

// order is the place of an intention among those that were begun.
func (t *trial) order(i intention) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun[i]
}

// kept takes note of steps that are on record now.
func (t *trial) kept(run semel.ID, steps []semel.StepRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range steps {
		t.steps[run.String()+" "+steps[i].Path] = true
	}
}

// durable reports whether a step is on record.
func (t *trial) durable(run semel.ID, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps[run.String()+" "+path]
}

// heard takes note of a worker that was told that it happened.
func (t *trial) heard(p *process, i intention) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told[i] = append(t.told[i], p)
}

// knows reports whether a worker that still lives was told that it
// happened.
func (t *trial) knows(i intention) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.told[i], func(p *process) bool { return !p.dead.Load() })
}

// setDone takes note that the workflow was told that a step is done.
func (t *trial) setDone(i intention, place string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[i] = place
}

func (t *trial) isDone(i intention) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done[i] != ""
}

func (t *trial) allDone() []intention {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.done))
}

// setReturned takes note that the code of a run came to its end.
func (t *trial) setReturned(run semel.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[run] = true
}

func (t *trial) isReturned(run semel.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[run]
}

func (t *trial) heardLate(i intention) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late[i] = true
}

// setChanged makes the code ask with another payload from now on.
func (t *trial) setChanged(o *semel.Operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed[o.Run.String()+" "+o.Step] = true
}

func (t *trial) isChanged(r *semel.Run, path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed[r.ID.String()+" "+path]
}
