package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/semel-dev/semel/schedule"
)

// between returns the ticks from one instant, inclusive, to another, exclusive.
func between(spec schedule.Spec, from, to time.Time) []schedule.Tick {
	var ticks []schedule.Tick
	for tick, ok := spec.Next(from.Add(-1)); ok && tick.At.Before(to); tick, ok = spec.Next(tick.At) {
		ticks = append(ticks, tick)
	}
	return ticks
}

// starts renders ticks as instant and label.
func starts(ticks []schedule.Tick) []string {
	var lines []string
	for _, tick := range ticks {
		lines = append(lines, tick.At.Format("2006-01-02T15:04Z")+" "+tick.Label)
	}
	return lines
}

// TestClockChanges has all steps of C36, and what other zones add to it.
func TestClockChanges(t *testing.T) {
	tests := map[string]struct {
		cron, zone, from, to string
		want                 []string
	}{
		"C36 step 1: a skipped time fires at the end of the gap": {
			"30 2 * * *", "America/New_York", "2027-03-13T00:00:00-05:00", "2027-03-16T00:00:00-04:00",
			[]string{"2027-03-13T07:30Z 2027-03-13T02:30", "2027-03-14T07:00Z 2027-03-14T02:30", "2027-03-15T06:30Z 2027-03-15T02:30"},
		},
		"C36 step 2: a repeated time fires the first time": {
			"30 1 * * *", "America/New_York", "2026-10-31T00:00:00-04:00", "2026-11-03T00:00:00-05:00",
			[]string{"2026-10-31T05:30Z 2026-10-31T01:30", "2026-11-01T05:30Z 2026-11-01T01:30", "2026-11-02T06:30Z 2026-11-02T01:30"},
		},
		"C36 step 3: every quarter fires in both repeated hours": {
			"*/15 * * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z",
			[]string{
				"2026-11-01T05:00Z 2026-11-01T05:00Z", "2026-11-01T05:15Z 2026-11-01T05:15Z", "2026-11-01T05:30Z 2026-11-01T05:30Z", "2026-11-01T05:45Z 2026-11-01T05:45Z",
				"2026-11-01T06:00Z 2026-11-01T06:00Z", "2026-11-01T06:15Z 2026-11-01T06:15Z", "2026-11-01T06:30Z 2026-11-01T06:30Z", "2026-11-01T06:45Z 2026-11-01T06:45Z",
			},
		},
		"C36 step 3: every quarter goes on over a gap": {
			"*/15 * * * *", "America/New_York", "2027-03-14T06:00:00Z", "2027-03-14T08:00:00Z",
			[]string{
				"2027-03-14T06:00Z 2027-03-14T06:00Z", "2027-03-14T06:15Z 2027-03-14T06:15Z", "2027-03-14T06:30Z 2027-03-14T06:30Z", "2027-03-14T06:45Z 2027-03-14T06:45Z",
				"2027-03-14T07:00Z 2027-03-14T07:00Z", "2027-03-14T07:15Z 2027-03-14T07:15Z", "2027-03-14T07:30Z 2027-03-14T07:30Z", "2027-03-14T07:45Z 2027-03-14T07:45Z",
			},
		},
		"C36 step 4: the 02:00 of 9 March 2025 is not lost": {
			"0 2 * * *", "America/Los_Angeles", "2025-03-08T00:00:00-08:00", "2025-03-11T00:00:00-07:00",
			[]string{"2025-03-08T10:00Z 2025-03-08T02:00", "2025-03-09T10:00Z 2025-03-09T02:00", "2025-03-10T09:00Z 2025-03-10T02:00"},
		},
		"asked between the two 01:30s": {
			"30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", "2026-11-03T05:00:00Z",
			[]string{"2026-11-02T06:30Z 2026-11-02T01:30"},
		},
		"asked as the clocks go back": {
			"30 1 * * *", "America/New_York", "2026-11-01T06:00:00.000000001Z", "2026-11-03T05:00:00Z",
			[]string{"2026-11-02T06:30Z 2026-11-02T01:30"},
		},
		"the hour at which the clocks go back comes once": {
			"0 2 * * *", "America/New_York", "2026-11-01T06:10:00Z", "2026-11-02T05:00:00Z",
			[]string{"2026-11-01T07:00Z 2026-11-01T02:00"},
		},
		"the last day of a leap year beyond the tables of a zone": {
			"0 12 31 12 *", "America/New_York", "2040-12-01T00:00:00Z", "2041-12-01T00:00:00Z",
			[]string{"2040-12-31T17:00Z 2040-12-31T12:00"},
		},
		"over leap years beyond the tables of a zone": {
			"* * * 2 MON#5", "America/New_York", "2027-01-01T00:00:00Z", "2044-02-29T05:02:00Z",
			[]string{"2044-02-29T05:00Z 2044-02-29T05:00Z", "2044-02-29T05:01Z 2044-02-29T05:01Z"},
		},
		"several skipped times are one tick": {
			"0,30 2 * * *", "America/New_York", "2027-03-14T05:00:00Z", "2027-03-15T05:00:00Z",
			[]string{"2027-03-14T07:00Z 2027-03-14T02:30"},
		},
		"a skipped time that meets the next is one tick": {
			"0 2,3 * * *", "America/New_York", "2027-03-14T05:00:00Z", "2027-03-15T05:00:00Z",
			[]string{"2027-03-14T07:00Z 2027-03-14T03:00"},
		},
		"every hour in a half-hour gap": {
			"0 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", "2026-10-03T17:30:00Z",
			[]string{"2026-10-03T14:30Z 2026-10-03T14:30Z", "2026-10-03T16:00Z 2026-10-03T16:00Z", "2026-10-03T17:00Z 2026-10-03T17:00Z"},
		},
		"a fixed time in a half-hour gap": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-04T00:00:00Z",
			[]string{"2026-10-03T15:30Z 2026-10-04T02:15"},
		},
		"a gap that ends at midnight": {
			"30 23 * * *", "America/Nuuk", "2024-03-29T12:00:00Z", "2024-04-01T12:00:00Z",
			[]string{"2024-03-30T01:30Z 2024-03-29T23:30", "2024-03-31T01:00Z 2024-03-30T23:30", "2024-04-01T00:30Z 2024-03-31T23:30"},
		},
		"a gap that begins at midnight": {
			"@daily", "Africa/Cairo", "2024-04-25T12:00:00Z", "2024-04-27T12:00:00Z",
			[]string{"2024-04-25T22:00Z 2024-04-26T00:00", "2024-04-26T21:00Z 2024-04-27T00:00"},
		},
		"a date left out": {
			"0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z",
			[]string{"2011-12-29T19:00Z 2011-12-29T09:00", "2011-12-30T19:00Z 2011-12-31T09:00", "2011-12-31T19:00Z 2012-01-01T09:00"},
		},
		"midnight after a date left out": {
			"0 0,12 * * *", "Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-31T00:00:00Z",
			[]string{"2011-12-29T10:00Z 2011-12-29T00:00", "2011-12-29T22:00Z 2011-12-29T12:00", "2011-12-30T10:00Z 2011-12-31T00:00", "2011-12-30T22:00Z 2011-12-31T12:00"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := starts(between(parse(t, test.cron, test.zone), at(t, test.from), at(t, test.to)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ticks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTickTellsDateAndLocalTime(t *testing.T) {
	tests := map[string]struct {
		cron, after string
		want        schedule.Tick
	}{
		"in a gap": {"30 2 * * *", "2027-03-14T05:00:00Z", schedule.Tick{
			At: at(t, "2027-03-14T07:00:00Z"), Label: "2027-03-14T02:30", Date: "2027-03-14", Local: "2027-03-14T03:00:00-04:00",
		}},
		"by elapsed time": {"0 * * * *", "2027-03-14T02:30:00Z", schedule.Tick{
			At: at(t, "2027-03-14T03:00:00Z"), Label: "2027-03-14T03:00Z", Date: "2027-03-13", Local: "2027-03-13T22:00:00-05:00",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := parse(t, test.cron, "America/New_York").Next(at(t, test.after))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("tick (-want +got):\n%s", diff)
			}
		})
	}
}

func TestZeroSpecNeverFires(t *testing.T) {
	if tick, ok := (schedule.Spec{}).Next(time.Time{}); ok {
		t.Errorf("tick %+v", tick)
	}
}

// spec is a cron expression with its meaning written a second time.
type spec struct {
	cron    string
	elapsed bool
	matches func(shown time.Time) bool
}

var specs = []spec{
	{"* * * * SUN", true, func(c time.Time) bool { return c.Weekday() == time.Sunday }},
	{"*/30 * * * *", true, func(c time.Time) bool { return c.Minute()%30 == 0 }},
	{"45 0-23 * * *", true, func(c time.Time) bool { return c.Minute() == 45 }},
	{"0 * 1 * *", true, func(c time.Time) bool { return c.Minute() == 0 && c.Day() == 1 }},
	{"30 2 * * *", false, func(c time.Time) bool { return c.Minute() == 30 && c.Hour() == 2 }},
	{"30 1 * * *", false, func(c time.Time) bool { return c.Minute() == 30 && c.Hour() == 1 }},
	{"@daily", false, func(c time.Time) bool { return c.Minute() == 0 && c.Hour() == 0 }},
	{"15,50 23,0,1 * * *", false, func(c time.Time) bool {
		return (c.Minute() == 15 || c.Minute() == 50) && (c.Hour() >= 23 || c.Hour() <= 1)
	}},
	{"0 */2 * * *", false, func(c time.Time) bool { return c.Minute() == 0 && c.Hour()%2 == 0 }},
	{"* 2 * * SUN", false, func(c time.Time) bool { return c.Hour() == 2 && c.Weekday() == time.Sunday }},
	{"*/20 0-3 * * FRI-SUN", false, func(c time.Time) bool {
		return c.Minute()%20 == 0 && c.Hour() <= 3 && (c.Weekday() >= time.Friday || c.Weekday() == time.Sunday)
	}},
	{"0 12 L * *", false, func(c time.Time) bool { return c.Minute() == 0 && c.Hour() == 12 && c.AddDate(0, 0, 1).Day() == 1 }},
	{"0 9 13 * 5", false, func(c time.Time) bool {
		return c.Minute() == 0 && c.Hour() == 9 && (c.Day() == 13 || c.Weekday() == time.Friday)
	}},
}

// reference walks minute by minute: shown is what the clocks show at each
// minute since from, dates are those they ever show.
func reference(s spec, from time.Time, shown []time.Time, dates map[int]bool) []string {
	var lines []string
	furthest := shown[0]
	for i, c := range shown {
		now := from.Add(time.Duration(i) * time.Minute)
		if s.elapsed {
			if s.matches(c) {
				lines = append(lines, now.Format("2006-01-02T15:04Z 2006-01-02T15:04Z"))
			}
			continue
		}
		label := ""
		for furthest.Before(c) {
			furthest = furthest.Add(time.Minute)
			if s.matches(furthest) && dates[dateNumber(furthest)] {
				label = furthest.Format("2006-01-02T15:04")
			}
		}
		if label != "" {
			lines = append(lines, now.Format("2006-01-02T15:04Z ")+label)
		}
	}
	return lines
}

func dateNumber(c time.Time) int { return c.Year()*1000 + c.YearDay() }

func TestTicksAreThoseOfAMinuteByMinuteWalk(t *testing.T) {
	const years = 1
	for zone, start := range map[string]int{
		"America/New_York": 2026, "America/Los_Angeles": 2025, "Europe/Berlin": 2026, "Australia/Lord_Howe": 2026, "Pacific/Apia": 2011,
		"Asia/Kathmandu": 1985, "UTC": 2026, "America/Nuuk": 2023, "Africa/Cairo": 2023, "Africa/Casablanca": 2026, "Antarctica/Troll": 2026,
		"America/Sao_Paulo": 2017, "Pacific/Kwajalein": 1993, "Europe/Dublin": 2096,
	} {
		t.Run(zone, func(t *testing.T) {
			location, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			from, to := time.Date(start, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(start+years, 1, 1, 0, 0, 0, 0, time.UTC)
			var shown []time.Time
			dates := map[int]bool{}
			for now := from; now.Before(to); now = now.Add(time.Minute) {
				c := now.In(location)
				shown = append(shown, time.Date(c.Year(), c.Month(), c.Day(), c.Hour(), c.Minute(), 0, 0, time.UTC))
				dates[dateNumber(c)] = true
			}
			for _, s := range specs {
				want := reference(s, from, shown, dates)
				first := from.Add(time.Minute) // the walk cannot see what was shown before it began
				if s.elapsed {
					first = from
				}
				got := starts(between(parse(t, s.cron, zone), first, to))
				if !slices.Equal(want, got) { // comparing is quicker than looking for a difference
					t.Errorf("%s (-want +got):\n%s", s.cron, cmp.Diff(want, got))
				}
			}
		})
	}
}

// TestNextAgreesWithItself asks at random instants: whatever the instant, Next
// is the first tick after it of one and the same sequence.
func TestNextAgreesWithItself(t *testing.T) {
	zones := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC", "Africa/Monrovia", "America/Nuuk"}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		number := func(name string, low, high int) string { return fmt.Sprint(rapid.IntRange(low, high).Draw(t, name)) }
		hour := rapid.SampledFrom([]string{"*", number("hour", 0, 23), "0-3", "*/6", "22-2"}).Draw(t, "hours")
		minute := rapid.SampledFrom([]string{"*", number("minute", 0, 59), "*/7"}).Draw(t, "minutes")
		cron := minute + " " + hour + " * * " + rapid.SampledFrom([]string{"*", "SUN", "MON-FRI"}).Draw(t, "weekday")
		parsed, err := schedule.Parse(cron, zone)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(rapid.Int64Range(0, 2_500_000_000).Draw(t, "start"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
		if rapid.Bool().Draw(t, "near a change") {
			location, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			if _, end := start.In(location).ZoneBounds(); !end.IsZero() {
				start = end.Add(time.Duration(rapid.Int64Range(-int64(4*time.Hour), int64(4*time.Hour)).Draw(t, "from the change")))
			}
		}
		labels := map[string]bool{}
		for range 20 {
			tick, ok := parsed.Next(start)
			if !ok || !tick.At.After(start) || labels[tick.Label] {
				t.Fatalf("%q in %s: tick %+v, %v after %v, labels so far %v", cron, zone, tick, ok, start, labels)
			}
			labels[tick.Label] = true
			inside := start.Add(time.Duration(rapid.Int64Range(0, int64(tick.At.Sub(start))-1).Draw(t, "inside")))
			if again, _ := parsed.Next(inside); again != tick {
				t.Fatalf("%q in %s: after %v comes %+v, but after %v %+v", cron, zone, start, tick, inside, again)
			}
			start = tick.At
		}
	})
}
