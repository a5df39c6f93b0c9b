package drill

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// What fits on a terminal.
const (
	width     = 100 // columns
	gap       = "  "
	headWidth = 12 // of one line of a step's name
)

// WriteTo writes the table, what its words mean, the stories of what must not
// be, and what all that comes to, for people. Lines are short enough for 100
// columns where words allow it.
func (v *Verdict) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	if v.Replay != nil {
		v.replayed(&b)
	} else {
		v.tables(&b)
		b.WriteString("\n" + legend())
		if v.Naive {
			b.WriteString("\n" + wrapped(strings.ReplaceAll(naiveNote, "\n", " "), ""))
		}
		v.stories(&b)
	}
	b.WriteString("\n" + v.conclusion())
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// legend explains the words of the table.
func legend() string {
	var b strings.Builder
	for _, o := range outcomes {
		b.WriteString(wrapped(fmt.Sprintf("%-7s  %s", o.short(), o.meaning()), ""))
	}
	b.WriteString("A cell holds the worst of its row. With - nothing came of the step.\n")
	return b.String()
}

// tables are the table, in several parts where it is too wide.
func (v *Verdict) tables(b *strings.Builder) {
	broken, promised := v.rows()
	labels, tried := len("WHAT BREAKS"), len("TRIED")
	for _, r := range v.Rows {
		labels, tried = max(labels, utf8.RuneCountInString(r.Words)), max(tried, len(fmt.Sprint(r.Schedules)))
	}
	const before = "and a destination breaks a promise:"
	if len(promised) > 0 {
		labels = max(labels, len(before))
	}
	for i, steps := range parts(v.Steps, width-labels-len(gap)-tried) {
		if i > 0 {
			b.WriteString("\n")
		}
		heads := make([][]string, len(steps))
		high := 1
		for j, step := range steps {
			heads[j] = heading(step)
			high = max(high, len(heads[j]))
		}
		for line := range high {
			cells := make([]string, len(steps))
			for j := range steps {
				if at := line - high + len(heads[j]); at >= 0 {
					cells[j] = heads[j][at]
				}
			}
			label, count := "", ""
			if line == high-1 {
				label, count = "WHAT BREAKS", "TRIED"
			}
			row(b, labels, tried, label, count, steps, cells)
		}
		all := func(rows []Row) {
			for _, r := range rows {
				cells := make([]string, len(steps))
				for j, step := range steps {
					cells[j] = r.Cells[step].short()
				}
				row(b, labels, tried, r.Words, fmt.Sprint(r.Schedules), steps, cells)
			}
		}
		all(broken)
		if len(promised) > 0 {
			b.WriteString(before + "\n")
			all(promised)
		}
	}
}

// rows are those where contracts are kept, pairs last, and those where a promise
// is broken.
func (v *Verdict) rows() (broken, promised []Row) {
	for _, r := range v.Rows {
		if isPromise(r.Fault) {
			promised = append(promised, r)
		} else {
			broken = append(broken, r)
		}
	}
	slices.SortStableFunc(broken, func(a, b Row) int { return cmp.Compare(last(a), last(b)) })
	return broken, promised
}

func last(r Row) int {
	if r.Fault == pairRow {
		return 1
	}
	return 0
}

// row writes one line of the table.
func row(b *strings.Builder, labels, tried int, label, count string, steps, cells []string) {
	var line strings.Builder
	fmt.Fprintf(&line, "%-*s%s%*s", labels, label, gap, tried, count)
	for i, cell := range cells {
		fmt.Fprintf(&line, "%s%-*s", gap, columnWidth(steps[i]), cell)
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// parts splits steps so that each part fits into so many columns.
func parts(steps []string, space int) (out [][]string) {
	left := 0
	for _, step := range steps {
		need := len(gap) + columnWidth(step)
		if len(out) == 0 || need > left {
			out, left = append(out, nil), space
		}
		out[len(out)-1] = append(out[len(out)-1], step)
		left -= need
	}
	return out
}

func columnWidth(step string) int {
	w := len("unknown")
	for _, line := range heading(step) {
		w = max(w, utf8.RuneCountInString(line))
	}
	return w
}

// heading is the name of a step on several lines.
func heading(step string) (lines []string) {
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(step, "/", "/ "), func(r rune) bool { return r == ' ' }) {
		for utf8.RuneCountInString(part) > headWidth {
			runes := []rune(part)
			at := headWidth
			if i := strings.LastIndexAny(string(runes[:headWidth]), "_-"); i > 0 {
				at = utf8.RuneCountInString(string(runes[:headWidth])[:i+1])
			}
			lines, part = append(lines, string(runes[:at])), string(runes[at:])
		}
		lines = append(lines, part)
	}
	return lines
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
	case Held:
		return "held"
	case Twice:
		return "TWICE"
	case Lost:
		return "LOST"
	case Once:
	}
	return string(o)
}

// meaning explains the outcome.
func (o Outcome) meaning() string {
	switch o {
	case Once:
		return "it happened once, and the record says so"
	case Never:
		return "it did not happen, and the record says so"
	case Held:
		return "the run is held, though nothing that broke calls for it"
	case Unknown:
		return "nobody can know whether it happened: nothing is sent again, and a person is asked"
	case Twice:
		return "it happened more often than it was asked for, or against what was allowed"
	case Lost:
		return "the record says something else than the world; or nobody goes on, and nobody is told"
	}
	return "nothing came of it"
}

// wrapped is text in lines that fit, indented by a prefix; further lines of one
// that is too long are indented like its words.
func wrapped(text, prefix string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		line = prefix + line
		hang := prefix
		if clocked(line) {
			hang = strings.Repeat(" ", clockWidth)
		}
		for utf8.RuneCountInString(line) > width {
			at := strings.LastIndex(string([]rune(line)[:width+1]), " ")
			if at <= len(hang) {
				break
			}
			b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
			line = hang + line[at+1:]
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// clockWidth is what stands before the words of a line of a story.
const clockWidth = 14

func clocked(line string) bool {
	return len(line) > clockWidth && line[clockWidth-2:clockWidth] == gap && line[clockWidth-5] == ':'
}
