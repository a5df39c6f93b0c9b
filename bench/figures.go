package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// figures are the medians of the runs of each point.
type figures map[point]run

// medians takes the median of every column over the rounds. Runs that others
// disturbed count only for points without a better one.
func medians(runs []run) figures {
	byPoint := map[point][]run{}
	for _, r := range runs {
		byPoint[r.point] = append(byPoint[r.point], r)
	}
	f := figures{}
	for p, all := range byPoint {
		calm := slices.DeleteFunc(slices.Clone(all), func(r run) bool { return r.others > disturbed })
		if len(calm) == 0 {
			calm = all
		}
		pick := func(column func(run) float64) float64 { return median(calm, column) }
		f[p] = run{
			point: p, measurement: measurement{
				Effects: int(pick(run.throughput)), Seconds: 1,
				P50: pick(func(r run) float64 { return r.P50 }), P99: pick(func(r run) float64 { return r.P99 }),
				Starting: pick(run.throughput)/pick(run.withStarts) - 1,
			},
			commits: pick(func(r run) float64 { return r.commits }), flushes: pick(func(r run) float64 { return r.flushes }),
			bytes: pick(func(r run) float64 { return r.bytes }), client: pick(func(r run) float64 { return r.client }),
			server: pick(func(r run) float64 { return r.server }), others: pick(func(r run) float64 { return r.others }),
		}
	}
	return f
}

func median(runs []run, column func(run) float64) float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = column(r)
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 1 {
		return values[mid]
	}
	return (values[mid-1] + values[mid]) / 2
}

// ratio is how many times the throughput of another contender p has; ok is
// false if one was not measured.
func (f figures) ratio(p point, to string) (ratio float64, ok bool) {
	a, okA := f[p]
	b, okB := f[p.of(to)]
	return a.throughput() / b.throughput(), okA && okB && b.throughput() > 0
}

// print writes one row for each point.
func (f figures) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "callers\twho\teffects/s\tx raw\tx bare\tp50 µs\tp99 µs\tcommits\tflushes\tbytes\tclient µs\tserver µs\tothers\t")
	for _, p := range f.points() {
		r := f[p]
		fmt.Fprintf(t, "%d\t%s\t%.0f\t%s\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t%.2f%s\t\n", p.callers, p.who, r.throughput(),
			f.times(p, raw), f.times(p, bare), r.P50, r.P99, r.commits, r.flushes, r.bytes, r.client, r.server, r.others, r.mark())
	}
	return t.Flush()
}

// printRuns is print for runs. CPU is for each step: of the process, and of all
// server processes.
func (f figures) printRuns(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "in flight\tsteps\twho\truns/s\tsteps/s\tx dbos\tx river\tp50 µs\tp99 µs\tcommits\tflushes\tbytes\tclient µs/step\tserver µs/step\tothers\t")
	for _, p := range f.points() {
		r, steps, in := f[p], float64(p.steps), strconv.Itoa(p.callers)
		if p.backlog > 0 {
			in = "backlog"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%.0f\t%s\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t%.2f%s\t\n", in, p.steps, p.who, r.throughput(), steps*r.throughput(),
			f.times(p, dbos), f.times(p, river), r.P50, r.P99, r.commits, r.flushes, r.bytes, r.client/steps, r.server/steps, r.others, r.mark())
		if p.backlog > 0 {
			fmt.Fprintf(t, "and started\t%d\t%s\t%.0f\t%.0f\t\t%.2f\t\t\t\t\t\t\t\t\t\n", p.steps, p.who, r.withStarts(), steps*r.withStarts(), r.withStarts()/f[p.of(river)].withStarts())
		}
	}
	return t.Flush()
}

// points are those measured, in the order of a table.
func (f figures) points() []point {
	order := []string{raw, bare, ours, grown, dbos, goWorkflows, goWorkflowsTuned, river, riverTuned}
	return slices.SortedFunc(maps.Keys(f), func(a, b point) int {
		return cmp.Or(a.backlog-b.backlog, a.callers-b.callers, a.steps-b.steps, slices.Index(order, a.who)-slices.Index(order, b.who))
	})
}

func (r run) mark() string {
	if r.others > disturbed {
		return "!"
	}
	return ""
}

func (f figures) times(p point, to string) string {
	ratio, ok := f.ratio(p, to)
	if !ok || p.who == to {
		return ""
	}
	return fmt.Sprintf("%.2f", ratio)
}

// durable fails where a lone caller's effects did not reach the disk, whatever
// the settings say: two commits need two flushes of a device with a cache.
func (f figures) durable(d device) error {
	if !d.cached {
		return nil
	}
	for _, who := range []string{raw, bare, ours} {
		p := point{who: who, callers: 1}
		if _, ok := f[p]; !ok {
			p.steps = 1
		}
		if r, ok := f[p]; ok && r.flushes < 1.8 {
			return fmt.Errorf("%s made two commits per effect with %.2f flushes of %s: they are not durable, so no figure is printed", who, r.flushes, d.name)
		}
	}
	return nil
}

// target is what a figure must reach.
type target struct {
	what  string
	point point // to profile where it is missed
	got   float64
	want  float64
	most  bool // got must not exceed want, instead of reaching it
}

func (t target) met() bool {
	if t.most {
		return t.got <= t.want
	}
	return t.got >= t.want
}

func (t target) String() string {
	verdict, bound := "missed", "at least"
	if t.met() {
		verdict = "met"
	}
	if t.most {
		bound = "at most"
	}
	return fmt.Sprintf("%-6s  %s: %.2f, wanted %s %s", verdict, t.what, t.got, bound, strings.TrimSuffix(fmt.Sprintf("%.2f", t.want), ".00"))
}
