package main

import (
	"fmt"
	"slices"
)

// The sets, as flags name them.
const (
	setCallers = "callers" // beside the bare database
	setGrowth  = "growth"  // many operations stored, beside none
	setSlow    = "slow"    // with a slow fsync, beside plain connections
	setRuns    = "runs"    // runs of steps, beside other engines
	setSleep   = "sleep"   // runs that sleep
)

var sets = []string{setCallers, setGrowth, setSlow, setRuns, setSleep}

// equal is the ratio above which two rates count as equal: medians of three
// rounds differ by as much when nothing has changed.
const equal = 0.97

func defaultCallers(set, store string) []int {
	switch {
	case set == setRuns:
		return []int{1, 32, 256}
	case set == setSlow:
		return []int{1, 32, 128, 256}
	case set == setGrowth && store == onSQLite:
		return []int{1, 64}
	case set == setGrowth:
		return []int{1, 32, 128}
	case store == onSQLite:
		return []int{1, 8, 32, 64, 128, 256}
	}
	return []int{1, 8, 32, 128, 256}
}

// points are what a round measures, contenders next to each other.
func (o options) points() []point {
	var all []point
	for _, n := range o.callers {
		if o.set == setRuns {
			for _, steps := range []int{1, 10} {
				for _, who := range engines(o.store, steps) {
					all = append(all, point{who: who, callers: n, steps: steps})
				}
			}
			continue
		}
		who := []string{raw, bare, ours}
		if o.set == setGrowth {
			who = []string{ours, grown}
		}
		for _, who := range who {
			all = append(all, point{who: who, callers: n})
		}
	}
	if o.set == setRuns && o.backlog > 0 {
		for _, who := range []string{ours, river, riverTuned} {
			all = append(all, o.worked(who))
		}
	}
	return all
}

// worked is the point of a backlog, which so many callers start.
func (o options) worked(who string) point {
	return point{who: who, callers: 256, steps: 1, backlog: o.backlog}
}

// engines are those that have runs of so many steps on a store.
func engines(store string, steps int) []string {
	all := []string{ours, dbos}
	if store == onSQLite {
		all = append(all, goWorkflows, goWorkflowsTuned)
	}
	if steps == 1 {
		all = append(all, river, riverTuned)
	}
	return all
}

// targets compares the figures with what was asked for.
func (o options) targets(f figures) []target {
	if o.set == setRuns {
		return o.runTargets(f)
	}
	var all []target
	atLeast := func(want, got float64, ok bool, p point, what string) {
		if ok {
			all = append(all, target{what: fmt.Sprintf("%s, %s, %v: %s", o.set, o.store, p, what), point: p, got: got, want: want})
		}
	}
	for _, n := range o.callers {
		p := point{who: ours, callers: n}
		one := p
		one.callers = 1
		toRaw, okRaw := f.ratio(p, raw)
		toBare, okBare := f.ratio(p, bare)
		toOne, okOne := f[p].throughput()/f[one].throughput(), slices.Contains(o.callers, 1)
		toEmpty, okEmpty := f.ratio(p.of(grown), ours)
		switch {
		case o.set == setGrowth:
			atLeast(0.85, toEmpty, okEmpty, p.of(grown), fmt.Sprintf("with %d operations stored, of the rate with none", o.rows))
		case o.set == setSlow:
			atLeast(equal, toRaw, okRaw, p, "times plain connections")
		case o.store == onSQLite && n == 64:
			atLeast(8, toOne, okOne, p, "times its own rate with 1 caller")
		case o.store == onPostgres && n == 1:
			all = append(all, target{
				what: "callers, postgres, 1 caller: times the latency of two raw commits (p50)", point: p,
				got: f[p].P50 / f[p.of(raw)].P50, want: 1.3, most: true,
			})
		case o.store == onPostgres && n >= 128:
			atLeast(4, toRaw, okRaw, p, "times one connection each")
			atLeast(0.8, toBare, okBare, p, "of the bare group commit")
		}
	}
	return all
}

// runTargets compares runs with other engines.
func (o options) runTargets(f figures) []target {
	var all []target
	add := func(p point, to string, want float64, what string) {
		if got, ok := f.ratio(p, to); ok {
			all = append(all, target{what: fmt.Sprintf("%s, %s, %v: %s", o.set, o.store, p, what), point: p, got: got, want: want})
		}
	}
	for _, n := range o.callers {
		want := map[int]float64{1: 2, 32: 5, 256: 10}[n]
		what := "times DBOS"
		if o.store == onSQLite {
			want, what = 3, "with FULL, times DBOS with NORMAL"
		}
		if want > 0 {
			add(point{who: ours, callers: n, steps: 1}, dbos, want, "runs/s, "+what)
			add(point{who: ours, callers: n, steps: 10}, dbos, want, "steps/s, "+what)
		}
	}
	if o.store == onPostgres && o.backlog > 0 {
		add(o.worked(ours), river, 1, "times River's rate")
		add(o.worked(ours), riverTuned, 1, "times the rate of River tuned")
	}
	return all
}
