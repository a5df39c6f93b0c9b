package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schedule"
)

// decision is a schedule.Due with ticks as times of one day.
type decision struct {
	Fire       []string
	Skipped    int
	Last, Next string
}

func TestMissedTicks(t *testing.T) {
	tests := map[string]struct {
		last, now string
		missed    schedule.Missed
		limit     int
		want      decision
	}{
		"nothing is due":                   {"10:00:00", "10:59:59", schedule.All, 10, decision{Last: "10:00:00", Next: "11:00:00"}},
		"on time, once":                    {"10:00:00", "11:00:00", schedule.Once, 10, decision{Fire: []string{"11:00:00"}, Last: "11:00:00", Next: "12:00:00"}},
		"on time, skip":                    {"10:00:00", "11:00:00", schedule.Skip, 10, decision{Fire: []string{"11:00:00"}, Last: "11:00:00", Next: "12:00:00"}},
		"on time, all":                     {"10:00:00", "11:00:00", schedule.All, 10, decision{Fire: []string{"11:00:00"}, Last: "11:00:00", Next: "12:00:00"}},
		"three missed, once":               {"10:00:00", "13:30:00", schedule.Once, 10, decision{Fire: []string{"13:00:00"}, Skipped: 2, Last: "13:00:00", Next: "14:00:00"}},
		"three missed, unsaid":             {"10:00:00", "13:30:00", "", 10, decision{Fire: []string{"13:00:00"}, Skipped: 2, Last: "13:00:00", Next: "14:00:00"}},
		"three missed, skip":               {"10:00:00", "13:30:00", schedule.Skip, 10, decision{Skipped: 3, Last: "13:00:00", Next: "14:00:00"}},
		"two missed, one in grace, skip":   {"10:00:00", "13:00:59", schedule.Skip, 10, decision{Fire: []string{"13:00:00"}, Skipped: 2, Last: "13:00:00", Next: "14:00:00"}},
		"just out of grace, skip":          {"10:00:00", "11:01:00", schedule.Skip, 10, decision{Skipped: 1, Last: "11:00:00", Next: "12:00:00"}},
		"three missed, all":                {"10:00:00", "13:30:00", schedule.All, 10, decision{Fire: []string{"11:00:00", "12:00:00", "13:00:00"}, Last: "13:00:00", Next: "14:00:00"}},
		"three missed, all, limit two":     {"10:00:00", "13:30:00", schedule.All, 2, decision{Fire: []string{"11:00:00", "12:00:00"}, Last: "12:00:00", Next: "13:00:00"}},
		"the rest of them":                 {"12:00:00", "13:30:00", schedule.All, 2, decision{Fire: []string{"13:00:00"}, Last: "13:00:00", Next: "14:00:00"}},
		"all, no limit is one":             {"10:00:00", "13:30:00", schedule.All, 0, decision{Fire: []string{"11:00:00"}, Last: "11:00:00", Next: "12:00:00"}},
		"the clock went back":              {"11:00:00", "10:59:58", schedule.All, 10, decision{Last: "11:00:00", Next: "12:00:00"}},
		"the clock went back over another": {"13:00:00", "11:30:00", schedule.Once, 10, decision{Last: "13:00:00", Next: "14:00:00"}},
	}
	spec := parse(t, "@hourly", "UTC")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			due := spec.Due(at(t, "2027-03-01T"+test.last+"Z"), at(t, "2027-03-01T"+test.now+"Z"), test.missed, test.limit)
			got := decision{Skipped: due.Skipped, Last: due.Last.Format(time.TimeOnly), Next: due.Next.At.Format(time.TimeOnly)}
			for _, tick := range due.Fire {
				got.Fire = append(got.Fire, tick.At.Format(time.TimeOnly))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Due (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClockSetBackAtEachFire is step 5 of C36: the scheduler restarts between
// the two 01:30s, and its clock goes back two seconds whenever it has fired.
func TestClockSetBackAtEachFire(t *testing.T) {
	for _, missed := range []schedule.Missed{schedule.Once, schedule.Skip, schedule.All} {
		for _, restartAt := range []string{"2026-11-01T05:29:00Z", "2026-11-01T05:30:30Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"} {
			last := at(t, "2026-10-31T12:00:00Z")
			var fired []string
			spec := parse(t, "30 1 * * *", "America/New_York")
			for now := last; now.Before(at(t, "2026-11-02T12:00:00Z")); now = now.Add(20 * time.Second) {
				if now.After(at(t, "2026-11-01T05:29:00Z")) && now.Before(at(t, restartAt)) {
					continue // nobody is there
				}
				due := spec.Due(last, now, missed, 10)
				for _, tick := range due.Fire {
					fired = append(fired, tick.Label)
					now = now.Add(-22 * time.Second) // two before the fire, when it asks again
				}
				last = due.Last
			}
			want := []string{"2026-11-01T01:30", "2026-11-02T01:30"}
			if missed == schedule.Skip && restartAt > "2026-11-01T05:31" {
				want = want[1:] // nobody was there in time
			}
			if diff := cmp.Diff(want, fired); diff != "" {
				t.Errorf("%s, restart at %s: labels (-want +got):\n%s", missed, restartAt, diff)
			}
		}
	}
}

func TestALongAbsenceIsQuick(t *testing.T) {
	last, now := time.Time{}, at(t, "2027-03-01T04:45:30Z") // 10:30:30 in Kathmandu
	for cron, want := range map[string]string{"* * * * *": "2027-03-01T04:45Z", "* 9 * * *": "2027-03-01T09:59", "0 0 29 2 *": "2024-02-29T00:00"} {
		due := parse(t, cron, "Asia/Kathmandu").Due(last, now, schedule.Once, 1)
		if len(due.Fire) != 1 || due.Fire[0].Label != want {
			t.Errorf("%s: fires %+v, want %s", cron, due.Fire, want)
		}
	}
	due := parse(t, "* * * * *", "UTC").Due(last, now, schedule.Once, 1)
	if due.Skipped != schedule.MaxSkipped {
		t.Errorf("skipped %d, want the count to end at %d", due.Skipped, schedule.MaxSkipped)
	}
}

func TestZeroSpecIsNeverDue(t *testing.T) {
	last := at(t, "2027-03-01T10:00:00Z")
	got := schedule.Spec{}.Due(last, last.AddDate(1, 0, 0), schedule.All, 10)
	if diff := cmp.Diff(schedule.Due{Last: last}, got); diff != "" {
		t.Errorf("Due (-want +got):\n%s", diff)
	}
}

func TestMissedIsOneOfThree(t *testing.T) {
	for _, m := range []schedule.Missed{"", schedule.Once, schedule.Skip, schedule.All} {
		if err := m.Validate(); err != nil {
			t.Errorf("%q: %v", m, err)
		}
	}
	err := schedule.Missed("twice").Validate()
	got, _ := errors.AsType[*semel.InputError](err)
	want := &semel.InputError{Field: "missed", Problem: `"twice" is unknown`, Hint: "use once, skip or all"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
