package drill

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// replayed is what one schedule came to.
func (v *Verdict) replayed(b *strings.Builder) {
	r := v.Rows[0]
	fmt.Fprintf(b, "What happens: %s\n", v.When)
	for _, line := range v.Replay {
		b.WriteString(wrapped(line, ""))
	}
	b.WriteString("\nWhat came of it:\n")
	names := 0
	for _, step := range v.Steps {
		names = max(names, utf8.RuneCountInString(step))
	}
	for _, step := range v.Steps {
		o := r.Cells[step]
		fmt.Fprintf(b, "  %-*s  %-7s  %s\n", names, step, o.short(), o.meaning())
	}
	for i, s := range v.Stories {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(wrapped(fmt.Sprintf("%s %s: %s", s.Outcome.short(), s.Step, s.Why), ""))
	}
}

// stories tells how bad outcomes came about: the first of each step and outcome
// in full, and of the others how to have them told.
func (v *Verdict) stories(b *strings.Builder) {
	type kind struct {
		column  string
		outcome Outcome
	}
	var order []kind
	told := map[kind][]Story{}
	for _, s := range v.Stories {
		k := kind{withoutItems(s.Step), s.Outcome}
		if told[k] == nil {
			order = append(order, k)
		}
		told[k] = append(told[k], s)
	}
	for _, k := range order {
		first, rest := told[k][0], told[k][1:]
		b.WriteString("\n" + wrapped(fmt.Sprintf("%s %s: %s", k.outcome.short(), first.Step, first.Why), ""))
		b.WriteString(wrapped("when: "+first.When, "  "))
		for _, line := range first.Lines {
			b.WriteString(wrapped(line, ""))
		}
		fmt.Fprintf(b, "  again with: %s\n", v.again(first.Seed))
		if len(rest) == 0 {
			continue
		}
		b.WriteString("  and so, too, with:\n")
		seeds := 0
		for _, s := range rest {
			seeds = max(seeds, len(s.Seed))
		}
		for _, s := range rest {
			fmt.Fprintf(b, "    %-*s  %s\n", seeds, s.Seed, s.When)
		}
	}
}

// again says how a story is told again.
func (v *Verdict) again(seed string) string {
	if v.Command == "" {
		return fmt.Sprintf("drill.ParseSchedule(%q) as Options.Replay", seed)
	}
	return v.Command + " " + seed
}

// conclusion is the verdict in words, and what it does not say.
func (v *Verdict) conclusion() string {
	var b strings.Builder
	switch {
	case v.Replay != nil && v.OK():
		b.WriteString("Nothing happened twice, and nothing was lost.")
	case v.Replay != nil:
		b.WriteString("Something happened twice, or was lost.")
	default:
		fmt.Fprintf(&b, "%d schedules: %d twice, %d lost", v.Schedules, v.Twice, v.Lost)
		if v.Unknown > 0 {
			fmt.Fprintf(&b, "; %d ended unknown and wait for a person", v.Unknown)
		}
		if v.Held > 0 {
			fmt.Fprintf(&b, "; after %d the run is held though nothing calls for it", v.Held)
		}
		b.WriteString(".")
	}
	b.WriteString("\n")
	if v.Naive || v.Replay != nil {
		return b.String()
	}
	broken, tried, kept := 0, 0, 0
	plain, promised := v.rows()
	for _, r := range promised {
		tried += r.Schedules
		broken += r.bad
	}
	for _, r := range plain {
		kept += r.bad
	}
	switch {
	case tried > 0:
		fmt.Fprintf(&b, "A destination broke a promise in %d of them, and %d of those are twice or lost: that is what a wrong contract costs.\n"+
			"Whether the real destination keeps its promises, semel probe finds out.", tried, broken)
		if v.OK() {
			break
		}
		if kept == 0 {
			b.WriteString("\nWhere promises were kept, nothing happened twice and nothing was lost.")
		}
	default:
		b.WriteString("Simulated destinations keep the contract that is declared: that a contract is wrong does not show here. " +
			"--adverse breaks its promises, and semel probe asks the real destination.")
	}
	return wrapped(b.String(), "")
}
