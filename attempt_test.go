package semel_test

import (
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

func TestClaimCarriesItsToken(t *testing.T) {
	second := claim(2, 10*time.Second)
	second.Token = semel.NewID(t0, [10]byte{2})
	o := replay(t, keyed(), claim(1, 0), lost1, second)
	if o.Attempts[0].Token != o.ID || o.Attempts[1].Token != second.Token {
		t.Errorf("got tokens %s and %s, want %s and %s", o.Attempts[0].Token, o.Attempts[1].Token, o.ID, second.Token)
	}
}

func TestLookupsSinceTheLastClaimAreCounted(t *testing.T) {
	o := replay(t, keyed(), claim(1, 0), lost1, absent(t0, 6*time.Second), event(semel.EvNoAnswer, 0, 7*time.Second), found("ch_1", 8*time.Second))
	if o.Looks != 3 {
		t.Errorf("got %d lookups, want 3", o.Looks)
	}
	if o = replay(t, keyed(), claim(1, 0), lost1, absent(t0, 6*time.Second), claim2); o.Looks != 0 {
		t.Errorf("a new attempt begins with %d lookups", o.Looks)
	}
}

// M35: while an outcome stays unknown, the latest evidence says why.
func TestLatestEvidenceSaysWhyItIsUnknown(t *testing.T) {
	for _, ev := range []semel.Event{
		absent(t0, 20*time.Second), event(semel.EvNoAnswer, 0, 20*time.Second), event(semel.EvRefused, 2, 20*time.Second),
		event(semel.EvCancelled, 2, 20*time.Second), event(semel.EvLost, 1, 20*time.Second),
	} {
		base := replay(t, keyed(), claim(1, 0), lost1, claim2, lost2)
		base.Reason = "before"
		if o := apply(t, base, ev); o.Reason != "before" {
			t.Errorf("%s without words: the reason is %q", ev.Kind, o.Reason)
		}
		ev.Reason = "now"
		if o := apply(t, base, ev); o.State != semel.Unknown || o.Reason != "now" {
			t.Errorf("%s: %s because %q", ev.Kind, o.State, o.Reason)
		}
	}
}

// Law 16: what a new attempt starts from.
func TestClaimForgetsWhatTheLastAttemptAsked(t *testing.T) {
	o := replay(t, keyed(), claim(1, 0), partial(1, time.Second), checkAfter(1, 2*time.Second, time.Hour), asked)
	if !o.Person || !o.Cancel {
		t.Fatal("the partial answer or the cancel request is lost")
	}
	o = apply(t, o, forced(claim2))
	if o.Person || o.Cancel || o.Cancelled || o.Reason != "" {
		t.Errorf("the new attempt begins with person %v, cancel %v, cancelled %v, reason %q", o.Person, o.Cancel, o.Cancelled, o.Reason)
	}
	o = apply(t, o, lost2)
	if got := move(semel.Decide(&o, keyed(), after(16*time.Second))); got != "resend at 17s" {
		t.Errorf("the wait that the destination asked for before still holds: %s", got)
	}
}

func TestOnlyCompletionTakesTheAnswer(t *testing.T) {
	o := replay(t, keyed(), claim(1, 0), partial(1, time.Second), confirmed(1, "ch_1", 2*time.Second))
	if o.Person || o.Result == nil || o.Result.Reference != "ch_1" {
		t.Errorf("completed, person %v, result %+v", o.Person, o.Result)
	}
	o = replay(t, keyed(), claim(1, 0), mismatch(1, time.Second), confirmed(1, "ch_1", 2*time.Second))
	if o.Result != nil {
		t.Errorf("unknown, but with result %+v", o.Result)
	}
}
