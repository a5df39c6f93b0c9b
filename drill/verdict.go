package drill

import (
	"maps"
	"slices"
	"strings"
)

// Verdict is what a drill found.
type Verdict struct {
	Workflow string `json:"workflow"`
	Seed     uint64 `json:"seed"`
	// Naive: this is what an engine without operations would have done.
	Naive bool `json:"naive,omitzero"`
	// Schedules counts executions, each with something broken.
	Schedules int `json:"schedules"`
	// Twice and Lost count the schedules that ended so, some of them in both ways,
	// and Unknown the others after which a person is asked.
	Twice   int `json:"twice"`
	Lost    int `json:"lost"`
	Unknown int `json:"unknown"`
	// Held counts those after which a run is held for no reason of the fault's.
	Held int `json:"held"`
	// Calls is how many calls of a port an unbroken execution makes.
	Calls int `json:"calls"`
	// Steps are the columns of the table, Rows what was broken.
	Steps []string `json:"steps"`
	Rows  []Row    `json:"rows"`
	// Stories tell how bad outcomes came about, one for each cell of the table.
	Stories []Story `json:"stories"`
	// Replay is the story of the schedule that was asked for, and When says in
	// words what broke in it.
	Replay []string `json:"replay,omitempty"`
	When   string   `json:"when,omitzero"`
	// Command tells with what a story is told again: the seed follows it. Empty
	// means from Go, by Options.Replay.
	Command string `json:"-"`

	drill *drill
}

// Row is one fault, or all pairs of faults, and what became of each step under
// it.
type Row struct {
	Fault Fault  `json:"fault"`
	Words string `json:"words"`
	// Schedules counts the executions of this row, and the others those of them
	// that ended so, as in the Verdict.
	Schedules int `json:"schedules"`
	Twice     int `json:"twice"`
	Lost      int `json:"lost"`
	Unknown   int `json:"unknown"`
	// Cells holds the worst outcome of each step.
	Cells map[string]Outcome `json:"cells"`

	bad int // schedules that ended twice, lost, or both
}

// Story is how one bad outcome came about.
type Story struct {
	// Seed replays it.
	Seed string `json:"seed"`
	// When says in words what broke.
	When    string   `json:"when"`
	Outcome Outcome  `json:"outcome"`
	Step    string   `json:"step"`
	Why     string   `json:"why"`
	Lines   []string `json:"lines"`

	schedule Schedule
	column   string
}

// pairRow is the row of schedules with two faults.
const pairRow Fault = "two-faults"

// OK reports whether nothing happened twice and nothing was lost.
func (v *Verdict) OK() bool { return v.Twice == 0 && v.Lost == 0 }

// begin takes the columns from the execution that nothing broke.
func (v *Verdict) begin(whole *trial) {
	v.Calls = len(whole.calls)
	v.Stories = []Story{}
	var order, rest []intention
	for _, e := range whole.world.effects {
		order = append(order, e.intention)
	}
	for i := range whole.begun {
		rest = append(rest, i)
	}
	slices.SortFunc(rest, func(a, b intention) int { return whole.begun[a] - whole.begun[b] })
	order = append(order, rest...)
	for _, i := range order {
		if c := withoutItems(v.drill.wanted[i]); c != "" && !slices.Contains(v.Steps, c) {
			v.Steps = append(v.Steps, c)
		}
	}
}

// add counts a trial.
func (v *Verdict) add(t *trial) {
	v.Schedules++
	row := v.row(t.schedule)
	row.Schedules++
	worst := Once
	for _, column := range slices.Sorted(maps.Keys(t.verdict.columns)) {
		o := t.verdict.columns[column]
		if !slices.Contains(v.Steps, column) {
			v.Steps = append(v.Steps, column)
		}
		if worse(o, row.Cells[column]) || row.Cells[column] == "" {
			row.Cells[column] = o
		}
		if worse(o, worst) {
			worst = o
		}
	}
	ended := func(o Outcome) bool {
		return slices.ContainsFunc(t.verdict.findings, func(f finding) bool { return f.outcome == o })
	}
	if ended(Twice) { // it may have lost something besides
		v.Twice++
		row.Twice++
	}
	if ended(Lost) {
		v.Lost++
		row.Lost++
	}
	switch worst {
	case Unknown:
		v.Unknown++
		row.Unknown++
	case Held:
		v.Held++
	case Twice, Lost:
		row.bad++
	case Once, Never:
	}
	for _, f := range t.verdict.findings {
		v.tell(t, f)
	}
}

// row is that of a schedule.
func (v *Verdict) row(s Schedule) *Row {
	fault, words := pairRow, "two of these in one run, sampled"
	if len(s) > 0 {
		if k, _ := kindOf(s[0].Fault); len(s) == 1 || k.fits == nil && s[0].Call == 0 && isPromise(s[0].Fault) {
			fault, words = k.fault, k.words
		}
	}
	for i := range v.Rows {
		if v.Rows[i].Fault == fault {
			return &v.Rows[i]
		}
	}
	v.Rows = append(v.Rows, Row{Fault: fault, Words: words, Cells: map[string]Outcome{}})
	return &v.Rows[len(v.Rows)-1]
}

// words are what breaks, in its order.
func (s Schedule) words() string {
	words := make([]string, len(s))
	for i, p := range s {
		k, _ := kindOf(p.Fault)
		words[i] = k.words
	}
	return strings.Join(words, "; ")
}

func isPromise(f Fault) bool {
	return slices.ContainsFunc(promises, func(p promise) bool { return p.fault == f })
}

// tell keeps the first story of each cell.
func (v *Verdict) tell(t *trial, f finding) {
	s := Story{
		Seed: t.schedule.String(), When: t.schedule.words(), Outcome: f.outcome, Step: f.step, Why: t.plain(f.why), Lines: t.story, schedule: t.schedule, column: withoutItems(f.step),
	}
	same := func(o Story) bool {
		return o.column == s.column && o.Outcome == s.Outcome && v.row(o.schedule) == v.row(s.schedule)
	}
	if !slices.ContainsFunc(v.Stories, same) {
		v.Stories = append(v.Stories, s)
	}
}

// shrink leaves out stories of two faults that one of them tells alone: all
// schedules with one fault were tried.
func (v *Verdict) shrink() {
	v.Stories = slices.DeleteFunc(v.Stories, func(s Story) bool {
		if len(s.schedule) < 2 || isPromise(s.schedule[0].Fault) {
			return false
		}
		return slices.ContainsFunc(v.Stories, func(o Story) bool {
			return len(o.schedule) == 1 && o.column == s.column && o.Outcome == s.Outcome && s.schedule.has(o.schedule[0].Fault)
		})
	})
}
