package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
)

const runShowHelp = `Show where a run stands, what happens next and why, and what a person can do:
its steps as a tree, what each of them waits for, who did what to it, its input.

  +  done          x  failed           ~  waits
  >  running       ?  outcome unknown  !  needs a person     .  not begun

The items of a list are folded: those that are done are counted, up to 20 others
are listed (--all lists them all). Looking changes nothing: the exit code is 0
whatever the state, and 2 if there is no such run.`

func newRunShow(sh *shell) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "show ID | WORKFLOW KEY", Short: "Show where a run stands, and what happens next", Long: runShowHelp,
		Example: "  semel run show billing 2026-03-01\n  semel run show 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f --output json",
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			name, err := nameRun(cmd, args)
			if err != nil {
				return err
			}
			k, err := sh.lookKeeper(cmd.Context())
			if err != nil {
				return sh.noRun(err, name)
			}
			defer sh.shut("the database", k.Close)
			r, err := name.find(cmd.Context(), sh, k)
			if err != nil {
				return err
			}
			story, err := k.story(cmd.Context(), r)
			if err != nil {
				return err
			}
			if sh.json() {
				return sh.print(sh.describeRunStory(story))
			}
			out := &tolerant{to: sh.out}
			sh.tellRun(out, story, all)
			if out.err != nil {
				return fmt.Errorf("write to stdout: %w", out.err)
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every item, also those that are done")
	return cmd
}

// runStory is all that is known about a run.
type runStory struct {
	run       semel.Run
	steps     []semel.StepRecord
	waits     []semel.RunWait
	notes     []semel.RunNote
	approvals []semel.Approval
	children  []semel.Run // newest first, and one more than is shown
	now       time.Time
}

func (k *keeper) story(ctx context.Context, r semel.Run) (s *runStory, err error) {
	s = &runStory{run: r}
	if s.steps, err = k.Steps(ctx, r.ID); err != nil {
		return nil, err
	}
	if s.waits, err = k.Waits(ctx, r.ID); err != nil {
		return nil, err
	}
	if s.notes, err = k.Notes(ctx, r.ID); err != nil {
		return nil, err
	}
	for a, err := range k.Approvals(ctx, r.ID, "") {
		if err != nil {
			return nil, err
		}
		s.approvals = append(s.approvals, a)
	}
	for c, err := range k.ListRuns(ctx, semel.RunFilter{Parent: r.ID, Limit: shownItems + 1}) {
		if err != nil {
			return nil, err
		}
		s.children = append(s.children, c)
	}
	s.now, err = k.Now(ctx)
	return s, err
}

// tellRun writes the story for people, the answer to "what now" first.
func (sh *shell) tellRun(w io.Writer, s *runStory, all bool) {
	r := &s.run
	a := sh.adviseRun(r, s.waits, s.now)
	fmt.Fprintln(w, sh.paintedRun(r, visible(a.headline)))
	for _, line := range a.why {
		fmt.Fprintln(w, visible(line))
	}
	fmt.Fprintln(w)
	sh.runFacts(w, s)
	root := treeOf(s.steps, s.waits, s.approvals)
	if len(root.children) > 0 {
		fmt.Fprintln(w, "\nSteps")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		d := &drawing{table: table, run: s.run.ID, now: s.now, all: all}
		d.children(root, 0)
		_ = table.Flush() // the writer keeps its error
	}
	childRuns(w, s)
	if len(r.Input) > 0 && string(r.Input) != "{}" {
		fmt.Fprintln(w, "\nInput")
		showBody(w, r.Input, 0)
	}
	if len(r.Result) > 0 {
		fmt.Fprintln(w, "\nResult")
		showBody(w, r.Result, 0)
	}
	if len(s.notes) > 0 {
		fmt.Fprintln(w, "\nWhat was done to it")
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for i := range s.notes {
			n := &s.notes[i]
			fmt.Fprintf(table, "  %s\t%s\t%s\n", exact(n.At), orNone(n.By), oneLine(noteWords(n)))
		}
		_ = table.Flush() // the writer keeps its error
	}
	if len(a.next) > 0 {
		fmt.Fprintln(w, "\nWhat you can do")
		for _, line := range a.next {
			fmt.Fprintf(w, "  %s\n", oneLine(line))
		}
	}
}

// childRuns writes the runs that a run started.
func childRuns(w io.Writer, s *runStory) {
	if len(s.children) == 0 {
		return
	}
	fmt.Fprintln(w, "\nRuns that it started")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range s.children[:min(len(s.children), shownItems)] {
		c := &s.children[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", runWord(c, s.now), oneLine(refOf(c)), cut(oneLine(string(c.Key)), 50), c.ID, oneLine(c.ParentStep))
	}
	_ = table.Flush() // the writer keeps its error
	if len(s.children) > shownItems {
		fmt.Fprintln(w, "  (and more)")
	}
}

// noteWords tells what somebody did to a run.
func noteWords(n *semel.RunNote) string {
	words := map[string]string{
		string(semel.CancelRun): "asked to stop it", string(semel.PauseRun): "paused it", string(semel.ResumeRun): "let it go on",
		string(semel.RetryRun): "asked to try again what failed", "held": "held it for a person", "lapsed": "stopped reporting while it executed this",
	}[n.Kind]
	if words == "" {
		words = n.Kind
	}
	if n.Text != "" {
		words += ": " + n.Text
	}
	return words
}

// runFacts writes what identifies the run and where it stands.
func (sh *shell) runFacts(w io.Writer, s *runStory) {
	r := &s.run
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", name, oneLine(fmt.Sprintf(format, args...)))
	}
	row("run", "%s", r.ID)
	row("workflow", "%s", refOf(r))
	row("key", "%s", r.Key)
	row("state", "%s", runWord(r, s.now))
	if p := progress(r); p != "" {
		row("progress", "%s have ended", p)
	}
	row("started", "%s, %s", moment(r.CreatedAt), startedBy(&r.Trigger))
	if r.Parent != (semel.ID{}) {
		row("started by", "run %s, in its step %s", r.Parent, r.ParentStep)
	}
	if r.Priority != semel.Normal {
		row("priority", "%s", priorityWord(r.Priority))
	}
	crashes := ""
	if r.Crashes > 0 {
		crashes = fmt.Sprintf(", of which the last %d ended with a dead worker", r.Crashes)
	}
	row("executions", "%d%s", r.Attempt, crashes)
	if r.EndedAt.IsZero() {
		row("last change", "%s (%s)", moment(r.UpdatedAt), relative(r.UpdatedAt, s.now))
	} else {
		row("ended", "%s (%s), after %s", moment(r.EndedAt), relative(r.EndedAt, s.now), rough(r.EndedAt.Sub(r.CreatedAt)))
	}
	_ = table.Flush() // the writer keeps its error
}

// shownItems is how many items of a list are shown unless all are asked for.
const shownItems = 20

// drawing draws the steps of a run as a tree.
type drawing struct {
	table io.Writer
	run   semel.ID
	now   time.Time
	all   bool
}

func (d *drawing) children(n *node, depth int) {
	for _, c := range n.children {
		d.node(c, depth)
	}
}

func (d *drawing) node(n *node, depth int) {
	at := n.standing(d.now)
	words, detail := d.words(n, at)
	fmt.Fprintf(d.table, "  %s  %s%s\t%s\t%s\n", at.sign(), strings.Repeat("  ", depth), cut(oneLine(n.name), 60), oneLine(words), cut(oneLine(detail), 200))
	if len(n.children) == 0 || !n.children[0].item {
		d.children(n, depth+1)
		return
	}
	shown, left := 0, 0
	for _, c := range n.children {
		switch at := c.standing(d.now); {
		case !d.all && (at == isDone || at == isToDo):
		case !d.all && shown == shownItems:
			left++
		default:
			shown++
			d.node(c, depth+1)
		}
	}
	if left > 0 {
		fmt.Fprintf(d.table, "     %s(and %d more: --all lists every item)\t\t\n", strings.Repeat("  ", depth+1), left)
	}
}

// words are the state of a node, and what else is known of it.
func (d *drawing) words(n *node, at standing) (words, detail string) {
	r := n.record
	switch {
	case r != nil && r.Kind == semel.StepEach:
		return d.counts(n), ""
	case len(n.waits) > 0:
		text := d.waiting(n)
		if verb, rest, ok := strings.Cut(text, " "); ok && (verb == "waits" || verb == "sleeps") {
			return verb, rest
		}
		return string(at), text
	case r == nil || r.Kind == semel.StepItem && len(n.children) > 0:
		return string(at), "" // what is below it says more
	case r.Effect != nil:
		words, detail = effectWords(r.Effect, at, d.now)
		return words, detail + d.begunBy(r)
	}
	return recordWords(r, n.approval)
}

func (d *drawing) waiting(n *node) string {
	w := &n.waits[0]
	if a := n.approval; a != nil && a.State != semel.ApprovalPending {
		return fmt.Sprintf("%s by %s at %s%s; the next free worker goes on", a.State, a.By, moment(a.DecidedAt), colon(a.Reason))
	}
	text := waitWords(w, d.now)
	if !w.Since.IsZero() {
		text += ", since " + moment(w.Since)
	}
	if n.record != nil && n.record.Operation != (semel.ID{}) {
		text = "operation " + n.record.Operation.String() + ": " + text
	}
	if a := n.approval; a != nil && a.Ask.Of != "" {
		text += ", of " + a.Ask.Of
	}
	return text
}

// effectWords tells about the operation of a step.
func effectWords(o *semel.Operation, at standing, now time.Time) (words, detail string) {
	words = stateWord(o, now)
	detail = fmt.Sprintf("operation %s, %d attempts", o.ID, o.Attempt)
	if o.Attempt == 1 {
		detail = strings.TrimSuffix(detail, "s")
	}
	if r := reasonAt(o, now); r != "" && at != isDone {
		detail = r + "; " + detail
	}
	return words, detail
}

// begunBy says where an effect comes from that this step did not begin.
func (d *drawing) begunBy(r *semel.StepRecord) string {
	switch o := r.Effect; {
	case r.Operation == (semel.ID{}) || r.Path == o.Step && o.Run == d.run:
		return ""
	case o.Run == (semel.ID{}):
		return "; not begun by a run"
	default:
		return fmt.Sprintf("; shared: begun by step %s of run %s", o.Step, o.Run)
	}
}

// recordWords tells about a step that has no operation.
func recordWords(r *semel.StepRecord, a *semel.Approval) (words, detail string) {
	switch {
	case a != nil && a.State != semel.ApprovalPending:
		return string(a.State), fmt.Sprintf("by %s at %s%s", a.By, moment(a.DecidedAt), colon(a.Reason))
	case r.Outcome == semel.StepTimedOut:
		return "timed out", "nothing came in time"
	case r.Outcome != semel.StepCompleted:
		return string(r.Outcome), r.Failure
	}
	words = map[semel.StepKind]string{semel.StepSleep: "over", semel.StepEvent: "came", semel.StepValue: "recorded"}[r.Kind]
	if words == "" {
		words = string(r.Outcome)
	}
	return words, answerOf(r)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// counts says how many items of a list stand where.
func (d *drawing) counts(n *node) string {
	if len(n.children) == 0 {
		return "[no items]"
	}
	count := map[standing]int{}
	for _, c := range n.children {
		count[c.standing(d.now)]++
	}
	parts := []string{fmt.Sprintf("%d of %d done", count[isDone], len(n.children))}
	for _, part := range []struct {
		at        standing
		one, many string
	}{
		{isHeld, "needs a person", "need a person"},
		{isUnknown, "unknown", "unknown"},
		{isFailed, "failed", "failed"},
		{isWaiting, "waits", "wait"},
		{isRunning, "running", "running"},
		{isToDo, "not begun", "not begun"},
	} {
		switch n := count[part.at]; n {
		case 0:
		case 1:
			parts = append(parts, "1 "+part.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, part.many))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// answerOf is what a step without an operation recorded: a value, or the answer
// of an effect that commutes.
func answerOf(r *semel.StepRecord) string {
	var answer semel.Result
	if r.Kind != semel.StepAction || json.Unmarshal(r.Result, &answer) != nil {
		return string(r.Result)
	}
	return string(answer.Body)
}
