package drill

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTo writes the table, the stories and what they mean, for people.
func (v *Verdict) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	if v.Replay != nil {
		fmt.Fprintln(&b, strings.Join(v.Replay, "\n"))
		fmt.Fprintln(&b)
	}
	v.table(&b)
	naively := ""
	if v.Naive {
		naively = "--naive "
		fmt.Fprintln(&b, "\n"+naiveNote)
	}
	for _, s := range v.Stories {
		fmt.Fprintf(&b, "\n%s: %s: %s\n", strings.ToUpper(string(s.Outcome)), s.Step, s.Why)
		if v.Replay == nil {
			fmt.Fprintln(&b, strings.Join(s.Lines, "\n"))
		}
		fmt.Fprintf(&b, "  again with: %s--replay %s\n", naively, s.Seed)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

func (v *Verdict) table(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "WHAT BREAKS\tTRIED\t"+strings.Join(v.Steps, "\t"))
	for _, r := range v.Rows {
		cells := make([]string, len(v.Steps))
		for i, step := range v.Steps {
			cells[i] = r.Cells[step].short()
		}
		fmt.Fprintf(t, "%s\t%d\t%s\n", r.Words, r.Schedules, strings.Join(cells, "\t"))
	}
	_ = t.Flush()
}

// short is the outcome in a cell.
func (o Outcome) short() string {
	switch o {
	case "":
		return "-"
	case Unknown:
		return "unknown"
	case Never:
		return "never"
	case Twice:
		return "TWICE"
	case Lost:
		return "LOST"
	case Once:
	}
	return string(o)
}
