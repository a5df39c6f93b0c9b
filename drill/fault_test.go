package drill

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// everyFault fits one of its steps.
func everyFault() semel.WorkflowDefinition {
	act := func(context.Context, *semel.Send, string) (string, error) { return "", nil }
	action := func(name string, c semel.Contract) semel.Action[string, string] {
		c.Timeout = 10 * time.Second
		send := semel.Perform(c, act)
		send.Connection = name + "s"
		return semel.Action[string, string]{Name: name, Key: func(s string) string { return s }, Send: send}
	}
	charge := action("charge", semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour})
	publish := action("publish", semel.Contract{
		Protection: semel.Lookup, CanLookUp: true, VisibleAfter: time.Minute, MaxProcessing: 30 * time.Second, AbsenceIsProof: true,
	})
	note := action("note", semel.Contract{Protection: semel.Unprotected})
	return semel.Workflow[string]{Name: "shop", Func: func(ctx semel.Context, s string) error {
		if _, err := semel.Do(ctx, charge, s); err != nil {
			return err
		}
		if _, err := semel.Wait[any](ctx, "paid", s, 0); err != nil {
			return err
		}
		if _, err := semel.Do(ctx, publish, s); err != nil {
			return err
		}
		if err := semel.Approve(ctx, note, s, semel.Ask{Of: "anybody", Valid: time.Hour}); err != nil {
			return err
		}
		_, err := semel.Do(ctx, note, s)
		return err
	}}.Definition()
}

// Each fault breaks what its words say, and comes to what it must.
func TestEachFaultDoesWhatItSays(t *testing.T) {
	const chargeSent, publishSent, noteSent = "the request of charge", "the request of publish", "the request of note"
	cases := []struct {
		fault Fault
		at    string // the call, or a part of what is said of it
		says  string // a line of the story
		step  string
		comes Outcome
	}{
		{DiesBefore, noteSent, "before the request of note:", "note", Unknown},
		{DiesAfter, noteSent, "and nobody hears the answer of the request of note", "note", Unknown},
		{StoreLost, "the claim of note", "worker 1 loses its connection to the store before the commit of", "note", Once},
		{AckLost, "the claim of note", "which is written all the same", "note", Once},
		{CommitLost, "the claim of note", "and cannot know that nothing was written", "note", Once},
		{LeaseLapses, publishSent, "worker 1 does not send publish: the claim was lost", "publish", Once},
		{Frozen, chargeSent, "worker 1 stands still before the request of charge, until it is too late for it", "charge", Once},
		{SlowCode, "the code after charge", "worker 1 stands still before the code after charge, until its lease is over", "publish", Once},
		{SecondTrigger, chargeSent, "somebody starts the same run again, and another worker looks", "charge", Once},
		{SecondRun, chargeSent, "worker 2 meets charge, which is on record", "charge", Once},
		{RequestLost, publishSent, "worker 1 looks up publish: not found", "publish", Once},
		{AnswerLost, chargeSent, "charges knows the key, and answers as before", "charge", Once},
		{AnswerLate, noteSent, "the late answer to note comes to worker 1: confirmed", "note", Once},
		{ErrorAfter, noteSent, "the answer is an error: 500", "note", Unknown},
		{Refused, noteSent, "refuses it", "note", Never},
		{RefusedLate, chargeSent, "the late answer to charge comes to worker 1: refused", "charge", Once},
		{ResendRefused, chargeSent, "it is refused on its way", "charge", Unknown},
		{LandsLate, publishSent, "it takes effect at the last moment that its contract allows", "publish", Once},
		{DiesLandsLate, publishSent, "worker 1 dies", "publish", Once},
		{LookupBlind, publishSent, "looks up publish: not found", "publish", Once},
		{LookupStale, publishSent, "looks up publish: it is there", "publish", Once},
		{WindowOver, chargeSent, "nobody works until the key is forgotten", "charge", Unknown},
		{WindowCreeps, chargeSent, "a resend comes later each time", "charge", Unknown},
		{ChangedPayload, chargeSent, "the code asks with another payload when it goes on", "charge", Once},
		{RecordExpired, "", "records have expired; somebody asks for the same work again", "charge", Once},
		{EventEarly, "", "event paid is there before anybody waits for it", "charge", Once},
		{CancelBefore, "the claim of charge", "somebody cancels the run", "charge", Never},
		{CancelDuring, chargeSent, "worker 1 leaves the run cancelled", "charge", Once},
		{ApprovalRevoked, "the claim of note", "no approval covers this request now", "note", Never},
		{ApprovalEnds, noteSent, "the person takes the approval back", "note", Unknown},
		{PersonWrong, chargeSent, "a person says that charge did not happen, which is wrong", "charge", Unknown},
		{ClockAhead, publishSent, "the clock of worker 1 steps an hour ahead", "publish", Once},
		{ClockBack, publishSent, "the clock of worker 1 steps an hour back", "publish", Once},
	}
	d, remove, err := prepare(everyFault(), Options{Input: "o1", Answers: map[string]any{"charge": "", "publish": "", "note": ""}})
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	whole, err := d.unbroken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) != len(kinds) {
		t.Errorf("%d cases for %d faults", len(cases), len(kinds))
	}
	for _, c := range cases {
		t.Run(string(c.fault), func(t *testing.T) {
			s := Schedule{{c.fault, 0}}
			if c.at != "" {
				s[0].Call = 1 + slices.IndexFunc(whole.calls, func(made call) bool {
					k, _ := kindOf(c.fault)
					return strings.Contains(made.what, c.at) && k.fits(&made)
				})
				if s[0].Call == 0 {
					t.Fatalf("it fits no call that is %s", c.at)
				}
			}
			tried, err := d.try(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			story := strings.Join(tried.story, "\n")
			if !strings.Contains(story, c.says) {
				t.Errorf("it does not say %q", c.says)
			}
			if got := tried.verdict.columns[c.step]; got != c.comes {
				t.Errorf("%s: %s, want %s", c.step, got, c.comes)
			}
			if t.Failed() {
				t.Logf("%s\n%s", s, story)
			}
		})
	}
}

// What is slower lands later, in whichever order it was sent.
func TestRequestsArriveInTheOrderOfTime(t *testing.T) {
	var order []string
	at := func(name string) func(time.Time) { return func(time.Time) { order = append(order, name) } }
	w := &world{landings: []landing{{epoch.Add(3), at("third")}, {epoch.Add(1), at("first")}, {epoch.Add(5), at("never")}, {epoch.Add(2), at("second")}}}
	w.arrive(epoch.Add(4))
	if want := []string{"first", "second", "third"}; !slices.Equal(order, want) || len(w.landings) != 1 {
		t.Errorf("got %q and %d left, want %q and one", order, len(w.landings), want)
	}
}
