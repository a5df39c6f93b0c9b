package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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

// rate is the throughput of a contender; ok is false if it was not measured.
func (f figures) rate(who string, callers int) (rate float64, ok bool) {
	r, ok := f[point{who, callers}]
	return r.throughput(), ok
}

// ratio is how many times the throughput of one contender the other has.
func (f figures) ratio(who, to string, callers int) (ratio float64, ok bool) {
	a, okA := f.rate(who, callers)
	b, okB := f.rate(to, callers)
	return a / b, okA && okB && b > 0
}

// print writes one row for each point.
func (f figures) print(w io.Writer) error {
	points := make([]point, 0, len(f))
	for p := range f {
		points = append(points, p)
	}
	order := []string{raw, bare, ours, grown}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(a.callers-b.callers, slices.Index(order, a.who)-slices.Index(order, b.who))
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "callers\twho\teffects/s\tx raw\tx bare\tp50 µs\tp99 µs\tcommits\tflushes\tbytes\tclient µs\tserver µs\tothers\t")
	for _, p := range points {
		r := f[p]
		mark := ""
		if r.others > disturbed {
			mark = "!"
		}
		fmt.Fprintf(t, "%d\t%s\t%.0f\t%s\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f\t%.1f\t%.1f\t%.2f%s\t\n", p.callers, p.who, r.throughput(),
			f.times(p, raw), f.times(p, bare), r.P50, r.P99, r.commits, r.flushes, r.bytes, r.client, r.server, r.others, mark)
	}
	return t.Flush()
}

func (f figures) times(p point, to string) string {
	ratio, ok := f.ratio(p.who, to, p.callers)
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
		if r, ok := f[point{who, 1}]; ok && r.flushes < 1.8 {
			return fmt.Errorf("%s made two commits per effect with %.2f flushes of %s: they are not durable, so no figure is printed", who, r.flushes, d.name)
		}
	}
	return nil
}

// target is what a figure must reach.
type target struct {
	what    string
	callers int
	got     float64
	want    float64
	most    bool // got must not exceed want, instead of reaching it
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
