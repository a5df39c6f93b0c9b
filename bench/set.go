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
)

// equal is the ratio above which two rates count as equal: medians of three
// rounds differ by as much when nothing has changed.
const equal = 0.97

func defaultCallers(set, store string) []int {
	switch {
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

func contenders(set string) []string {
	if set == setGrowth {
		return []string{ours, grown}
	}
	return []string{raw, bare, ours}
}

// targets compares the figures with what issue 2 asks for.
func (o options) targets(f figures) []target {
	var all []target
	atLeast := func(want, got float64, ok bool, callers int, what string) {
		if ok {
			all = append(all, target{what: fmt.Sprintf("%s, %s, %d callers: %s", o.set, o.store, callers, what), callers: callers, got: got, want: want})
		}
	}
	for _, n := range o.callers {
		toRaw, okRaw := f.ratio(ours, raw, n)
		toBare, okBare := f.ratio(ours, bare, n)
		toOne, okOne := f[point{ours, n}].throughput()/f[point{ours, 1}].throughput(), slices.Contains(o.callers, 1)
		toEmpty, okEmpty := f.ratio(grown, ours, n)
		switch {
		case o.set == setGrowth:
			atLeast(0.85, toEmpty, okEmpty, n, fmt.Sprintf("with %d operations stored, of the rate with none", o.rows))
		case o.set == setSlow:
			atLeast(equal, toRaw, okRaw, n, "times plain connections")
		case o.store == onSQLite && n == 64:
			atLeast(8, toOne, okOne, n, "times its own rate with 1 caller")
		case o.store == onPostgres && n == 1:
			all = append(all, target{
				what: "callers, postgres, 1 caller: times the latency of two raw commits (p50)", callers: 1,
				got: f[point{ours, 1}].P50 / f[point{raw, 1}].P50, want: 1.3, most: true,
			})
		case o.store == onPostgres && n >= 128:
			atLeast(4, toRaw, okRaw, n, "times one connection each")
			atLeast(0.8, toBare, okBare, n, "of the bare group commit")
		}
	}
	return all
}
