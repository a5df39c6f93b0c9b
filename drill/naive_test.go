package drill_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
)

// naiveShop charges under a key, sends a mail, sets a status and adds a tag.
func naiveShop() semel.WorkflowDefinition {
	action := func(name string, c semel.Contract) semel.Action[order, answer] {
		c.Timeout = 10 * time.Second
		return semel.Action[order, answer]{Name: name, Key: func(o order) string { return o.ID + " " + name }, Send: semel.Effect[order, answer]{
			Connection: name + "s", Destination: nowhere{}, Contract: c,
		}}
	}
	steps := []semel.Action[order, answer]{
		action("charge", semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour}),
		action("mail", semel.Contract{Protection: semel.Unprotected}),
		action("status", semel.Contract{Protection: semel.Absolute}),
		action("tag", semel.Contract{Protection: semel.Commutes}),
	}
	return semel.Workflow[order]{Name: "shop", Func: func(ctx semel.Context, o order) error {
		for _, a := range steps {
			if _, err := semel.Do(ctx, a, o); err != nil {
				return err
			}
		}
		return nil
	}}.Definition()
}

func naively(t *testing.T, def semel.WorkflowDefinition, o drill.Options) *drill.Verdict {
	t.Helper()
	if o.Input == nil {
		o.Input = order{ID: "o1"}
	}
	o.Naive = true
	v, err := drill.Run(t.Context(), def, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func naiveRow(t *testing.T, v *drill.Verdict, f drill.Fault) drill.Row {
	t.Helper()
	i := slices.IndexFunc(v.Rows, func(r drill.Row) bool { return r.Fault == f })
	if i < 0 {
		t.Fatalf("%s was not tried", f)
	}
	return v.Rows[i]
}

func naiveStory(v *drill.Verdict, seed drill.Fault, step string) *drill.Story {
	i := slices.IndexFunc(v.Stories, func(s drill.Story) bool { return strings.HasPrefix(s.Seed, string(seed)) && s.Step == step })
	if i < 0 {
		return nil
	}
	return &v.Stories[i]
}

func TestNaiveExecutionRepeatsWhatItDidNotHearOf(t *testing.T) {
	v := naively(t, naiveShop(), drill.Options{Pairs: -1})
	var text strings.Builder
	_, _ = v.WriteTo(&text)
	t.Log("\n" + text.String())
	if v.OK() || v.Twice == 0 {
		t.Errorf("%d schedules end twice, want some", v.Twice)
	}
	for _, f := range []drill.Fault{
		drill.AnswerLost, drill.AnswerLate, drill.ErrorAfter, drill.DiesAfter, drill.DiesBefore, drill.LeaseLapses, drill.Frozen, drill.SecondRun, drill.LandsLate, drill.DiesLandsLate,
	} {
		cells := naiveRow(t, v, f).Cells
		for _, step := range []string{"charge", "mail"} {
			if cells[step] != drill.Twice {
				t.Errorf("%s: %s is %q, want twice", f, step, cells[step])
			}
			if s := naiveStory(v, f, step); s == nil || len(s.Lines) == 0 {
				t.Errorf("%s: no story tells how %s came to be twice", f, step)
			}
		}
		for _, step := range []string{"status", "tag"} { // repeating these changes nothing
			if cells[step] != drill.Once {
				t.Errorf("%s: %s is %q, want once", f, step, cells[step])
			}
		}
	}
	for _, f := range []drill.Fault{drill.RequestLost, drill.StoreLost, drill.AckLost, drill.SecondTrigger, drill.SlowCode} {
		for step, got := range naiveRow(t, v, f).Cells {
			if got != drill.Once {
				t.Errorf("%s: %s is %q, want once: such engines stand that", f, step, got)
			}
		}
	}
	if got := naiveRow(t, v, drill.ResendRefused).Cells["mail"]; got != drill.Lost {
		t.Errorf("a mail was sent and its repetition refused: %q, want lost", got)
	}
	if got := naiveRow(t, v, drill.Refused).Cells["charge"]; got != drill.Never {
		t.Errorf("a charge was refused: %q, want never", got)
	}
	if !strings.Contains(text.String(), "plain at-least-once") || !strings.Contains(text.String(), `drill.ParseSchedule("dies-before@`) {
		t.Error("the text does not say what it is about, or how to see it again")
	}
}

func TestNaiveIsComparedWithTheSameWorkflow(t *testing.T) {
	naive := naively(t, naiveShop(), drill.Options{Pairs: -1})
	s := naiveStory(naive, drill.AnswerLost, "charge")
	if s == nil || s.Outcome != drill.Twice {
		t.Fatalf("got %+v, want a story of two charges", s)
	}
	guarded := firstAnswerLost(t)
	for step, got := range naiveRow(t, guarded, drill.AnswerLost).Cells {
		if got.Bad() {
			t.Errorf("guarded: %s is %q", step, got)
		}
	}
	if !slices.Equal(naive.Steps, guarded.Steps) {
		t.Errorf("the tables have columns %v and %v", naive.Steps, guarded.Steps)
	}
}

// firstAnswerLost is what Semel makes of a lost answer to the charge, which is
// the first call that it fits.
func firstAnswerLost(t *testing.T) *drill.Verdict {
	t.Helper()
	for call := 1; ; call++ {
		v, err := drill.Run(t.Context(), naiveShop(), drill.Options{Input: order{ID: "o1"}, Replay: drill.Schedule{{Fault: drill.AnswerLost, Call: call}}})
		if _, elsewhere := errors.AsType[*drill.ScheduleError](err); elsewhere && call < 50 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestNaiveVerdictIsTheSameEachTime(t *testing.T) {
	var before []byte
	for range 2 {
		v := naively(t, naiveShop(), drill.Options{Pairs: 60, Seed: 7, Adverse: true})
		got, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && string(got) != string(before) {
			t.Errorf("one seed leads to two verdicts:\n%s\n%s", before, got)
		}
		before = got
	}
}

func TestNaiveReplayTellsOneStory(t *testing.T) {
	s := naiveStory(naively(t, naiveShop(), drill.Options{Pairs: -1}), drill.AnswerLost, "charge")
	schedule, err := drill.ParseSchedule(s.Seed)
	if err != nil {
		t.Fatal(err)
	}
	v := naively(t, naiveShop(), drill.Options{Replay: schedule})
	if !slices.Equal(v.Replay, s.Lines) || v.Twice != 1 {
		t.Errorf("got %q, want %q", v.Replay, s.Lines)
	}
	_, err = drill.Run(t.Context(), naiveShop(), drill.Options{Input: order{ID: "o1"}, Naive: true, Replay: drill.Schedule{{Fault: drill.PersonWrong, Call: 4}}})
	if err == nil {
		t.Error("a fault that means nothing here was replayed")
	}
}

// A key that differs from try to try is no other work: what happened under two
// of them happened twice, and a step is done although the code makes a new key.
func TestNaiveKeysThatDifferFromTryToTry(t *testing.T) {
	var tries atomic.Int64
	v := naively(t, semel.Workflow[order]{Name: "shop", Func: func(ctx semel.Context, _ order) error {
		if _, err := semel.Do(ctx, action("note", bare), order{ID: fmt.Sprint(tries.Add(1))}); err != nil {
			return err
		}
		_, err := semel.Do(ctx, action("label", tag), order{ID: "o1"})
		return err
	}}.Definition(), drill.Options{Pairs: -1})
	for f, want := range map[drill.Fault]drill.Outcome{
		drill.SlowCode: drill.Once, drill.RequestLost: drill.Once, drill.AnswerLost: drill.Twice, drill.DiesAfter: drill.Twice, drill.Refused: drill.Never,
	} {
		if got := naiveRow(t, v, f).Cells["note"]; got != want {
			t.Errorf("%s: note is %q, want %q", f, got, want)
		}
	}
}

// Every kind of step, and a run that the run starts.
func TestNaiveStepsOfEveryKind(t *testing.T) {
	pay := semel.Action[order, answer]{Name: "pay", Key: func(o order) string { return o.ID }, Send: semel.Effect[order, answer]{
		Connection: "bank", Destination: nowhere{}, Contract: semel.Contract{Protection: semel.Unprotected},
	}}
	pack := pay
	pack.Name, pack.Key = "pack", nil
	child := semel.Workflow[order]{Name: "packing", Func: func(ctx semel.Context, o order) error {
		_, err := semel.Do(ctx, pack, o)
		return err
	}}
	def := semel.Workflow[order]{Name: "shop", Func: func(ctx semel.Context, o order) error {
		if _, err := semel.Random(ctx, "number"); err != nil {
			return err
		}
		if err := semel.Sleep(ctx, "pause", time.Hour); err != nil {
			return err
		}
		if _, err := semel.Wait[order](ctx, "paid", o.ID, time.Hour); err != nil {
			return err
		}
		items := func(ctx semel.Context, item string) error {
			one := order{ID: item}
			if err := semel.Approve(ctx, pay, one, semel.Ask{}); err != nil {
				return err
			}
			_, err := semel.Do(ctx, pay, one)
			return err
		}
		if err := semel.Each(ctx, "items", o.Items, func(s string) string { return s }, 2, items); err != nil {
			return err
		}
		_, err := semel.Child(ctx, child, semel.Key(o.ID), o)
		return err
	}}.Definition()
	v := naively(t, def, drill.Options{
		Input: order{ID: "o1", Items: []string{"a", "b"}}, Children: []semel.WorkflowDefinition{child.Definition()}, Pairs: 40,
	})
	if want := []string{"items/pay", "packing: pack"}; !slices.Equal(v.Steps, want) {
		t.Errorf("got columns %q, want %q", v.Steps, want)
	}
	for _, step := range v.Steps {
		if got := naiveRow(t, v, drill.AnswerLost).Cells[step]; got != drill.Twice {
			t.Errorf("answer lost: %s is %q, want twice", step, got)
		}
	}
	if got := naiveRow(t, v, drill.SecondRun).Cells["items/pay"]; got != drill.Twice {
		t.Errorf("in a second run: %q, want twice", got)
	}
	_, err := drill.Run(t.Context(), def, drill.Options{
		Input: order{ID: "o1", Items: []string{"a"}}, Children: []semel.WorkflowDefinition{child.Definition()}, Naive: true, Events: map[string]any{"paid": nil},
	})
	if none, ok := errors.AsType[*drill.NothingError](err); !ok || !strings.Contains(strings.Join(none.Story, "\n"), semel.ErrTimedOut.Error()) {
		t.Errorf("an event that never comes: got %v", err)
	}
}
