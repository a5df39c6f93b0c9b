package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// testHistories: law 13. Random histories through two handles end as the
// model, which is Apply on a map, says: every answer, every reading, every
// listing.
func testHistories(t *testing.T, h Harness) {
	stores := []semel.Store{h.Open(t), h.Open(t)}
	rapid.Check(t, func(r *rapid.T) {
		m := &model{T: r, h: h, stores: stores, scope: semel.Scope("history-" + string(newKey())), ops: map[semel.Key]semel.Operation{}}
		r.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"change": m.change,
			"repeat": m.repeat,
			"stale":  m.stale,
			"renew":  m.renew,
			"shift": func(r *rapid.T) {
				h.Shift(time.Duration(rapid.IntRange(1, 90).Draw(r, "seconds")) * time.Second)
			},
		})
	})
}

type model struct {
	*rapid.T
	h      Harness
	stores []semel.Store
	scope  semel.Scope
	ops    map[semel.Key]semel.Operation
	past   []done
}

type done struct {
	change semel.Change
	answer semel.Operation
}

func (m *model) store(r *rapid.T) semel.Store {
	return m.stores[rapid.IntRange(0, len(m.stores)-1).Draw(r, "handle")]
}

// pick draws one of the operations, or one that nobody claimed.
func (m *model) pick(r *rapid.T, now time.Time) semel.Operation {
	key := semel.Key(fmt.Sprintf("k%d", rapid.IntRange(1, 4).Draw(r, "key")))
	if o, ok := m.ops[key]; ok {
		return o
	}
	c := contract()
	switch rapid.IntRange(0, 3).Draw(r, "contract") {
	case 0:
		c = byHand()
	case 1:
		c = semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: 5 * time.Second, MaxProcessing: time.Second}
	case 2:
		c.AbsenceIsProof, c.MaxProcessing, c.VisibleAfter = true, time.Second, time.Second
	}
	o := fresh(now, key, c)
	o.Scope = m.scope
	return o
}

func draw(r *rapid.T, o semel.Operation, now time.Time) semel.Event {
	kinds := []semel.EventKind{
		semel.EvClaimed, semel.EvConfirmed, semel.EvRefused, semel.EvRetained, semel.EvLost, semel.EvLapsed, semel.EvFound,
		semel.EvAbsent, semel.EvNoAnswer, semel.EvHappened, semel.EvDidNotHappen, semel.EvCancelAsked, semel.EvCancelled, semel.EvContradiction,
		semel.EvIncident, semel.EvJoined, semel.EvExpired,
	}
	ev := semel.Event{Kind: rapid.SampledFrom(kinds).Draw(r, "kind"), At: now, By: "by", Reason: rapid.SampledFrom([]string{"", "why"}).Draw(r, "reason")}
	attempt := o.Attempt
	if attempt > 1 {
		attempt = rapid.IntRange(1, o.Attempt).Draw(r, "attempt")
	}
	switch ev.Kind {
	case semel.EvClaimed:
		ev.Attempt, ev.Lease, ev.SendWithin = o.Attempt+1, time.Duration(rapid.IntRange(1, 60).Draw(r, "lease"))*time.Second, 5*time.Second
		ev.Force = rapid.Bool().Draw(r, "force")
	case semel.EvConfirmed, semel.EvRefused, semel.EvRetained, semel.EvLost, semel.EvFound:
		ev.Attempt = attempt
		ev.Result = &semel.Result{Reference: rapid.SampledFrom([]string{"", "ch_1", "ch_2"}).Draw(r, "reference"), Body: []byte("answer")}
		ev.Person = ev.Kind == semel.EvLost && rapid.Bool().Draw(r, "person")
		ev.Closed = ev.Kind == semel.EvLost && rapid.Bool().Draw(r, "closed")
	case semel.EvLapsed, semel.EvCancelled:
		ev.Attempt = attempt
	case semel.EvAbsent, semel.EvNoAnswer:
		ev.AskedAt = now
	case semel.EvDidNotHappen:
		ev.Force, ev.NewKey = rapid.Bool().Draw(r, "force"), rapid.Bool().Draw(r, "new key")
	case semel.EvIncident:
		ev.Correction = rapid.SampledFrom([]semel.State{semel.Completed, semel.Failed, semel.Unknown}).Draw(r, "correction")
	case semel.EvHappened, semel.EvCancelAsked, semel.EvContradiction, semel.EvJoined, semel.EvExpired:
		ev.Reference = "ref"
	}
	return ev
}

// change commits a random event, where the table has it.
func (m *model) change(r *rapid.T) {
	s := m.store(r)
	at := now(r, s)
	o := m.pick(r, at)
	ev := draw(r, o, at)
	if ev.Kind == semel.EvExpired && o.Incident != "" {
		r.Skip("an open incident never expires")
	}
	token := newToken()
	if o.Version == 0 {
		token = o.ID
	}
	c, err := o.Change(ev, token)
	if err != nil {
		r.Skip("no such transition")
	}
	got, err := s.Commit(m.Context(), c)
	if err != nil {
		r.Fatalf("%s: %v", ev.Kind, err)
	}
	ev.At = got.UpdatedAt
	if ev.At.Before(o.UpdatedAt) {
		r.Fatalf("stamped %v, the event before at %v", ev.At, o.UpdatedAt)
	}
	want, err := o.Apply(ev)
	if err != nil {
		r.Fatalf("%s at its time of commit: %v", ev.Kind, err)
	}
	same(r, string(ev.Kind), got, want)
	m.ops[o.Key] = got
	m.past = append(m.past, done{c, got})
}

// repeat makes an old change again.
func (m *model) repeat(r *rapid.T) {
	if len(m.past) == 0 {
		r.Skip("no past")
	}
	d := m.past[rapid.IntRange(0, len(m.past)-1).Draw(r, "change")]
	got, err := m.store(r).Commit(m.Context(), d.change)
	if err != nil {
		r.Fatalf("repeat %s: %v", d.change.Event.Kind, err)
	}
	same(r, "repeat "+string(d.change.Event.Kind), got, d.answer)
}

// stale makes an old change with another token.
func (m *model) stale(r *rapid.T) {
	if len(m.past) == 0 {
		r.Skip("no past")
	}
	c := m.past[rapid.IntRange(0, len(m.past)-1).Draw(r, "change")].change
	c.Token = newToken()
	if c.Before.Version == 0 {
		c.Before.ID = c.Token
		c.After.ID = c.Token
	}
	_, err := m.store(r).Commit(m.Context(), c)
	wantErr(r, "a stale change", err, semel.ErrStale)
}

func (m *model) renew(r *rapid.T) {
	s := m.store(r)
	at := now(r, s)
	o := m.pick(r, at)
	attempt := rapid.IntRange(0, 3).Draw(r, "attempt")
	got, err := s.Renew(m.Context(), o.ID, attempt, 20*time.Second)
	after := now(r, s)
	holds := func(at time.Time) bool {
		return o.State == semel.InProgress && o.Attempt == attempt && o.StateAt(at) == semel.InProgress
	}
	switch {
	case err == nil && holds(at):
		if got.Cancel != o.Cancel || got.Until.Before(o.LeaseUntil) {
			r.Fatalf("renewed %+v, the operation is %+v", got, o)
		}
		o.LeaseUntil = got.Until
		m.ops[o.Key] = o
	case errors.Is(err, semel.ErrStale) && !holds(after):
	default:
		r.Fatalf("renew attempt %d of %d, %s: error %v", attempt, o.Attempt, o.StateAt(at), err)
	}
}

// check reads everything back and compares.
func (m *model) check(r *rapid.T) {
	i := rapid.IntRange(0, len(m.stores)-1).Draw(r, "handle")
	s := m.stores[i]
	for key, want := range m.ops {
		got, err := s.Load(m.Context(), m.scope, key)
		if err != nil {
			r.Fatal(err)
		}
		if want.State != semel.InProgress {
			got.LeaseUntil = want.LeaseUntil // a renewal of an attempt that is over is not kept
		}
		same(r, fmt.Sprintf("handle %d, %s", i, key), got, want)
	}
	before := now(r, s)
	due := dueIDs(r, s)
	listed := map[semel.State]map[semel.ID]bool{}
	for _, st := range []semel.State{semel.InProgress, semel.Completed, semel.Failed, semel.Unknown} {
		listed[st] = listIDs(r, s, semel.Filter{Scope: m.scope, State: st})
	}
	review := listIDs(r, s, semel.Filter{Scope: m.scope, Review: true})
	after := now(r, s)
	for key, o := range m.ops {
		if isDue(o, before) != isDue(o, after) || o.StateAt(before) != o.StateAt(after) {
			continue // it changed while we looked
		}
		if got, want := due[o.ID], isDue(o, after); got != want {
			r.Fatalf("%s due: got %v, want %v: %+v", key, got, want, o)
		}
		if got, want := review[o.ID], isForReview(o, after); got != want {
			r.Fatalf("%s in review: got %v, want %v: %+v", key, got, want, o)
		}
		got := slices.Collect(maps.Keys(maps.Collect(func(yield func(semel.State, bool) bool) {
			for st, ids := range listed {
				if ids[o.ID] && !yield(st, true) {
					return
				}
			}
		})))
		if diff := cmp.Diff([]semel.State{o.StateAt(after)}, got); diff != "" {
			r.Fatalf("%s is listed as (-want +got):\n%s", key, diff)
		}
	}
}

func isDue(o semel.Operation, now time.Time) bool {
	return o.State == semel.InProgress && o.StateAt(now) == semel.Unknown || o.State == semel.Unknown && !o.CheckAt.IsZero() && !o.CheckAt.After(now)
}

func isForReview(o semel.Operation, now time.Time) bool {
	if o.State == semel.InProgress && o.StateAt(now) == semel.Unknown {
		if lapsed, err := o.Apply(semel.Event{Kind: semel.EvLapsed, Attempt: o.Attempt, At: now}); err == nil {
			o = lapsed
		}
	}
	return o.Incident != "" || o.State == semel.Unknown && o.CheckAt.IsZero()
}
