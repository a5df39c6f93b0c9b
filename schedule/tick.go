package schedule

import "time"

// Tick is one start that a schedule asks for.
type Tick struct {
	// At is the instant to start, in UTC.
	At time.Time
	// Label names the tick among all ticks of its Spec and is the run key:
	// 2027-03-14T02:30 by the wall clock, 2027-03-14T07:30Z by elapsed time.
	Label string
	// Date is the local date the tick belongs to, for example 2027-03-14. It is
	// that of the label, or of At for a label in UTC.
	Date string
	// Local is what the clocks of the zone show at At, with their offset, for
	// example 2027-03-14T03:00:00-04:00.
	Local string
}

// Next returns the first tick after an instant. Ticks follow each other with
// strictly increasing At, and no two have one label. ok is false for the zero
// Spec only.
func (s Spec) Next(after time.Time) (tick Tick, ok bool) {
	switch {
	case s.calendar == nil:
		return Tick{}, false
	case s.elapsed:
		return s.nextElapsed(after)
	default:
		return s.nextOnWall(after)
	}
}

// nextElapsed looks for a shown time between one change of the clocks and the
// next, where what they show and what elapses is the same.
func (s Spec) nextElapsed(after time.Time) (Tick, bool) {
	from := s.zone.shown(after)
	for {
		c := s.calendar.Next(from)
		if c.IsZero() {
			return Tick{}, false
		}
		at, end := c.Add(-s.zone.offset(after)), s.zone.nextChange(after)
		if end.IsZero() || at.Before(end) {
			return s.tick(at, at.Format("2006-01-02T15:04Z"), c), true
		}
		after, from = end, s.zone.shown(end).Add(-1)
	}
}

// nextOnWall looks for a time that the clocks have not reached yet. Those that
// a gap makes them reach at once are one tick.
func (s Spec) nextOnWall(after time.Time) (Tick, bool) {
	c := s.zone.furthest(after)
	for {
		c = s.calendar.Next(c)
		if c.IsZero() {
			return Tick{}, false
		}
		at := s.zone.reached(c)
		shown := s.zone.shown(at)
		for shown.After(c) {
			later := s.calendar.Next(c)
			if later.IsZero() || later.After(shown) {
				break
			}
			c = later
		}
		if shown.After(c) && s.zone.leavesOut(c) {
			continue
		}
		return s.tick(at, c.Format("2006-01-02T15:04"), c), true
	}
}

func (s Spec) tick(at time.Time, label string, c time.Time) Tick {
	return Tick{At: at, Label: label, Date: c.Format(time.DateOnly), Local: at.In(s.zone.location).Format(time.RFC3339)}
}
