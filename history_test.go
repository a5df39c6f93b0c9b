package semel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// Histories that once went wrong. Each is a list of events and the end it
// must have.

// t0 is the store's time at which the histories begin.
var t0 = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

// after is the store's time so long after t0.
func after(d time.Duration) time.Time { return t0.Add(d) }

// claim is the n-th claim, with a lease of 30 s in which it may send.
func claim(n int, at time.Duration) semel.Event {
	return semel.Event{Kind: semel.EvClaimed, Attempt: n, At: after(at), Lease: 30 * time.Second, SendWithin: 30 * time.Second}
}

// event is evidence about attempt n.
func event(kind semel.EventKind, n int, at time.Duration) semel.Event {
	return semel.Event{Kind: kind, Attempt: n, At: after(at)}
}

// confirmed is the n-th attempt's answer with the destination's identifier.
func confirmed(n int, reference string, at time.Duration) semel.Event {
	return semel.Event{Kind: semel.EvConfirmed, Attempt: n, At: after(at), Result: &semel.Result{Reference: reference}}
}

// absent is a lookup that found nothing.
func absent(asked time.Time, at time.Duration) semel.Event {
	return semel.Event{Kind: semel.EvAbsent, AskedAt: asked, At: after(at)}
}

// closing is a person's correction that closes an incident.
func closing(s semel.State, at time.Duration) semel.Event {
	return semel.Event{Kind: semel.EvIncident, Correction: s, Reason: "asked the bank", At: after(at)}
}

// keyed is a destination that honours a key for a day and can be asked.
func keyed() semel.Contract {
	return semel.Contract{
		Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second, CanLookUp: true,
		AbsenceIsProof: true, MaxProcessing: time.Minute, VisibleAfter: 10 * time.Second,
	}
}

// lookup is a destination that knows no keys and can be asked.
func lookup() semel.Contract {
	c := keyed()
	c.Protection, c.Window = semel.Lookup, 0
	return c
}

// unprotected is a destination that offers nothing.
func unprotected() semel.Contract { return semel.Contract{Protection: semel.Unprotected} }

func identity(c semel.Contract) semel.Identity {
	return semel.Identity{
		ID: semel.NewID(t0, [10]byte{1}), Scope: "acct-1/charge", Key: "ord-100",
		Request: semel.Request{Kind: "call", Body: []byte(`{}`)}, Contract: c,
	}
}

// replay applies the events to an operation that nobody claimed.
func replay(t *testing.T, c semel.Contract, events ...semel.Event) semel.Operation {
	t.Helper()
	o := semel.Operation{Identity: identity(c)}
	return apply(t, o, events...)
}

func apply(t *testing.T, o semel.Operation, events ...semel.Event) semel.Operation {
	t.Helper()
	for i, ev := range events {
		next, err := o.Apply(ev)
		if err != nil {
			t.Fatalf("event %d, %s by attempt %d: %v", i+1, ev.Kind, ev.Attempt, err)
		}
		o = next
	}
	return o
}

// summary is what the tests compare: the state, the open attempts, an incident.
func summary(o semel.Operation) string {
	var b strings.Builder
	b.WriteString(string(o.State))
	var open []string
	for _, a := range o.Attempts {
		if a.Open {
			open = append(open, fmt.Sprint(a.Number))
		}
	}
	if len(open) > 0 {
		b.WriteString(" open " + strings.Join(open, ","))
	}
	if o.Incident != "" {
		b.WriteString(" incident")
	}
	return b.String()
}

func TestHistories(t *testing.T) {
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			if got := summary(replay(t, h.contract, h.events...)); got != h.want {
				t.Errorf("got  %s\nwant %s", got, h.want)
			}
		})
	}
}

var histories = slices.Concat(claimHistories, olderHistories, contradictionHistories, keyHistories, duplicateHistories, reopenHistories, settledHistories, incidentHistories)

type history struct {
	name     string
	contract semel.Contract
	events   []semel.Event
	want     string
}

// Law 8 and the table: only what can be repeated is sent again.
var claimHistories = []history{
	{
		"an unknown outcome without protection is never claimed again",
		unprotected(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second)},
		"unknown open 1",
	},
}

// Law 6: what an older attempt or a slow lookup reports is never dropped.
var olderHistories = []history{
	{
		"an older worker that stopped before sending closes its attempt",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvLapsed, 1, 30*time.Second), claim(2, 31*time.Second), event(semel.EvCancelled, 1, 32*time.Second)},
		"in_progress open 2",
	},
	{
		"a lookup that ends after a resend began is kept",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), absent(after(9*time.Second), 11*time.Second)},
		"in_progress open 1,2",
	},
	{
		"a lookup without an answer that ends after a resend began is kept",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), event(semel.EvNoAnswer, 0, 11*time.Second)},
		"in_progress open 1,2",
	},
	{
		"a contradiction from outside is kept while an attempt runs",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvContradiction, 0, time.Second), event(semel.EvRefused, 1, 2*time.Second)},
		"unknown incident",
	},
}

// Law 7: absence that was disproved, or an outcome a person took back, leaves
// open attempts, so the next "not found" needs its time again.
var reopenHistories = []history{
	{
		"an effect reported after a failure opens its attempts again",
		lookup(),
		[]semel.Event{claim(1, 0), event(semel.EvRefused, 1, time.Second), confirmed(1, "ch_1", 2*time.Second)},
		"unknown open 1 incident",
	},
	{
		"an answer under an open incident stays open",
		lookup(),
		[]semel.Event{claim(1, 0), mismatch(1, time.Second), confirmed(1, "ch_1", 2*time.Second)},
		"unknown open 1 incident",
	},
	{
		"nothing found at once proves nothing after a correction to unknown",
		lookup(),
		[]semel.Event{
			claim(1, 0), event(semel.EvRefused, 1, time.Second), confirmed(1, "ch_1", 2*time.Second),
			closing(semel.Unknown, 3*time.Second), absent(after(4*time.Second), 5*time.Second),
		},
		"unknown open 1",
	},
	{
		"nothing found at once proves nothing after a completion was taken back",
		lookup(),
		[]semel.Event{
			claim(1, 0), confirmed(1, "ch_1", 2*time.Second), event(semel.EvContradiction, 0, 3*time.Second),
			closing(semel.Unknown, 4*time.Second), absent(after(5*time.Second), 6*time.Second),
		},
		"unknown open 1",
	},
}

// retained is the destination's error for the key that attempt n sent.
func retained(n int, at time.Duration) semel.Event { return event(semel.EvRetained, n, at) }

// Law 5 and law 3: a retained error speaks for one destination key.
var keyHistories = []history{
	{
		"an error retained under the old key says nothing about the new one",
		keyed(),
		[]semel.Event{claim(1, 0), retained(1, time.Second), claim(2, time.Minute), event(semel.EvLost, 2, 61*time.Second), retained(1, 62*time.Second)},
		"unknown open 2",
	},
	{
		"an error retained under the old key does not contradict the new one",
		keyed(),
		[]semel.Event{claim(1, 0), retained(1, time.Second), claim(2, time.Minute), confirmed(2, "ch_2", 61*time.Second), retained(1, 62*time.Second)},
		"completed",
	},
	{
		"an error retained under the key of a completed operation contradicts it",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, time.Minute), confirmed(2, "ch_2", 61*time.Second), retained(1, 62*time.Second)},
		"completed incident",
	},
	{
		"two keys are two effects, also without identifiers",
		keyed(),
		[]semel.Event{claim(1, 0), retained(1, time.Second), claim(2, time.Minute), confirmed(1, "", 61*time.Second), confirmed(2, "", 62*time.Second)},
		"completed incident",
	},
	{
		"one key is one effect, also without identifiers",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second), claim(2, time.Minute), confirmed(1, "", 61*time.Second), confirmed(2, "", 62*time.Second)},
		"completed",
	},
}

func TestGenerationChangesOnlyByARecordedAct(t *testing.T) {
	newKey := event(semel.EvDidNotHappen, 0, time.Hour)
	newKey.NewKey = true
	for _, h := range []struct {
		name   string
		events []semel.Event
		want   int // the generation of the next claim
	}{
		{"a refusal keeps the key", []semel.Event{claim(1, 0), event(semel.EvRefused, 1, time.Second)}, 0},
		{"a proven absence keeps the key", []semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second), absent(after(time.Hour), time.Hour)}, 0},
		{"it did not happen keeps the key", []semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second), event(semel.EvDidNotHappen, 0, time.Hour)}, 0},
		{"an unknown outcome keeps the key", []semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second)}, 0},
		{"a retained error needs a new key", []semel.Event{claim(1, 0), retained(1, time.Second)}, 1},
		{"a retained error reported after a refusal needs a new key", []semel.Event{claim(1, 0), event(semel.EvRefused, 1, time.Second), retained(1, 2*time.Second)}, 1},
		{"a person chose a new key", []semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second), newKey}, 1},
		{
			"a refusal reported after a person chose a new key leaves that choice",
			[]semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second), newKey, event(semel.EvRefused, 1, 2*time.Hour)},
			1,
		},
		{"the same retained error, twice, is one new key", []semel.Event{claim(1, 0), retained(1, time.Second), retained(1, 2*time.Second)}, 1},
		{
			"an old retained error does not burn the new key",
			[]semel.Event{claim(1, 0), retained(1, time.Second), claim(2, time.Minute), event(semel.EvRefused, 2, 61*time.Second), retained(1, 62*time.Second)},
			1,
		},
		{
			"an effect under the old key takes the new key back",
			[]semel.Event{claim(1, 0), retained(1, time.Second), confirmed(1, "ch_1", 2*time.Second), closing(semel.Unknown, 3*time.Second)},
			0,
		},
	} {
		t.Run(h.name, func(t *testing.T) {
			o := replay(t, keyed(), h.events...)
			if got, want := o.DestinationKey(), semel.DestinationKey(o.Scope, o.Key, h.want); got != want {
				t.Errorf("before the claim it shows key %s, want %s (generation %d)", got, want, h.want)
			}
			before := o.KeySince
			o = apply(t, o, claim(o.Attempt+1, 10*time.Hour))
			if o.Generation != h.want || o.DestinationKey() != semel.DestinationKey(o.Scope, o.Key, h.want) {
				t.Errorf("the claim has generation %d, want %d", o.Generation, h.want)
			}
			started := before
			if h.want > 0 && h.name != "an old retained error does not burn the new key" {
				started = after(10 * time.Hour)
			}
			if !o.KeySince.Equal(started) {
				t.Errorf("the destination's window starts at %v, want %v", o.KeySince, started)
			}
		})
	}
}

// found is a lookup that found the effect.
func found(reference string, at time.Duration) semel.Event {
	return semel.Event{Kind: semel.EvFound, AskedAt: after(at), At: after(at), Result: &semel.Result{Reference: reference}}
}

// named is evidence whose identifier stands beside the result.
func named(kind semel.EventKind, n int, reference string, at time.Duration) semel.Event {
	ev := event(kind, n, at)
	ev.Reference = reference
	return ev
}

// "completed: second, different effect reported".
var duplicateHistories = []history{
	{
		"another identifier is another effect, wherever it stands",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, time.Second), claim(2, time.Minute), confirmed(2, "ch_1", 61*time.Second),
			named(semel.EvConfirmed, 1, "ch_2", 62*time.Second),
		},
		"completed incident",
	},
	{
		"the identifier beside a result counts",
		keyed(),
		[]semel.Event{claim(1, 0), named(semel.EvConfirmed, 1, "ch_1", 61*time.Second), found("ch_2", 62*time.Second)},
		"completed incident",
	},
	{
		"what sets a value may name another change each time",
		semel.Contract{Protection: semel.Absolute},
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, time.Second), claim(2, time.Minute), confirmed(2, "change-2", 61*time.Second),
			confirmed(1, "change-1", 62*time.Second),
		},
		"completed",
	},
	{
		"the same identifier is the same effect",
		unprotected(),
		[]semel.Event{
			claim(1, 0), event(semel.EvRefused, 1, time.Second), claim(2, time.Minute), confirmed(1, "m1", 61*time.Second),
			confirmed(2, "m1", 62*time.Second),
		},
		"completed",
	},
	{
		"two attempts without protection are two effects",
		unprotected(),
		[]semel.Event{
			claim(1, 0), event(semel.EvRefused, 1, time.Second), claim(2, time.Minute), confirmed(1, "", 61*time.Second),
			confirmed(2, "", 62*time.Second),
		},
		"completed incident",
	},
	{
		"the only attempt that could have acted, found and then confirmed, is one effect",
		lookup(),
		[]semel.Event{
			claim(1, 0), event(semel.EvRefused, 1, time.Second), claim(2, time.Minute), event(semel.EvLost, 2, 61*time.Second),
			found("", 62*time.Second), confirmed(2, "ch_1", 63*time.Second),
		},
		"completed",
	},
	{
		"a lookup that names no identifier tells of no second effect",
		lookup(),
		[]semel.Event{
			claim(1, 0), event(semel.EvRefused, 1, time.Second), claim(2, time.Minute), confirmed(2, "ch_1", 61*time.Second),
			found("", 62*time.Second),
		},
		"completed",
	},
	{
		"a callback without an attempt speaks of the only one",
		unprotected(),
		[]semel.Event{claim(1, 0), confirmed(1, "", time.Second), confirmed(0, "", 2*time.Second)},
		"completed",
	},
}

func TestProofThatAnOutcomeStandsKeepsTheRecordedAnswer(t *testing.T) {
	answer := confirmed(1, "ch_1", time.Second)
	answer.Result.Body = []byte(`{"id":"ch_1"}`)
	stands := closing(semel.Completed, time.Hour)
	stands.Reference = "ticket 77"
	o := replay(t, keyed(), claim(1, 0), answer, event(semel.EvContradiction, 0, time.Minute), stands)
	if o.Result == nil || o.Result.Reference != "ch_1" || string(o.Result.Body) != `{"id":"ch_1"}` {
		t.Errorf("the recorded answer is now %+v", o.Result)
	}
}

// "completed: contradiction".
var contradictionHistories = []history{
	{
		"nothing found by a lookup that overlapped the answer contradicts nothing",
		lookup(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second), confirmed(1, "ch_1", 10*time.Second), absent(after(9*time.Second), 11*time.Second)},
		"completed",
	},
	{
		"nothing found once absence is proof contradicts",
		lookup(),
		[]semel.Event{claim(1, 0), confirmed(1, "ch_1", 10*time.Second), absent(after(time.Hour), time.Hour)},
		"completed incident",
	},
	{
		"an attempt that was refused does not put the moment of proof off",
		lookup(),
		[]semel.Event{
			claim(1, 0), event(semel.EvRefused, 1, 5*time.Second), claim(2, 10*time.Second), event(semel.EvLost, 2, 11*time.Second), found("ch_1", 12*time.Second),
			absent(after(121*time.Second), time.Hour),
		},
		"completed open 2 incident",
	},
	{
		"a later attempt that was refused does not put the moment of proof off",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, time.Hour), event(semel.EvRefused, 2, time.Hour), confirmed(1, "ch_1", time.Hour),
			absent(after(111*time.Second), time.Hour),
		},
		"completed incident",
	},
	{
		"a later attempt that was cancelled does not put the moment of proof off",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, time.Hour), event(semel.EvCancelled, 2, time.Hour), confirmed(1, "ch_1", time.Hour),
			absent(after(111*time.Second), time.Hour),
		},
		"completed incident",
	},
	{
		"the only attempt, refused after a lookup found its effect, contradicts",
		lookup(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second), found("ch_1", 6*time.Second), event(semel.EvRefused, 1, 7*time.Second)},
		"completed incident",
	},
	{
		"one of two attempts, refused after a lookup found an effect, contradicts nothing",
		keyed(),
		[]semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 6*time.Second), found("ch_1", 7*time.Second), event(semel.EvRefused, 2, 8*time.Second)},
		"completed open 1",
	},
	{
		"the attempt that completed it, cancelled before sending, contradicts",
		lookup(),
		[]semel.Event{claim(1, 0), confirmed(1, "ch_1", 6*time.Second), event(semel.EvCancelled, 1, 7*time.Second)},
		"completed incident",
	},
}

// Law 7: "it did not happen" before its time needs an override and a reason,
// also as the correction that closes an incident.
func TestNoPersonSaysItDidNotHappenTooEarly(t *testing.T) {
	// The last byte may leave at 30 s + 10 s write timeout; then 1 min
	// processing, 10 s visibility, 1 s skew.
	quiet := 111 * time.Second
	lost := replay(t, lookup(), claim(1, 0), event(semel.EvLost, 1, 5*time.Second))
	for _, o := range []semel.Operation{
		lost, apply(t, lost, event(semel.EvContradiction, 0, 6*time.Second)),
		replay(t, lookup(), claim(1, 0), event(semel.EvLost, 1, 4*time.Second), found("ch_1", 5*time.Second), event(semel.EvContradiction, 0, 6*time.Second)),
	} {
		ev := semel.Event{Kind: semel.EvDidNotHappen, Reason: "asked the bank"}
		if o.Incident != "" {
			ev.Kind, ev.Correction = semel.EvIncident, semel.Failed
		}
		for _, c := range []struct {
			at     time.Duration
			force  bool
			reason string
			want   bool
		}{
			{quiet - 1, false, "asked the bank", false},
			{quiet, false, "asked the bank", true},
			{quiet + 1, false, "asked the bank", true},
			{quiet - 1, true, "asked the bank", true},
			{quiet - 1, true, "", false},
		} {
			ev.At, ev.Force, ev.Reason = after(c.at), c.force, c.reason
			if _, err := o.Apply(ev); (err == nil) != c.want {
				t.Errorf("%s of %q, %v before its time, force %v, reason %q: %v", ev.Kind, summary(o), quiet-c.at, c.force, c.reason, err)
			}
		}
	}
}

// Law 8: the window binds a resend, and never moves.
func TestSendByEndsInsideTheWindowOfAResend(t *testing.T) {
	c := keyed()
	c.Window, c.MaxProcessing = time.Hour, 10*time.Minute // margin 5 min: resends end at 45 min
	end := 45 * time.Minute
	lost := []semel.Event{claim(1, 0), event(semel.EvLost, 1, time.Second)}
	refused := []semel.Event{claim(1, 0), event(semel.EvRefused, 1, time.Second)}
	for _, h := range []struct {
		name   string
		events []semel.Event
		at     time.Duration
		want   time.Duration
	}{
		{"the lease ends before", lost, end - 31*time.Second, end - time.Second},
		{"the lease ends with it", lost, end - 30*time.Second, end},
		{"the window ends before", lost, end - 29*time.Second, end},
		{"the window is over", lost, end + time.Minute, end},
		{"nothing happened before: next morning", refused, 24 * time.Hour, 24*time.Hour + 30*time.Second},
	} {
		t.Run(h.name, func(t *testing.T) {
			o := apply(t, replay(t, c, h.events...), claim(2, h.at))
			if got := o.Attempts[1].SendBy.Sub(t0); got != h.want {
				t.Errorf("the first byte may leave until %v, want %v", got, h.want)
			}
			if !o.KeySince.Equal(t0) {
				t.Errorf("the window moved to %v", o.KeySince)
			}
		})
	}
}

// Recovery belongs to the operation: requests that it absorbs never postpone it.
func TestAbsorbedRequestsNeverPostponeRecovery(t *testing.T) {
	for name, c := range map[string]semel.Contract{"resend": keyed(), "lookup": lookup()} {
		o := replay(t, c, claim(1, 0), event(semel.EvLost, 1, 5*time.Second))
		want := o.CheckAt
		for i := range 10 {
			o = apply(t, o, event(semel.EvJoined, 0, time.Duration(6+i)*time.Second))
		}
		if !o.CheckAt.Equal(want) {
			t.Errorf("%s: ten absorbed requests moved recovery from %v to %v", name, want, o.CheckAt)
		}
	}
}

func TestLookupBudgetNeverSparesTheLookupThatCouldProve(t *testing.T) {
	c := lookup()
	c.Attempts = 1
	// Absence is proof from 111 s on; the only lookup in the budget was before.
	o := replay(t, c, claim(1, 0), event(semel.EvLost, 1, 5*time.Second), absent(after(6*time.Second), 7*time.Second),
		event(semel.EvJoined, 0, 200*time.Second))
	if got := semel.Decide(&o, c, after(200*time.Second)); got.Kind != semel.MoveLookup {
		t.Errorf("got %s (%s), want a lookup", got.Kind, got.Reason)
	}
	o = apply(t, o, event(semel.EvNoAnswer, 0, 201*time.Second))
	o = apply(t, o, semel.Event{Kind: semel.EvNoAnswer, AskedAt: after(202 * time.Second), At: after(203 * time.Second)})
	if got := semel.Decide(&o, c, after(204*time.Second)); got.Kind != semel.MovePerson {
		t.Errorf("got %s (%s), want a person", got.Kind, got.Reason)
	}
}

// "For ever" is a duration that people declare: it must not wrap around.
func TestForeverNeverProvesAndNeverResends(t *testing.T) {
	c := keyed()
	c.MaxProcessing = 1<<63 - 1
	lost := []semel.Event{claim(1, 0), event(semel.EvLost, 1, 5*time.Second)}
	o := replay(t, c, append(lost, absent(after(1000*time.Hour), 1000*time.Hour))...)
	if got := summary(o); got != "unknown open 1" {
		t.Errorf("absence proved something after a thousand hours: %s", got)
	}
	if _, err := o.Apply(event(semel.EvDidNotHappen, 0, 2000*time.Hour)); err == nil {
		t.Error("it did not happen, without an override, after two thousand hours")
	}
	if !o.WindowEnd(c).Before(t0) {
		t.Errorf("resends go on until %v", o.WindowEnd(c))
	}
	c.Window = 0
	if !o.WindowEnd(c).Before(t0) {
		t.Errorf("without a window, resends go on until %v", o.WindowEnd(c))
	}
}

// M35: words tell the truth.
func TestWordsOfAnOutcome(t *testing.T) {
	reason := func(ev semel.Event, s string) semel.Event { ev.Reason = s; return ev }
	lost := reason(event(semel.EvLost, 1, 5*time.Second), "connection reset")
	partial := event(semel.EvLost, 1, 5*time.Second)
	partial.Person = true
	expired := event(semel.EvExpired, 0, time.Hour)
	for _, h := range []struct {
		name, reason, incident, next string
		events                       []semel.Event
	}{
		{
			"a failure does not keep the words of the doubt before it", "", "", "nothing happened; safe to try again",
			[]semel.Event{claim(1, 0), lost, absent(after(time.Hour), time.Hour)},
		},
		{
			"doubt does not keep the words of the failure before it", "", "an effect was reported after the operation was settled as failed (ch_1)",
			"an effect was reported after the operation was settled as failed (ch_1); nothing is sent until a person closes this incident",
			[]semel.Event{claim(1, 0), reason(event(semel.EvRefused, 1, time.Second), "card declined"), confirmed(1, "ch_1", 2*time.Second)},
		},
		{"a person is told why", "", "", "the evidence is such that only a person can tell whether it happened", []semel.Event{claim(1, 0), partial}},
		{
			"a contradiction says what it is", "", "contradicting evidence: the morning report does not list it",
			"contradicting evidence: the morning report does not list it; nothing is sent until a person closes this incident",
			[]semel.Event{claim(1, 0), confirmed(1, "ch_1", time.Second), reason(event(semel.EvContradiction, 0, time.Hour), "the morning report does not list it")},
		},
		{
			"an expired answer is not handed back", "", "", "it happened; its record has expired, and the answer with it",
			[]semel.Event{claim(1, 0), confirmed(1, "ch_1", time.Second), expired},
		},
		{
			"an expired failure", "card declined", "", "nothing happened; its record has expired",
			[]semel.Event{claim(1, 0), reason(event(semel.EvRefused, 1, time.Second), "card declined"), expired},
		},
	} {
		t.Run(h.name, func(t *testing.T) {
			o := replay(t, lookup(), h.events...)
			got := []string{o.Reason, o.Incident, semel.Decide(&o, o.Contract, after(2*time.Hour)).Reason}
			if diff := cmp.Diff([]string{h.reason, h.incident, h.next}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// M25: what a person still has to look at never expires.
func TestOpenIncidentNeverExpires(t *testing.T) {
	o := replay(t, keyed(), claim(1, 0), confirmed(1, "ch_1", time.Second), event(semel.EvContradiction, 0, time.Minute))
	if _, err := o.Apply(event(semel.EvExpired, 0, 1000*time.Hour)); err == nil {
		t.Error("the answer that a person has to judge was dropped")
	}
}

func TestLateCancelOfAnOlderAttemptLeavesAFailureRetryable(t *testing.T) {
	o := replay(t, keyed(), claim(1, 0), event(semel.EvRefused, 1, time.Second), claim(2, 2*time.Second), event(semel.EvRefused, 2, 3*time.Second),
		event(semel.EvCancelled, 1, 4*time.Second))
	if o.Cancelled {
		t.Error("attempt 1, which had failed before, cancelled the operation")
	}
}

// M17: nothing that contradicts a settled outcome is dropped.
var settledHistories = []history{
	{
		"a mismatch reported after completion is an incident",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), confirmed(2, "ch_1", 11*time.Second),
			mismatch(1, 12*time.Second),
		},
		"completed open 1 incident",
	},
	{
		"a mismatch reported after failure is an incident",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), event(semel.EvRetained, 2, 11*time.Second),
			mismatch(1, 12*time.Second),
		},
		"unknown open 1,2 incident",
	},
}

// mismatch is an answer that says the destination saw the key with another
// request.
func mismatch(n int, at time.Duration) semel.Event {
	ev := event(semel.EvLost, n, at)
	ev.Incident = "the destination knows this key with another request"
	return ev
}

// M17: a late answer that contradicts raises an incident, and a person can
// always close it.
var incidentHistories = []history{
	{
		"a refusal never settles what an older answer disputes",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), mismatch(1, 11*time.Second),
			event(semel.EvRefused, 2, 12*time.Second),
		},
		"unknown open 1 incident",
	},
	{
		"a retained error never settles what an older answer disputes",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), mismatch(1, 11*time.Second),
			event(semel.EvRetained, 2, 12*time.Second),
		},
		"unknown incident",
	},
	{
		"a cancel never settles what an older answer disputes",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), mismatch(1, 11*time.Second),
			event(semel.EvCancelled, 2, 12*time.Second),
		},
		"unknown open 1 incident",
	},
	{
		"such an incident can be closed",
		keyed(),
		[]semel.Event{
			claim(1, 0), event(semel.EvLost, 1, 5*time.Second), claim(2, 10*time.Second), mismatch(1, 11*time.Second),
			event(semel.EvRefused, 2, 12*time.Second), closing(semel.Completed, time.Hour),
		},
		"completed open 1",
	},
}

func TestUnknownIsClaimedAgainOnlyIfRepeatable(t *testing.T) {
	for p, want := range map[semel.Protection]bool{
		semel.Transactional: false, semel.Commutes: true, semel.Absolute: true,
		semel.Keyed: true, semel.Lookup: false, semel.Unprotected: false,
	} {
		c := keyed()
		c.Protection = p
		for _, force := range []bool{false, true} {
			again := claim(2, 10*time.Second)
			again.Force = force
			o := replay(t, c, claim(1, 0), event(semel.EvLost, 1, 5*time.Second))
			if _, err := o.Apply(again); (err == nil) != want {
				t.Errorf("%s, force %v: got error %v, want a claim: %v", p, force, err, want)
			}
		}
	}
}
