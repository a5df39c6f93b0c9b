// Package destinationtest is the contract suite that every destination passes.
//
// A destination gives the suite a [World]: itself, a way to make requests that
// the world answers in a chosen manner, and a count of the effects that really
// happened. The suite sends, looks, interrupts, and compares the evidence with
// the count. Evidence may say less than the truth, never more.
package destinationtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
)

// Manner is how the world answers a request.
type Manner string

// The manners.
const (
	Succeeds    Manner = "succeeds"     // acts and says so
	Refuses     Manner = "refuses"      // does not act, and says so
	LosesAnswer Manner = "loses answer" // acts, and the answer never arrives
	Hangs       Manner = "hangs"        // acts, and does not answer as long as the test runs
	Slow        Manner = "slow"         // acts, and says so after about 300 ms
	Unreachable Manner = "unreachable"  // cannot be reached at all
)

// manners is the order in which a mixed test uses them.
var manners = []Manner{Succeeds, Refuses, LosesAnswer, Slow, Unreachable}

// World is one destination and what it acts on.
type World struct {
	Destination semel.Destination
	// Request makes the request and the contract for an effect called name,
	// which is new to the world. ok is false where the world has no such manner.
	Request func(name string, m Manner) (r semel.Request, c semel.Contract, ok bool)
	// Effects counts how often the effect called name has happened.
	Effects func(name string) int
	// Close waits for everything under way; it may be nil.
	Close func() error
}

// Test runs the suite; open makes a fresh World for each test in it.
func Test(t *testing.T, open func(t *testing.T) World) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := open(t)
			r := &run{world: w, ctx: t.Context(), fail: func(s string) { t.Error(s) }}
			c.test(r)
			r.settle()
			if r.missing != "" && !t.Failed() {
				t.Skip("the world has no request that " + r.missing)
			}
		})
	}
}

// run is one test against one world. Failures are sentences, so that the suite
// itself can be tested.
type run struct {
	world World
	ctx   context.Context //nolint:containedctx // the test's own
	fail  func(string)

	mu      sync.Mutex
	missing string
	spoken  []spoken
}

// spoken is evidence that the suite received for an effect.
type spoken struct {
	name string
	ev   semel.Event
}

func (r *run) failf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

// call is one attempt that the suite makes.
type call struct {
	send   *semel.Send
	begins atomic.Int32
	lates  atomic.Int32
	late   chan semel.Event
}

// prepare makes an attempt; ok is false where the world lacks the manner.
func (r *run) prepare(name string, m Manner) (c *call, ok bool) {
	request, contract, ok := r.world.Request(name, m)
	if !ok {
		r.mu.Lock()
		r.missing = string(m)
		r.mu.Unlock()
		return nil, false
	}
	op := &semel.Operation{
		Identity: semel.Identity{Scope: "destinationtest", Key: semel.Key(name), Request: request, Contract: contract},
		State:    semel.InProgress, Attempt: 1,
	}
	c = &call{late: make(chan semel.Event, 1)}
	c.send = &semel.Send{Operation: op, Attempt: 1, DestinationKey: op.DestinationKey(), Begin: func() error {
		c.begins.Add(1)
		if n := r.world.Effects(name); n != 0 {
			r.failf("%s: it happened %d times before Begin agreed", name, n)
		}
		return nil
	}}
	return c, true
}

// takesLate makes the attempt accept late evidence.
func (c *call) takesLate() {
	c.send.Late = func(ev semel.Event) {
		if c.lates.Add(1) == 1 {
			c.late <- ev
		}
	}
}

// do sends, and checks what the evidence says against the world.
func (r *run) do(ctx context.Context, name string, c *call) semel.Event {
	before, operation := *c.send, *c.send.Operation
	began := time.Now()
	ev := r.world.Destination.Send(ctx, c.send)
	if took := time.Since(began); took > 20*time.Second {
		r.failf("%s: Send took %v", name, took)
	}
	if !reflect.DeepEqual(operation, *c.send.Operation) || before.DestinationKey != c.send.DestinationKey {
		r.failf("%s: Send changed what it was given", name)
	}
	if n := c.begins.Load(); n > 1 {
		r.failf("%s: Begin was called %d times", name, n)
	}
	if c.begins.Load() == 0 && ev.Kind != semel.EvRefused {
		r.failf("%s: %s although Begin was never asked", name, ev.Kind)
	}
	r.hear(name, ev)
	return ev
}

// hear checks evidence now, and keeps it to be checked again at the end.
func (r *run) hear(name string, ev semel.Event) {
	r.mu.Lock()
	r.spoken = append(r.spoken, spoken{name, ev})
	r.mu.Unlock()
	r.check(name, ev)
}

func (r *run) check(name string, ev semel.Event) {
	n := r.world.Effects(name)
	if n > 1 {
		r.failf("%s: it happened %d times in one attempt", name, n)
	}
	switch ev.Kind {
	case semel.EvConfirmed:
		if n == 0 {
			r.failf("%s: confirmed (%s), and it never happened", name, ev.Reason)
		}
	case semel.EvRefused, semel.EvRetained:
		if n > 0 {
			r.failf("%s: %s (%s), and it happened", name, ev.Kind, ev.Reason)
		}
	case semel.EvLost:
	default:
		r.failf("%s: Send returned %q, which is not evidence of an attempt", name, ev.Kind)
	}
}

// settle lets everything under way end and checks all evidence once more.
func (r *run) settle() {
	if r.world.Close != nil {
		if err := r.world.Close(); err != nil {
			r.failf("close: %v", err)
		}
	}
	for _, s := range r.spoken {
		r.check(s.name, s.ev)
	}
}

// cases are the suite.
var cases = []struct {
	name string
	test func(*run)
}{
	{"SuccessIsConfirmed", successIsConfirmed},
	{"RefusedBeginSendsNothing", refusedBeginSendsNothing},
	{"RefusalHasNoEffect", refusalHasNoEffect},
	{"UnreachableHasNoEffect", unreachableHasNoEffect},
	{"LostAnswerIsNotFailure", lostAnswerIsNotFailure},
	{"CancelIsNotFailure", cancelIsNotFailure},
	{"DeadContextIsHonest", deadContextIsHonest},
	{"LateEvidenceComesOnce", lateEvidenceComesOnce},
	{"ManyAtOnce", manyAtOnce},
	{"LookNeverActs", lookNeverActs},
}

// M13, law 1: one Begin, then the effect, then the confirmation.
func successIsConfirmed(r *run) {
	c, ok := r.prepare("success", Succeeds)
	if !ok {
		return
	}
	ev := r.do(r.ctx, "success", c)
	if ev.Kind != semel.EvConfirmed || c.begins.Load() != 1 || r.world.Effects("success") != 1 {
		r.failf("got %s (%s) after %d Begins and %d effects, want confirmed after one of each",
			ev.Kind, ev.Reason, c.begins.Load(), r.world.Effects("success"))
	}
}

// Laws 1 and 6: on an error of Begin nothing is sent.
func refusedBeginSendsNothing(r *run) {
	ctx, cancel := context.WithTimeout(r.ctx, 3*time.Second) // for a destination that sends nevertheless
	defer cancel()
	for _, m := range []Manner{Succeeds, LosesAnswer, Hangs, Slow} {
		name := "begin " + string(m)
		c, ok := r.prepare(name, m)
		if !ok {
			continue
		}
		c.send.Begin = func() error { c.begins.Add(1); return errors.New("the lease is over") }
		ev := r.do(ctx, name, c)
		if ev.Kind != semel.EvRefused || c.begins.Load() != 1 {
			r.failf("%s: got %s (%s) after %d Begins, want refused after one", name, ev.Kind, ev.Reason, c.begins.Load())
		}
	}
	r.missing = ""
}

// M13: what the destination says it did not do is known not to have happened.
func refusalHasNoEffect(r *run) {
	c, ok := r.prepare("refusal", Refuses)
	if !ok {
		return
	}
	if ev := r.do(r.ctx, "refusal", c); ev.Kind != semel.EvRefused && ev.Kind != semel.EvRetained {
		r.failf("got %s (%s), want refused or retained", ev.Kind, ev.Reason)
	}
}

// M13: where nothing could leave, nothing happened.
func unreachableHasNoEffect(r *run) {
	c, ok := r.prepare("unreachable", Unreachable)
	if !ok {
		return
	}
	if ev := r.do(r.ctx, "unreachable", c); ev.Kind != semel.EvRefused {
		r.failf("got %s (%s), want refused", ev.Kind, ev.Reason)
	}
}

// M15, law 2: a lost answer is unknown.
func lostAnswerIsNotFailure(r *run) {
	c, ok := r.prepare("lost", LosesAnswer)
	if !ok {
		return
	}
	if ev := r.do(r.ctx, "lost", c); ev.Kind != semel.EvLost {
		r.failf("got %s (%s), want lost", ev.Kind, ev.Reason)
	}
}

// M15, M18: who stops waiting does not stop the work.
func cancelIsNotFailure(r *run) {
	c, ok := r.prepare("cancel", Hangs)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	go func() {
		for begun := time.Now(); r.world.Effects("cancel") == 0 && time.Since(begun) < 10*time.Second; {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if ev := r.do(ctx, "cancel", c); ev.Kind != semel.EvLost {
		r.failf("got %s (%s), want lost", ev.Kind, ev.Reason)
	}
}

// Law 2: a context that is over before the call changes nothing about honesty.
func deadContextIsHonest(r *run) {
	c, ok := r.prepare("dead", Succeeds)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	r.do(ctx, "dead", c)
}

// M17, law 6: a late answer is delivered once, or the connection was closed.
func lateEvidenceComesOnce(r *run) {
	c, ok := r.prepare("late", Slow)
	if !ok {
		return
	}
	c.takesLate()
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	ev := r.do(ctx, "late", c)
	wait := 10 * time.Second
	if ev.Kind != semel.EvLost || ev.Closed {
		wait = 500 * time.Millisecond // then nothing may come
	}
	select {
	case late := <-c.late:
		if wait < time.Second {
			r.failf("%s came late although Send had returned %s, closed %v", late.Kind, ev.Kind, ev.Closed)
		}
		r.hear("late", late)
	case <-time.After(wait):
	}
	if n := c.lates.Load(); n > 1 {
		r.failf("Late was called %d times", n)
	}
}

// Safe for concurrent use: everybody gets his own evidence.
func manyAtOnce(r *run) {
	var all sync.WaitGroup
	for i := range 4 {
		for _, m := range manners {
			name := fmt.Sprintf("many %d %s", i, m)
			c, ok := r.prepare(name, m)
			if !ok {
				continue
			}
			all.Go(func() {
				ev := r.do(r.ctx, name, c)
				if m == Succeeds && ev.Kind != semel.EvConfirmed {
					r.failf("%s: got %s (%s), want confirmed", name, ev.Kind, ev.Reason)
				}
			})
		}
	}
	all.Wait()
	r.missing = ""
}

// M22, law 15: looking changes nothing, and says found only of what happened.
func lookNeverActs(r *run) {
	looker, ok := r.world.Destination.(semel.Looker)
	if !ok {
		r.missing = "can be looked up"
		return
	}
	for _, happened := range []bool{true, false} {
		name := fmt.Sprintf("look happened=%v", happened)
		c, ok := r.prepare(name, Succeeds)
		if !ok {
			return
		}
		want := 0
		if happened {
			r.do(r.ctx, name, c)
			want = 1
		}
		begins := c.begins.Load()
		for range 3 {
			ev := looker.Look(r.ctx, c.send)
			switch {
			case ev.Kind == semel.EvFound && !happened:
				r.failf("%s: found (%s), and it never happened", name, ev.Reason)
			case ev.Kind != semel.EvFound && ev.Kind != semel.EvAbsent && ev.Kind != semel.EvNoAnswer:
				r.failf("%s: Look returned %q, which is not evidence of a lookup", name, ev.Kind)
			}
		}
		if n := r.world.Effects(name); n != want || c.begins.Load() != begins {
			r.failf("%s: after looking there are %d effects, want %d; Begin was asked %d times more", name, n, want, c.begins.Load()-begins)
		}
	}
}
