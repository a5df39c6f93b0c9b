package semel_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// move is what the tests compare of a Move: what, when after t0, who.
func move(m semel.Move) string {
	s := string(m.Kind)
	if !m.At.IsZero() {
		s += " at " + m.At.Sub(t0).String()
	}
	if m.Caller {
		s += " by the caller"
	}
	return s
}

// These do not depend on protection, window or lookup: they hold for all.
func TestMoveOfEveryStateButUnknown(t *testing.T) {
	returning := func(c semel.Contract) semel.Contract { c.OnFailed = semel.ReturnFailed; return c }
	same := func(c semel.Contract) semel.Contract { return c }
	expired := event(semel.EvExpired, 0, time.Hour)
	for _, h := range []struct {
		name   string
		change func(semel.Contract) semel.Contract
		events []semel.Event
		at     time.Duration
		want   string
	}{
		{"nobody claimed it", same, nil, 0, "send"},
		{"an attempt runs", same, []semel.Event{claim(1, 0)}, 0, "wait at 30s"},
		{"an attempt runs, just before its lease ends", same, []semel.Event{claim(1, 0)}, 30*time.Second - 1, "wait at 30s"},
		{"an attempt runs, asked to stop", same, []semel.Event{claim(1, 0), asked}, 10 * time.Second, "wait at 30s"},
		{"completed", same, []semel.Event{claim(1, 0), confirmed(1, "", 5*time.Second)}, time.Hour, "done"},
		{"completed, expired", same, []semel.Event{claim(1, 0), confirmed(1, "", 5*time.Second), expired}, time.Hour, "done"},
		{"failed", same, []semel.Event{claim(1, 0), refused1}, time.Hour, "send"},
		{"failed years ago: the window binds only what may have happened", same, []semel.Event{claim(1, 0), refused1}, 20000 * time.Hour, "send"},
		{"failed, and the contract hands failures back", returning, []semel.Event{claim(1, 0), refused1}, time.Hour, "done"},
		{"failed, expired", same, []semel.Event{claim(1, 0), refused1, expired}, time.Hour, "done"},
		{"failed, cancelled", same, []semel.Event{claim(1, 0), asked, event(semel.EvCancelled, 1, 7*time.Second)}, time.Hour, "person"},
		{"failed, cancelled, nobody asked", same, []semel.Event{claim(1, 0), event(semel.EvCancelled, 1, 7*time.Second)}, time.Hour, "person"},
		{"failed after somebody asked to stop it", same, []semel.Event{claim(1, 0), asked, event(semel.EvRefused, 1, 7*time.Second)}, time.Hour, "person"},
		{"failed, cancelled and returning", returning, []semel.Event{claim(1, 0), asked, event(semel.EvCancelled, 1, 7*time.Second)}, time.Hour, "person"},
		{
			"a person started what was cancelled again", same,
			[]semel.Event{claim(1, 0), event(semel.EvCancelled, 1, 7*time.Second), forced(claim(2, time.Hour)), event(semel.EvRefused, 2, time.Hour)},
			2 * time.Hour, "send",
		},
		{"in progress, an incident", same, []semel.Event{claim(1, 0), against}, 26 * time.Second, "person"},
		{"unknown, an incident", same, []semel.Event{claim(1, 0), lost1, against}, 26 * time.Second, "person"},
		{"completed, an incident", same, []semel.Event{claim(1, 0), confirmed(1, "", 5*time.Second), against}, 26 * time.Second, "person"},
		{"only a person can settle it", same, []semel.Event{claim(1, 0), partial(1, 5*time.Second)}, 26 * time.Second, "person"},
	} {
		t.Run(h.name, func(t *testing.T) {
			for _, p := range semel.Protections() {
				for _, looks := range []bool{false, true} {
					c := keyed()
					c.Protection, c.CanLookUp, c.AbsenceIsProof = p, looks, looks
					c = h.change(c)
					o := replay(t, c, h.events...)
					for name, decide := range map[string]func(*semel.Operation, semel.Contract, time.Time) semel.Move{"Decide": semel.Decide, "DecideAsked": semel.DecideAsked} {
						m := decide(&o, c, after(h.at))
						if got := move(m); got != h.want || m.Reason == "" {
							t.Errorf("%s, %s, lookup %v: got %s (%s), want %s", name, p, looks, got, m.Reason, h.want)
						}
					}
				}
			}
		})
	}
}

func forced(ev semel.Event) semel.Event { ev.Force = true; return ev }

// partial is an answer that only a person can judge.
func partial(n int, at time.Duration) semel.Event {
	ev := event(semel.EvLost, n, at)
	ev.Person, ev.Reason = true, "two of three items were accepted"
	return ev
}

// The moves of an unknown outcome: lost 5 s after the claim. The lease is 30 s,
// the pause 1 s. Window 24 h, margin 5 min, processing 1 min: resends end at
// 23h54m. Absence is proof from 30 s + 10 s + 1 min + 10 s + 1 s = 111 s on.
func TestMoveOfAnUnknownOutcome(t *testing.T) {
	const end = 23*time.Hour + 54*time.Minute
	none := func(p semel.Protection) semel.Contract {
		return semel.Contract{Protection: p, Window: 24 * time.Hour, MaxProcessing: time.Minute, Timeout: 10 * time.Second}
	}
	looking := func(p semel.Protection) semel.Contract { c := none(p); c.CanLookUp = true; return c }
	proving := func(p semel.Protection) semel.Contract {
		c := looking(p)
		c.AbsenceIsProof, c.VisibleAfter = true, 10*time.Second
		return c
	}
	timeout := func(c semel.Contract) semel.Contract {
		c.MaxProcessing, c.Timeout, c.AbsenceIsProof = 0, 6*time.Minute, false
		return c
	}
	budget := func(n int, c semel.Contract) semel.Contract { c.Attempts = n; return c }
	lost := []semel.Event{claim(1, 0), lost1}
	with := func(events ...semel.Event) []semel.Event { return slices.Concat(lost, events) }
	later := event(semel.EvLost, 1, 5*time.Second)
	later.CheckAfter = 2 * time.Minute
	noAnswer := func(at time.Duration) semel.Event {
		return semel.Event{Kind: semel.EvNoAnswer, AskedAt: after(at), At: after(at)}
	}
	for _, h := range []struct {
		name        string
		contract    semel.Contract
		events      []semel.Event
		at          time.Duration
		want, asked string // what recovery does by itself, what somebody who asks now gets
	}{
		// protection without lookup, right after
		{"transactional", none(semel.Transactional), lost, 5 * time.Second, "lookup at 6s", "lookup at 5s"},
		{"commutes", none(semel.Commutes), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"absolute", none(semel.Absolute), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"keyed", none(semel.Keyed), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"lookup without a lookup", none(semel.Lookup), lost, 5 * time.Second, "person", "person"},
		{"none", none(semel.Unprotected), lost, 5 * time.Second, "person", "person"},
		// with a lookup
		{"commutes, lookup", looking(semel.Commutes), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"absolute, lookup", looking(semel.Absolute), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"keyed, lookup", looking(semel.Keyed), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"lookup", looking(semel.Lookup), lost, 5 * time.Second, "lookup at 6s", "lookup at 5s"},
		{"none, lookup", looking(semel.Unprotected), lost, 5 * time.Second, "lookup at 6s", "lookup at 5s"},
		// a window binds keys only
		{"commutes, days later", none(semel.Commutes), lost, 99 * time.Hour, "resend at 6s", "resend at 99h0m0s"},
		{"absolute, days later", none(semel.Absolute), lost, 99 * time.Hour, "resend at 6s", "resend at 99h0m0s"},
		// the end of a window
		{"keyed, just before the end", none(semel.Keyed), lost, end - 1, "resend at 6s", "resend at 23h53m59.999999999s"},
		{"keyed, at the end", none(semel.Keyed), lost, end, "person", "person"},
		{"keyed, just after the end", none(semel.Keyed), lost, end + 1, "person", "person"},
		{"keyed, at the end, lookup", looking(semel.Keyed), lost, end, "lookup at 6s", "lookup at 23h54m0s"},
		{
			"keyed, the attempt timeout counts for an undeclared processing time: just before", timeout(none(semel.Keyed)), lost, 23*time.Hour + 49*time.Minute - 1,
			"resend at 6s", "resend at 23h48m59.999999999s",
		},
		{"keyed, the attempt timeout counts for an undeclared processing time", timeout(none(semel.Keyed)), lost, 23*time.Hour + 49*time.Minute, "person", "person"},
		{"keyed, the next pause ends after the window", none(semel.Keyed), []semel.Event{claim(1, 0), event(semel.EvLost, 1, end-time.Second)}, end - time.Second, "person", "resend at 23h53m59s"},
		{
			"keyed, the next pause ends just inside", none(semel.Keyed),
			[]semel.Event{claim(1, 0), event(semel.EvLost, 1, end-time.Second-1)},
			end - time.Second - 1,
			"resend at 23h53m59.999999999s", "resend at 23h53m58.999999999s",
		},
		{"keyed, later attempts do not move the window", none(semel.Keyed), with(claim(2, 20*time.Hour), event(semel.EvLost, 2, 20*time.Hour)), end, "person", "person"},
		{
			"keyed, a new key has a new window", none(semel.Keyed),
			[]semel.Event{claim(1, 0), retained(1, time.Second), claim(2, 20*time.Hour), event(semel.EvLost, 2, 20*time.Hour)},
			20*time.Hour + end - 1, "resend at 20h0m2s", "resend at 43h53m59.999999999s",
		},
		{
			"keyed, a new key's window ends, too", none(semel.Keyed),
			[]semel.Event{claim(1, 0), retained(1, time.Second), claim(2, 20*time.Hour), event(semel.EvLost, 2, 20*time.Hour)},
			20*time.Hour + end, "person", "person",
		},
		{
			"keyed, sent next morning after a failure: the window began with the first claim", none(semel.Keyed),
			[]semel.Event{claim(1, 0), refused1, claim(2, 25*time.Hour), event(semel.EvLost, 2, 25*time.Hour)},
			25 * time.Hour, "person", "person",
		},
		// budgets
		{"one attempt allowed", budget(1, none(semel.Absolute)), lost, 5 * time.Second, "person", "resend at 5s"},
		{"one attempt allowed, keyed, lookup", budget(1, looking(semel.Keyed)), lost, 5 * time.Second, "lookup at 6s", "resend at 5s"},
		{"two attempts allowed, the first lost", budget(2, none(semel.Keyed)), lost, 5 * time.Second, "resend at 6s", "resend at 5s"},
		{"two attempts allowed, both lost", budget(2, none(semel.Keyed)), with(claim2, lost2), 15 * time.Second, "person", "resend at 15s"},
		{"two lookups allowed, one made", budget(2, looking(semel.Lookup)), with(noAnswer(6 * time.Second)), 6 * time.Second, "lookup at 8s", "lookup at 6s"},
		{"two lookups allowed, both made", budget(2, looking(semel.Lookup)), with(noAnswer(6*time.Second), noAnswer(8*time.Second)), 8 * time.Second, "person", "lookup at 8s"},
		{
			"two lookups made, none could prove", budget(2, proving(semel.Lookup)), with(absent(after(6*time.Second), 6*time.Second), absent(after(8*time.Second), 8*time.Second)), 8 * time.Second,
			"lookup at 12s", "lookup at 8s",
		},
		{"two lookups made, the last could prove but gave no answer", budget(2, proving(semel.Lookup)), with(noAnswer(6*time.Second), noAnswer(111*time.Second)), 111 * time.Second, "person", "lookup at 1m51s"},
		// lookups and the moment of proof
		{"a lookup waits for the proof when it is near", proving(semel.Lookup), []semel.Event{claim(1, 0), event(semel.EvLost, 1, 109*time.Second)}, 109 * time.Second, "lookup at 1m51s", "lookup at 1m49s"},
		{"the fourth lookup waits for the proof", proving(semel.Lookup), with(noAnswer(6*time.Second), noAnswer(8*time.Second), noAnswer(12*time.Second)), 12 * time.Second, "lookup at 1m51s", "lookup at 12s"},
		{
			"however many asked before, the lookup that can prove is not put off", proving(semel.Lookup), with(noAnswer(6*time.Second), noAnswer(7*time.Second),
				noAnswer(8*time.Second), noAnswer(9*time.Second), noAnswer(10*time.Second), noAnswer(11*time.Second), noAnswer(12*time.Second)), 12 * time.Second,
			"lookup at 1m51s", "lookup at 12s",
		},
		{"without proof, the fourth lookup comes after its pause", looking(semel.Lookup), with(noAnswer(6*time.Second), noAnswer(8*time.Second), noAnswer(12*time.Second)), 12 * time.Second, "lookup at 20s", "lookup at 12s"},
		// the destination asks for time
		{"still working, resend", none(semel.Keyed), []semel.Event{claim(1, 0), later}, 5 * time.Second, "resend at 2m5s", "resend at 5s"},
		{"still working, lookup", looking(semel.Lookup), []semel.Event{claim(1, 0), later}, 5 * time.Second, "lookup at 2m5s", "lookup at 5s"},
		{"still working at the end of the window", none(semel.Keyed), []semel.Event{claim(1, 0), event(semel.EvLost, 1, end-time.Minute), checkAfter(1, end-time.Minute, 2*time.Minute)}, end - time.Minute, "person", "resend at 23h53m0s"},
		// cancel
		{"asked to stop", none(semel.Keyed), with(asked), 6 * time.Second, "person", "person"},
		{"asked to stop, absolute", none(semel.Absolute), with(asked), 6 * time.Second, "person", "person"},
		{"asked to stop, lookup", looking(semel.Keyed), with(asked), 6 * time.Second, "lookup at 6s", "lookup at 6s"},
		// headers that only a caller has
		{"withheld, keyed", withheld(none(semel.Keyed)), lost, 5 * time.Second, "resend at 6s by the caller", "resend at 5s by the caller"},
		{"withheld, lookup", withheld(looking(semel.Lookup)), lost, 5 * time.Second, "lookup at 6s by the caller", "lookup at 5s by the caller"},
		// a lapsed lease reads as unknown before anybody wrote so
		{"lapsed, just before", none(semel.Keyed), []semel.Event{claim(1, 0)}, 30*time.Second - 1, "wait at 30s", "wait at 30s"},
		{"lapsed, keyed", none(semel.Keyed), []semel.Event{claim(1, 0)}, 30 * time.Second, "resend at 1s", "resend at 30s"},
		{"lapsed, lookup", looking(semel.Lookup), []semel.Event{claim(1, 0)}, 30 * time.Second, "lookup at 1s", "lookup at 30s"},
		{"lapsed, none", none(semel.Unprotected), []semel.Event{claim(1, 0)}, 30 * time.Second, "person", "person"},
		{"lapsed, asked to stop", none(semel.Keyed), []semel.Event{claim(1, 0), asked}, 30 * time.Second, "person", "person"},
		{"lapsed after the window", none(semel.Keyed), []semel.Event{claim(1, 0)}, end, "person", "person"},
	} {
		t.Run(h.name, func(t *testing.T) {
			o := replay(t, h.contract, h.events...)
			if h.contract.Owner == "withheld" {
				o.Request.Withheld = []string{"Authorization", "X-Signature"}
			}
			for i, want := range []string{h.want, h.asked} {
				m := []func(*semel.Operation, semel.Contract, time.Time) semel.Move{semel.Decide, semel.DecideAsked}[i](&o, h.contract, after(h.at))
				if got := move(m); got != want || m.Reason == "" {
					t.Errorf("asked %v: got %s (%s), want %s", i == 1, got, m.Reason, want)
				}
				if m.Caller && !strings.Contains(m.Reason, "Authorization, X-Signature") {
					t.Errorf("%q does not name what only the caller has", m.Reason)
				}
			}
		})
	}
}

// withheld marks a contract whose request has headers that are not stored.
func withheld(c semel.Contract) semel.Contract { c.Owner = "withheld"; return c }

func checkAfter(n int, at, d time.Duration) semel.Event {
	ev := event(semel.EvLost, n, at)
	ev.CheckAfter = d
	return ev
}

// M24: the next automatic move stands in CheckAt, and nowhere where a person
// or a caller is needed.
func TestCheckAtIsTheNextAutomaticMove(t *testing.T) {
	for _, h := range []struct {
		name     string
		contract semel.Contract
		events   []semel.Event
		want     time.Time
	}{
		{"in progress", keyed(), []semel.Event{claim(1, 0)}, time.Time{}},
		{"resend", keyed(), []semel.Event{claim(1, 0), lost1}, after(6 * time.Second)},
		{"lookup", lookup(), []semel.Event{claim(1, 0), lost1}, after(6 * time.Second)},
		{"a person", unprotected(), []semel.Event{claim(1, 0), lost1}, time.Time{}},
		{"an incident", keyed(), []semel.Event{claim(1, 0), lost1, against}, time.Time{}},
		{"completed", keyed(), []semel.Event{claim(1, 0), lost1, found("", 6*time.Second)}, time.Time{}},
		{"failed", keyed(), []semel.Event{claim(1, 0), refused1}, time.Time{}},
	} {
		if got := replay(t, h.contract, h.events...).CheckAt; !got.Equal(h.want) {
			t.Errorf("%s: got %v, want %v", h.name, got, h.want)
		}
	}
	id := identity(keyed())
	id.Request.Withheld = []string{"Authorization"}
	o := apply(t, semel.Operation{Identity: id}, claim(1, 0), lost1)
	if !o.CheckAt.IsZero() {
		t.Errorf("recovery would resend at %v what only a caller can", o.CheckAt)
	}
}

// Law 7: over all open attempts, the last moment for bytes to leave, then
// processing, visibility and skew.
func TestProofAtCoversEveryOpenAttempt(t *testing.T) {
	closed := func(n int, at time.Duration) semel.Event {
		ev := event(semel.EvLost, n, at)
		ev.Closed = true
		return ev
	}
	later := claim2
	later.At = after(time.Hour)
	short := claim(1, 0)
	short.SendWithin = 3 * time.Second
	// One minute of processing, 10 s of visibility, 1 s of skew.
	const rest = 71 * time.Second
	with := func(change func(*semel.Contract)) semel.Contract { c := keyed(); change(&c); return c }
	for _, h := range []struct {
		name     string
		contract semel.Contract
		events   []semel.Event
		want     time.Duration // 0: never
	}{
		{"the lease, then the default write timeout", keyed(), []semel.Event{claim(1, 0), lost1}, 40*time.Second + rest},
		{"an attempt still under way", keyed(), []semel.Event{claim(1, 0)}, 40*time.Second + rest},
		{"less time to send than the lease", keyed(), []semel.Event{short, lost1}, 13*time.Second + rest},
		{"a declared write timeout", with(func(c *semel.Contract) { c.WriteTimeout = time.Second }), []semel.Event{claim(1, 0), lost1}, 31*time.Second + rest},
		{"a declared skew", with(func(c *semel.Contract) { c.Skew = 5 * time.Second }), []semel.Event{claim(1, 0), lost1}, 44*time.Second + rest},
		{"no visibility delay", with(func(c *semel.Contract) { c.VisibleAfter = 0 }), []semel.Event{claim(1, 0), lost1}, 30*time.Second + rest},
		{"its worker saw the connection closed", keyed(), []semel.Event{claim(1, 0), closed(1, 5*time.Second)}, 5*time.Second + rest},
		{"its worker saw it closed later", keyed(), []semel.Event{claim(1, 0), lost1, closed(1, 5*time.Minute)}, 5*time.Minute + rest},
		{"the first record of that counts", keyed(), []semel.Event{claim(1, 0), closed(1, 5*time.Second), closed(1, 5*time.Minute)}, 5*time.Second + rest},
		{"the later attempt counts", keyed(), []semel.Event{claim(1, 0), lost1, later, event(semel.EvLost, 2, time.Hour)}, time.Hour + 40*time.Second + rest},
		{"the older one, when the later is closed", keyed(), []semel.Event{claim(1, 0), lost1, claim2, closed(2, 15*time.Second)}, 40*time.Second + rest},
		{"the older one, when the later had no effect", keyed(), []semel.Event{claim(1, 0), lost1, later, event(semel.EvRefused, 2, time.Hour)}, 40*time.Second + rest},
		{"both closed: the later record", keyed(), []semel.Event{claim(1, 0), closed(1, 5*time.Second), claim2, closed(2, 15*time.Second)}, 15*time.Second + rest},
		{"renewing never extends the time to send", keyed(), []semel.Event{claim(1, 0), event(semel.EvLapsed, 1, time.Hour)}, 40*time.Second + rest},
		{"absence is no proof", with(func(c *semel.Contract) { c.AbsenceIsProof = false }), []semel.Event{claim(1, 0), lost1}, 0},
		{"processing time undeclared", with(func(c *semel.Contract) { c.MaxProcessing = 0 }), []semel.Event{claim(1, 0), lost1}, 0},
	} {
		t.Run(h.name, func(t *testing.T) {
			o := replay(t, h.contract, h.events...)
			at, ok := o.ProofAt(h.contract)
			if !ok {
				at = t0
			}
			if got := at.Sub(t0); got != h.want {
				t.Fatalf("got %v, want %v", got, h.want)
			}
			if o.State == semel.InProgress {
				return
			}
			// What counts is when the lookup was sent, not when its answer came.
			for off, want := range map[time.Duration]semel.State{-1: semel.Unknown, 0: semel.Failed, 1: semel.Failed} {
				if h.want == 0 {
					want = semel.Unknown
				}
				late := apply(t, o, absent(at.Add(off), 100*time.Hour))
				if late.State != want {
					t.Errorf("a lookup sent %v after the moment of proof: %s, want %s", off, late.State, want)
				}
			}
		})
	}
}

// A lookup that was under way while an attempt was sent proves nothing about it.
func TestLookupSentBeforeALaterAttemptProvesNothing(t *testing.T) {
	o := replay(t, keyed(), claim(1, 0), lost1, claim(2, 200*time.Second), event(semel.EvLost, 2, 201*time.Second), absent(after(150*time.Second), 202*time.Second))
	if o.State != semel.Unknown {
		t.Errorf("got %s, want unknown", o.State)
	}
}

// Law 4: a clock never settles.
func TestNoTimeSettles(t *testing.T) {
	for _, c := range []semel.Contract{keyed(), lookup(), unprotected()} {
		o := replay(t, c, claim(1, 0), lost1)
		for _, d := range []time.Duration{0, time.Hour, 24 * time.Hour, 1e6 * time.Hour} {
			if got := o.StateAt(after(d)); got != semel.Unknown {
				t.Errorf("%s after %v: %s", c.Protection, d, got)
			}
		}
		o = replay(t, c, claim(1, 0))
		for d, want := range map[time.Duration]semel.State{0: semel.InProgress, 30*time.Second - 1: semel.InProgress, 30 * time.Second: semel.Unknown, 1e6 * time.Hour: semel.Unknown} {
			if got := o.StateAt(after(d)); got != want {
				t.Errorf("%s, in progress, after %v: %s, want %s", c.Protection, d, got, want)
			}
		}
	}
}

// Decide never changes what it looks at.
func TestDecideIsPure(t *testing.T) {
	for _, s := range situations {
		o, before := replay(t, s.contract, s.events...), replay(t, s.contract, s.events...)
		for _, d := range []time.Duration{0, time.Minute, 48 * time.Hour} {
			semel.Decide(&o, s.contract, after(d))
			semel.DecideAsked(&o, s.contract, after(d))
		}
		if diff := cmp.Diff(before, o, cmp.Exporter(anyType)); diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
	}
}
