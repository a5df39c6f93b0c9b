package cases

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// ticking is a workflow with schedules, whose runs post their label and what
// their input says. Nothing at the destination is joined by a key: two runs of
// one label would be two effects.
func ticking(name string, version int, schedules ...semel.Schedule) flows {
	return func(p place) []semel.WorkflowDefinition {
		fire := p.action("fire", none())
		wf := semel.Workflow[order]{
			Name: name, Version: version, Schedules: schedules, Actions: []semel.Definition{fire.Definition()},
			Func: func(ctx semel.Context, o order) error {
				run := ctx.Run()
				_, err := semel.Do(ctx, fire, order{ID: fmt.Sprintf("%s %s %s", run.Trigger.Tick.Label, o.ID, run.ID)})
				return err
			},
		}
		return []semel.WorkflowDefinition{wf.Definition()}
	}
}

// minutelyFlows fires every minute, and makes up for every minute that was
// missed.
func minutelyFlows(p place) []semel.WorkflowDefinition { return everyMinute("v1", 1)(p) }

func everyMinute(body string, version int) flows {
	return ticking("minutely", version, semel.Schedule{Cron: "* * * * *", Zone: "UTC", Missed: "all", Input: fmt.Appendf(nil, `{"id":%q}`, body)})
}

// fired lists what fired: label and body of each effect, sorted.
func (r *rig) fired() []string {
	var all []string
	for _, a := range r.dest.seen() {
		var o order
		if err := json.Unmarshal(a.body, &o); err != nil {
			r.Fatal(err)
		}
		parts := strings.Fields(o.ID)
		all = append(all, parts[0]+" "+parts[1])
	}
	sort.Strings(all)
	return all
}

func (r *rig) wantFired(want ...string) {
	r.Helper()
	if got := r.fired(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.Fatalf("fired:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// timed is a worker whose store's clock is moved from time to time.
type timed struct {
	*hand
	shift time.Duration
}

// handAt is a worker whose store shows a time.
func (r *rig) handAt(at time.Time, f flows) *timed {
	r.Helper()
	store, shift := r.open(), time.Until(at)
	store.Shift(shift)
	return &timed{r.handOn(store, engine.Options{}, f), shift}
}

// moveTo moves the clock forward, from what it shows by itself and not from the
// latest time that it has seen.
func (h *timed) moveTo(at time.Time) {
	shift := time.Until(at)
	h.store.Shift(shift - h.shift)
	h.shift = shift
}

// passAll has workers execute what is due, all at once.
func passAll(r *rig, hands ...*timed) {
	r.Helper()
	var wg sync.WaitGroup
	for _, h := range hands {
		wg.Go(func() {
			if _, err := h.worker.Pass(r.Context()); err != nil {
				r.Error(err)
			}
		})
	}
	wg.Wait()
}

func instant(s string) time.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return at
}

// The store's clock never runs back, so these cases play in a year that is far
// ahead, and whose clocks in New York change on the days of the case's: on March
// 8 at 07:00Z and on November 1 at 06:00Z.

// C36, steps 2 and 5: 01:30 comes twice in New York. By documented rule it fires
// the first time, at 05:30Z, and its label is the local time without an offset,
// so a second start joins. The worker is another one after it, and between the
// two; the machine's clock goes back by 2 s at each look, and the store's does
// not.
func TestC36LocalTimeThatComesTwice(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		nightly := ticking("nightly", 1, semel.Schedule{Cron: "30 1 * * *", Zone: "America/New_York", Input: []byte(`{"id":"v1"}`)})
		var h *timed
		look := func(at string) {
			h = r.handAt(instant(at), nightly)
			passAll(r, h)
			h.store.Shift(-2 * time.Second)
			passAll(r, h)
		}
		look("2037-11-01T05:29:50Z")
		r.wantFired()
		look("2037-11-01T05:30:01Z")
		r.wantFired("2037-11-01T01:30 v1")
		look("2037-11-01T05:59:59Z")
		look("2037-11-01T06:00:01Z")
		look("2037-11-01T06:30:01Z")
		look("2037-11-01T06:59:59Z")
		r.wantFired("2037-11-01T01:30 v1")
		if _, existing := h.start("nightly", 1, "2037-11-01T01:30", order{ID: "v1"}); !existing {
			r.Error("a second start of the label is another run")
		}
		look("2037-11-02T06:30:01Z")
		r.wantFired("2037-11-01T01:30 v1", "2037-11-02T01:30 v1")
		h.wantQuiet()
	})
}

// C36, steps 1 and 3: 02:30 does not come in New York. By documented rule it
// fires at the first instant after the gap, under its own label. A schedule of
// every hour follows elapsed time: it fires eight times in the two hours around
// either change.
func TestC36LocalTimeThatDoesNotCome(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		f := ticking("nightly", 1,
			semel.Schedule{Name: "night", Cron: "30 2 * * *", Zone: "America/New_York", Input: []byte(`{"id":"night"}`)},
			semel.Schedule{Name: "quarter", Cron: "*/15 * * * *", Zone: "America/New_York", Input: []byte(`{"id":"quarter"}`)})
		h := r.handAt(instant("2037-03-08T05:59:00Z"), f)
		passAll(r, h)
		quarters := func(from, to string, others ...string) []string {
			want := others
			for at := instant(from); at.Before(instant(to)); at = at.Add(15 * time.Minute) {
				h.moveTo(at.Add(time.Second))
				passAll(r, h)
				want = append(want, at.Format("2006-01-02T15:04Z")+" quarter")
			}
			sort.Strings(want)
			return want
		}
		want := quarters("2037-03-08T06:00:00Z", "2037-03-08T08:00:00Z", "2037-03-08T02:30 night")
		r.wantFired(want...)
		night := h.find("nightly", "night 2037-03-08T02:30")
		if at := night.Trigger.Tick.At; !at.Equal(instant("2037-03-08T07:00:00Z")) {
			r.Errorf("the tick in the gap is at %v, want 07:00Z", at)
		}
		h.wantQuiet()
	})
}

// find is the run with a key.
func (h *hand) find(workflow string, key semel.Key) semel.Run {
	h.Helper()
	run, err := h.runs.FindRun(h.Context(), workflow, key)
	if err != nil {
		h.Fatal(err)
	}
	return run
}

// C38, steps 1, 3 and 4, with three nodes in one process and a clock that is
// moved: ten minutes have ten labels, each fires once.
//
// By documented rule the newest registered version says what a schedule starts,
// whichever node fires it. An edit at :58 is in force at the next minute; a
// change of zone neither repeats nor skips a minute; a schedule that is paused
// at :59.9 does not fire; one that is deleted and made anew under its name
// counts from then on, and a label that had its run has no second.
func TestC38ThreeNodes(t *testing.T) {
	eachRunStore(t, func(r *rig, _ string) {
		begin := instant("2037-11-01T12:00:30Z")
		var hands []*timed
		for range 3 {
			hands = append(hands, r.handAt(begin, minutelyFlows))
		}
		at := begin
		to := func(next time.Time) {
			at = next
			for _, h := range hands {
				h.moveTo(at)
			}
		}
		mark := at.Truncate(time.Minute)
		var want []string
		minute := func(body string) {
			mark = mark.Add(time.Minute)
			to(mark.Add(10 * time.Millisecond))
			passAll(r, slices.Concat(hands, hands)...)
			if body != "" {
				want = append(want, mark.Format("2006-01-02T15:04Z")+" "+body)
			}
			r.wantFired(want...)
		}
		join := func(f flows) { hands = append(hands, r.handAt(at, f)) }

		for range 10 {
			minute("v1")
		}
		join(minutelyFlows) // a fourth node with an empty cache, at the mark
		passAll(r, hands...)
		r.wantFired(want...)

		to(mark.Add(58 * time.Second))
		join(everyMinute("v2", 2))
		minute("v2")
		minute("v2")
		to(mark.Add(58 * time.Second))
		join(ticking("minutely", 3, semel.Schedule{Cron: "* * * * *", Zone: "Asia/Tokyo", Missed: "all", Input: []byte(`{"id":"v3"}`)}))
		minute("v3")
		join(ticking("minutely", 4)) // without the schedule
		minute("")
		join(everyMinute("v5", 5)) // and with it again
		minute("v5")

		to(mark.Add(59*time.Second + 900*time.Millisecond))
		if err := hands[0].runs.PauseSchedule(r.Context(), "minutely", "", true, "ann"); err != nil {
			r.Fatal(err)
		}
		minute("")
		minute("")
		hands[0].wantQuiet()
	})
}

// C38, steps 1 and 2, with three worker processes over PostgreSQL, which have no
// leader. One is killed with SIGKILL 3 s before each of three minutes; one is
// stopped with SIGSTOP across each of three others, and goes on 5 s after. No
// minute is lost, and none fires twice.
func TestC38KilledAndStoppedNodes(t *testing.T) {
	t.Parallel()
	r, url := onPostgres(t)
	h := r.hand(engine.Options{}, minutelyFlows)
	var total time.Duration
	nodes := make([]*process, 3)
	begin := func(i int) {
		nodes[i] = r.process(job{Database: url, Name: fmt.Sprint("node ", i), Flows: "minutely", Shift: total})
	}
	for i := range nodes {
		begin(i)
	}
	advance := func(d time.Duration) {
		total += d
		h.store.Shift(d)
		for _, p := range nodes {
			if p != nil {
				p.shift(d)
			}
		}
	}
	now := func() time.Time {
		at, err := h.store.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	schedules, err := h.runs.Schedules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := schedules[0].Seen // when it was registered, and counts from
	var want []string
	arrive := func(mark time.Time) {
		advance(mark.Sub(now()) + 10*time.Millisecond)
		for last = last.Truncate(time.Minute).Add(time.Minute); !last.After(mark); last = last.Add(time.Minute) {
			label := last.Format("2006-01-02T15:04Z")
			r.until("the run of "+label, func() bool {
				run, err := h.runs.FindRun(t.Context(), "minutely", semel.Key(label))
				return err == nil && run.State == semel.RunCompleted
			})
			want = append(want, label+" v1")
		}
		last = mark
	}
	for round := range 6 {
		victim := round % 3
		mark := now().Truncate(time.Minute).Add(time.Minute)
		if left := mark.Sub(now()) - 3*time.Second; left > 0 {
			advance(left)
		}
		if round < 3 {
			nodes[victim].kill()
			nodes[victim] = nil
			arrive(mark)
			begin(victim)
			continue
		}
		if err := nodes[victim].Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		arrive(mark)
		advance(5 * time.Second)
		if err := nodes[victim].Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond) // two looks of each node
	}
	r.wantFired(want...)
	h.wantQuiet()
}
