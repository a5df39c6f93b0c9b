package postgres_test

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

var minted atomic.Int64

func newID(at time.Time) semel.ID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	return semel.NewID(at, random)
}

// claimOf is a first claim of a key that nobody has used.
func claimOf(t testing.TB, at time.Time) semel.Change {
	t.Helper()
	o := semel.Operation{Identity: semel.Identity{
		ID: newID(at), Scope: "acme/stripe/charge", Key: semel.Key(fmt.Sprintf("invoice-%09d-charge", minted.Add(1))),
		Request: semel.Request{
			Kind: "http", Method: "POST", URL: "https://api.example/charges", MediaType: "application/json",
			Body: []byte(`{"amount":1200,"invoice":"4417"}`),
		},
		Contract: semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key"},
	}}
	fingerprint, err := o.Request.Fingerprint()
	if err != nil {
		t.Fatal(err)
	}
	o.Fingerprint = fingerprint
	return changeOf(t, o, semel.Event{Kind: semel.EvClaimed, At: at, Attempt: 1, By: "worker-1", Lease: 30 * time.Second, SendWithin: 20 * time.Second})
}

func confirmationOf(t testing.TB, o semel.Operation) semel.Change {
	t.Helper()
	return changeOf(t, o, semel.Event{
		Kind: semel.EvConfirmed, At: o.UpdatedAt, Attempt: o.Attempt, By: "worker-1",
		Result: &semel.Result{Status: 200, Reference: "ch_123456789012", Body: []byte(`{"ok":true,"id":"ch_123456789012"}`)},
	})
}

func changeOf(t testing.TB, o semel.Operation, ev semel.Event) semel.Change {
	t.Helper()
	token := o.ID
	if o.Version > 0 {
		token = newID(time.Now())
	}
	c, err := o.Change(ev, token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func commit(t testing.TB, s semel.Store, c semel.Change) semel.Operation {
	t.Helper()
	o, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// session is a connection beside the store.
func session(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func query[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
