package semel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// tinyGuard is the smallest Guard for the examples: one process, no store.
// Package engine has the real one. Its bank does the work but loses the first
// answers, as many as it is told to.
type tinyGuard struct {
	lose    int
	broken  error // the store cannot be reached
	ops     map[semel.Key]semel.Operation
	effects int
}

func (g *tinyGuard) Do(ctx context.Context, c semel.Call) (semel.Outcome, error) {
	if g.broken != nil {
		return semel.Outcome{}, &semel.NotAskedError{Scope: c.Scope, Key: c.Key, Err: g.broken}
	}
	if g.ops == nil {
		g.ops = map[semel.Key]semel.Operation{}
	}
	o, known := g.ops[c.Key]
	if known {
		if fields := o.Request.Diff(&c.Request); len(fields) > 0 {
			return semel.Outcome{Status: semel.StatusConflict, Operation: o, Fields: fields}, nil
		}
		return semel.Outcome{Status: semel.Status(o.State), Operation: o, Replayed: true, Next: semel.Decide(&o, o.Contract, t0)}, nil
	}
	o = semel.Operation{Identity: semel.Identity{Scope: semel.ActionScope("acme", c.Request.Connection, c.Action), Key: c.Key, Request: c.Request, Contract: c.Contract}}
	o, err := o.Apply(semel.Event{Kind: semel.EvClaimed, Attempt: 1, At: t0, Lease: time.Minute, SendWithin: time.Minute})
	if err != nil {
		return semel.Outcome{}, &semel.NotAskedError{Key: c.Key, Err: err}
	}
	ev := c.Destination.Send(ctx, &semel.Send{Operation: &o, Attempt: 1, DestinationKey: o.DestinationKey(), Begin: func() error { return nil }})
	g.effects++
	if g.lose > 0 {
		g.lose--
		ev = semel.Event{Kind: semel.EvLost, Reason: "connection reset"}
	}
	ev.Attempt, ev.At = 1, t0.Add(time.Second)
	if o, err = o.Apply(ev); err != nil {
		return semel.Outcome{}, &semel.NotAskedError{Key: c.Key, Err: err}
	}
	g.ops[c.Key] = o
	return semel.Outcome{Status: semel.Status(o.State), Operation: o, Next: semel.Decide(&o, o.Contract, t0)}, nil
}

type payment struct {
	Invoice string
	Cents   int64
}

// byBank pays through a bank that offers no keys and no lookup.
var byBank = semel.Action[payment, string]{
	Name: "pay",
	Key:  func(p payment) string { return "invoice-" + p.Invoice + "-pay" },
	Send: semel.Perform(semel.Contract{Protection: semel.Unprotected, Effect: semel.External},
		func(_ context.Context, _ *semel.Send, p payment) (string, error) {
			return "transfer of " + p.Invoice, nil
		}),
}

func ExampleAction() {
	// Declared once, as a variable. Key names the work, from the input alone.
	charge := semel.Action[payment, string]{
		Name:  "charge",
		Owner: "billing@example.com",
		Key:   func(p payment) string { return "invoice-" + p.Invoice + "-charge" },
		Send: semel.Perform(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 30 * time.Second},
			func(ctx context.Context, s *semel.Send, p payment) (string, error) {
				// Here a provider's library is called, with s.DestinationKey.
				return fmt.Sprintf("charged %d", p.Cents), nil
			}),
	}

	guard := &tinyGuard{}
	for range 2 { // the second call is the same operation
		done, err := charge.Do(context.Background(), guard, payment{"4417", 1200})
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, _ := done.Value()
		fmt.Println(done.Status, answer, "replayed:", done.Replayed)
	}
	fmt.Println("effects:", guard.effects)
	// Output:
	// completed charged 1200 replayed: false
	// completed charged 1200 replayed: true
	// effects: 1
}

// The trap: the bank's answer is lost, the program takes that for a failure
// and pays by card, and the customer has paid twice. It cannot be written by
// accident: an answer that is lost is no error but a status, and the error
// that there is says that it must not be answered so.
func ExampleAction_Do() {
	guard := &tinyGuard{lose: 1}
	byCard := func() { fmt.Println("paid by card") }

	done, err := byBank.Do(context.Background(), guard, payment{"4417", 1200})
	if err != nil { // not true here: the answer was lost, so it may have happened
		byCard()
	}
	switch done.Status {
	case semel.StatusCompleted:
		fmt.Println("paid by bank")
	case semel.StatusFailed: // evidence that nothing happened: only now is another way safe
		byCard()
	default:
		fmt.Println(done.Operation.State.Words()+":", done.Next.Reason)
	}

	guard.broken = semel.ErrUnavailable
	_, err = byBank.Do(context.Background(), guard, payment{"4417", 1200})
	var notAsked *semel.NotAskedError
	fmt.Println(errors.As(err, &notAsked), err)
	fmt.Println("effects:", guard.effects)
	// Output:
	// outcome unknown: it may have happened; the destination offers no key and no lookup, so nothing is sent again by machine
	// true not asked: the store is unavailable; this call sent nothing, earlier ones may have: ask again under key "invoice-4417-pay"
	// effects: 1
}

func ExampleDone_Value() {
	done, _ := byBank.Do(context.Background(), &tinyGuard{}, payment{"4417", 1200})
	fmt.Println(done.Value())
	done, _ = byBank.Do(context.Background(), &tinyGuard{lose: 1}, payment{"4417", 1200})
	fmt.Println(done.Value())
	// Output:
	// transfer of 4417 true
	//  false
}

func ExampleOutcome_Refusal() {
	guard := &tinyGuard{}
	_, _ = byBank.Do(context.Background(), guard, payment{"4417", 1200})
	done, _ := byBank.Do(context.Background(), guard, payment{"4417", 1300})
	fmt.Println(done.Status)
	fmt.Println(done.Refusal())
	// Output:
	// conflict
	// this key belongs to another request; different: body.Cents; the first request is unchanged, and nothing was sent
}

func ExamplePerform() {
	mail := semel.Perform(semel.Contract{Protection: semel.Unprotected},
		func(_ context.Context, _ *semel.Send, to string) (string, error) {
			if to == "" {
				return "", semel.NoEffect(errors.New("no address")) // evidence: nothing was sent
			}
			return "", errors.New("connection reset") // no evidence: it may have been sent
		})
	for _, to := range []string{`""`, `"ada@example.com"`} {
		o := semel.Operation{Identity: semel.Identity{Request: semel.Request{Body: []byte(to)}}}
		ev := mail.Destination.Send(context.Background(), &semel.Send{Operation: &o, Begin: func() error { return nil }})
		fmt.Println(ev.Kind, ev.Reason)
	}
	// Output:
	// refused no address
	// lost connection reset
}

func ExampleNoEffect() {
	declined := errors.New("card declined")
	err := semel.NoEffect(declined)
	fmt.Println(err, errors.Is(err, declined))
	// Output: card declined true
}

// lostAnswer is an operation whose only attempt got no answer.
func lostAnswer(c semel.Contract) semel.Operation {
	o, err := semel.Replay(semel.Identity{Scope: "acme/charge", Key: "invoice-4417-charge", Contract: c}, []semel.Event{
		{Kind: semel.EvClaimed, Attempt: 1, At: t0, Lease: 30 * time.Second, SendWithin: 30 * time.Second},
		{Kind: semel.EvLost, Attempt: 1, At: t0.Add(5 * time.Second), Reason: "connection reset"},
	})
	if err != nil {
		panic(err)
	}
	return o
}

func ExampleDecide() {
	o := lostAnswer(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second})
	for _, hours := range []time.Duration{0, 24} {
		move := semel.Decide(&o, o.Contract, t0.Add(hours*time.Hour+10*time.Second))
		fmt.Printf("%s: %s\n", move.Kind, move.Reason)
	}
	// Output:
	// resend: confirmation unavailable; the original request is sent again under the same key: the destination knows the key until 2026-11-30T08:00:00Z
	// person: the destination may have forgotten the key, so sending again could make it happen twice, and no lookup settles it
}

func ExampleDecideAsked() {
	o := lostAnswer(semel.Contract{Protection: semel.Absolute, Attempts: 1})
	now := t0.Add(10 * time.Second)
	fmt.Println("by itself:", semel.Decide(&o, o.Contract, now).Kind)
	fmt.Println("asked:    ", semel.DecideAsked(&o, o.Contract, now).Kind)
	// Output:
	// by itself: person
	// asked:     resend
}

func ExampleOperation_Apply() {
	o := lostAnswer(semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second})
	fmt.Println(o.State.Words())

	late := semel.Event{Kind: semel.EvConfirmed, Attempt: 1, At: t0.Add(time.Hour), Result: &semel.Result{Reference: "ch_1"}}
	completed, err := o.Apply(late)
	fmt.Println(completed.State.Words(), completed.Result.Reference, err)
	fmt.Println("the value it was applied to:", o.State.Words())

	_, err = completed.Apply(semel.Event{Kind: semel.EvClaimed, Attempt: 2, At: t0.Add(2 * time.Hour)})
	fmt.Println(err)
	// Output:
	// outcome unknown
	// completed ch_1 <nil>
	// the value it was applied to: outcome unknown
	// an operation that is completed cannot take "claimed": the state table has no such transition
}

func ExampleOperation_Change() {
	o := lostAnswer(semel.Contract{Protection: semel.Lookup, CanLookUp: true})
	found := semel.Event{Kind: semel.EvFound, At: t0.Add(time.Minute), Reference: "ch_1"}
	change, err := o.Change(found, semel.NewID(t0, [10]byte{7}))
	fmt.Println(change.Before.State, "->", change.After.State, err)
	// What the store returns has the store's own time.
	fmt.Println(change.Stamped(t0.Add(61 * time.Second)).UpdatedAt.Format(time.TimeOnly))
	// Output:
	// unknown -> completed <nil>
	// 08:01:01
}

func ExampleOperation_ProofAt() {
	o := lostAnswer(semel.Contract{Protection: semel.Lookup, CanLookUp: true, AbsenceIsProof: true, MaxProcessing: time.Minute, VisibleAfter: 10 * time.Second})
	at, ok := o.ProofAt(o.Contract)
	fmt.Println("\"not found\" proves something from", at.Format(time.TimeOnly), ok)
	// Output: "not found" proves something from 08:01:51 true
}

func ExampleReplay() {
	id := semel.Identity{Scope: "acme/charge", Key: "invoice-4417-charge", Contract: semel.Contract{Protection: semel.Unprotected}}
	_, err := semel.Replay(id, []semel.Event{{Kind: semel.EvConfirmed, Attempt: 1}})
	fmt.Println(err)
	// Output: an operation that is not claimed cannot take "confirmed": the state table has no such transition
}

func ExampleMintKey() {
	// Mint once, when the work is created, with random bytes, and persist it.
	key := semel.MintKey(time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC), [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	fmt.Println(key)
	fmt.Println(key.MintedAt())
	// Output:
	// 01a22651-6c00-7102-8304-05060708090a
	// 2026-11-29 08:00:00 +0000 UTC true
}

func ExampleDestinationKey() {
	scope := semel.ActionScope("acme", "stripe", "charge")
	fmt.Println(semel.DestinationKey(scope, "invoice-4417-charge", 0))
	// Another tenant's key of the same name never meets it.
	fmt.Println(semel.DestinationKey(semel.ActionScope("umbrella", "stripe", "charge"), "invoice-4417-charge", 0))
	// Output:
	// c10cd9ad-eee5-8bf5-88be-f5fc9dd2f70e
	// 6a8f527d-800a-8dee-a7fb-50c3210aa63d
}

func ExampleActionScope() {
	fmt.Println(semel.ActionScope("acme", "stripe", "charge"))
	// Output: 4:acme/6:stripe/6:charge
}

func ExampleRequest_Diff() {
	first := semel.Request{Kind: "http", Method: "POST", URL: "https://pay.example/charges", MediaType: "application/json", Body: []byte(`{"cents":1200,"to":9007199254740993}`)}
	again := first
	again.Body = []byte(`{ "to": 9007199254740993, "cents": 1.2e3 }`)
	other := first
	other.Body = []byte(`{"cents":1200,"to":9007199254740992}`)
	fmt.Println(first.Diff(&again), first.Diff(&other))
	// Output: [] [body.to]
}

func ExampleContract_Validate() {
	c := semel.Contract{Protection: semel.Keyed}
	fmt.Println(c.Validate())
	// Output: window is missing: keyed protection needs to know how long the destination honours a key, for example --window 24h
}

func ExampleContract_Stricter() {
	pinned := semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, MaxProcessing: time.Minute}
	today := semel.Contract{Protection: semel.Keyed, Window: time.Hour, MaxProcessing: 5 * time.Minute}
	s := pinned.Stricter(today)
	fmt.Println(s.Window, s.MaxProcessing)
	// Output: 1h0m0s 5m0s
}

func ExampleTransitions() {
	for _, row := range semel.Transitions() {
		if row.From == semel.Unknown && row.On == semel.EvClaimed {
			fmt.Printf("%s, if %s: %s\n", row.From.Words(), row.When, row.To.Words())
		}
	}
	// Output: outcome unknown, if it can be repeated, nothing blocks: in progress
}
