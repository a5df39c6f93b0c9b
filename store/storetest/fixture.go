package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// tb is what *testing.T, *testing.B and *rapid.T have in common.
type tb interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

const scope = semel.Scope("storetest")

var count atomic.Int64

// newKey is a key that no other call returns.
func newKey() semel.Key { return semel.Key(fmt.Sprintf("key-%d", count.Add(1))) }

func newID(at time.Time) semel.ID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	return semel.NewID(at, random)
}

func newToken() semel.ID { return newID(time.Now()) }

// contract lets an unknown operation be looked up by itself, after a second.
func contract() semel.Contract {
	return semel.Contract{Effect: semel.External, Protection: semel.Lookup, CanLookUp: true, Timeout: 10 * time.Second}
}

// byHand leaves an unknown operation to a person.
func byHand() semel.Contract {
	return semel.Contract{Effect: semel.External, Protection: semel.Unprotected, Timeout: 10 * time.Second}
}

func request(body string) semel.Request {
	return semel.Request{
		Kind: "http", Method: "POST", URL: "https://api.example.com/charges",
		Header: map[string]string{"X-Account": "acct_1"}, MediaType: "application/json", Body: []byte(body),
	}
}

// fresh is an operation that nobody has claimed.
func fresh(now time.Time, key semel.Key, c semel.Contract) semel.Operation {
	r := request(fmt.Sprintf(`{"key":%q,"amount":9007199254740993}`, key))
	var f semel.Fingerprint
	copy(f[:], "fingerprint of "+string(key))
	return semel.Operation{Identity: semel.Identity{ID: newID(now), Scope: scope, Key: key, Fingerprint: f, Request: r, Contract: c}}
}

func claimed(attempt int) semel.Event {
	return semel.Event{Kind: semel.EvClaimed, Attempt: attempt, By: "worker-1", Lease: time.Minute, SendWithin: 30 * time.Second}
}

func confirmed(attempt int, reference string) semel.Event {
	return semel.Event{
		Kind: semel.EvConfirmed, Attempt: attempt, By: "worker-1",
		Result: &semel.Result{Reference: reference, Status: 201, MediaType: "application/json", Body: []byte(`{"id":"` + reference + `"}`)},
	}
}

func lost(attempt int) semel.Event {
	return semel.Event{Kind: semel.EvLost, Attempt: attempt, By: "worker-1", Reason: "read: connection reset by peer"}
}

func refused(attempt int) semel.Event {
	return semel.Event{
		Kind: semel.EvRefused, Attempt: attempt, By: "worker-1", Reason: "card declined",
		Result: &semel.Result{Status: 402, Body: []byte(`{"error":"declined"}`)},
	}
}

// change prepares a change at the store's time.
func change(t tb, s semel.Store, o semel.Operation, ev semel.Event) semel.Change {
	t.Helper()
	ev.At = now(t, s)
	token := newToken()
	if o.Version == 0 {
		token = o.ID
	}
	c, err := o.Change(ev, token)
	if err != nil {
		t.Fatalf("%s: %v", ev.Kind, err)
	}
	return c
}

// commit makes one event durable.
func commit(t tb, s semel.Store, o semel.Operation, ev semel.Event) semel.Operation {
	t.Helper()
	after, err := s.Commit(t.Context(), change(t, s, o, ev))
	if err != nil {
		t.Fatalf("commit %s: %v", ev.Kind, err)
	}
	return after
}

// claim makes a new operation in progress.
func claim(t tb, s semel.Store, c semel.Contract) semel.Operation {
	t.Helper()
	return commit(t, s, fresh(now(t, s), newKey(), c), claimed(1))
}

func now(t tb, s semel.Store) time.Time {
	t.Helper()
	at, err := s.Now(t.Context())
	if err != nil {
		t.Fatalf("now: %v", err)
	}
	return at
}

func load(t tb, s semel.Store, id semel.ID) semel.Operation {
	t.Helper()
	o, err := s.LoadID(t.Context(), id)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return o
}

// same compares two operations whole; nil and empty bodies are one.
func same(t tb, what string, got, want semel.Operation) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(semel.Operation{}), emptyBytes); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

var emptyBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

func wantErr(t tb, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}

// wantErrorf is wantErr for other goroutines than the test's.
func wantErrorf(t tb, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}
