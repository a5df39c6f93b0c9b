package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// zone converts between instants and what the clocks of a place show. A shown
// time is a time.Time in UTC that stands for a date and a time of day.
type zone struct{ location *time.Location }

// horizon is longer than any change of clocks. The largest in history was one
// day, when a place changed its side of the date line.
const horizon = 48 * time.Hour

func loadZone(name string) (zone, error) {
	const hint = "name a zone of the IANA database, for example Europe/Berlin, or UTC; case matters"
	switch {
	case name == "":
		return zone{}, &semel.InputError{Field: "zone", Problem: "is empty", Hint: hint}
	case name == "Local" || name == "localtime" || name == "posixrules":
		return zone{}, &semel.InputError{Field: "zone", Problem: fmt.Sprintf("%q is another one on each machine", name), Hint: hint}
	case strings.HasPrefix(name, "right/"):
		return zone{}, &semel.InputError{Field: "zone", Problem: fmt.Sprintf("%q counts leap seconds", name), Hint: "leave out right/"}
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return zone{}, &semel.InputError{Field: "zone", Problem: fmt.Sprintf("%q is unknown", name), Hint: hint}
	}
	return zone{location}, nil
}

// shown is what the clocks show at t.
func (z zone) shown(t time.Time) time.Time {
	return t.UTC().Add(z.offset(t))
}

// reached is the first instant at which the clocks show c or later.
func (z zone) reached(c time.Time) time.Time {
	t := c.Add(-horizon)
	for {
		at, end := c.Add(-z.offset(t)), z.nextChange(t)
		if end.IsZero() || at.Before(end) {
			if at.Before(t) { // c was in the gap before this change
				return t
			}
			return at
		}
		t = end
	}
}

// furthest is the latest that the clocks have shown up to t: they are behind it
// after they were put back. Where a change cut it off it ends in .999999999.
func (z zone) furthest(t time.Time) time.Time {
	furthest := z.shown(t)
	before := t.UTC().Add(-horizon)
	for {
		end := z.nextChange(before)
		if end.IsZero() || end.After(t) {
			return furthest
		}
		if last := end.Add(z.offset(before) - 1); last.After(furthest) {
			furthest = last
		}
		before = end
	}
}

// leavesOut reports whether the date of c never came.
func (z zone) leavesOut(c time.Time) bool {
	const day = 24 * time.Hour
	date := c.Truncate(day)
	return !z.shown(z.reached(date)).Before(date.Add(day))
}

// nextChange is an instant after t up to which the offset of t holds; zero for
// ever. It may be one without a change: for years beyond the tables of a zone,
// ZoneBounds takes each for 365 days and ends before the last day of a leap year.
func (z zone) nextChange(t time.Time) time.Time {
	_, end := t.In(z.location).ZoneBounds()
	switch {
	case end.IsZero():
		return end
	case !end.After(t):
		return t.UTC().Add(time.Hour)
	default:
		return end.UTC()
	}
}

func (z zone) offset(t time.Time) time.Duration {
	_, seconds := t.In(z.location).Zone()
	return time.Duration(seconds) * time.Second
}
