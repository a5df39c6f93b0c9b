package drill

import (
	"strings"
	"testing"
)

// What happened twice counts, whatever else was lost.
func TestAScheduleCanEndTwiceAndLost(t *testing.T) {
	v := &Verdict{}
	for _, schedule := range []struct {
		breaks Schedule
		ends   map[string]Outcome
	}{
		{Schedule{{AnswerLost, 1}}, map[string]Outcome{"charge": Twice, "mail": Lost}},
		{Schedule{{AnswerLost, 2}}, map[string]Outcome{"charge": Twice, "mail": Once}},
		{Schedule{{AnswerLost, 3}}, map[string]Outcome{"charge": Once, "mail": Unknown}},
		{Schedule{{HalfWindow, 0}, {WindowCreeps, 4}}, map[string]Outcome{"charge": Twice, "mail": Lost}},
	} {
		tried := &trial{schedule: schedule.breaks}
		tried.verdict.columns = map[string]Outcome{}
		for step, o := range schedule.ends {
			tried.found(step, finding{step: step, outcome: o})
		}
		v.add(tried)
	}
	if v.Schedules != 4 || v.Twice != 3 || v.Lost != 2 || v.Unknown != 1 {
		t.Errorf("%d schedules, %d twice, %d lost, %d unknown; want 4, 3, 2, 1", v.Schedules, v.Twice, v.Lost, v.Unknown)
	}
	if text := v.conclusion(); !strings.Contains(text, "A destination broke a promise in 1 of them, and 1 of those are twice or lost") || strings.Contains(text, "Where promises were kept") {
		t.Errorf("the conclusion is\n%s", text)
	}
}
