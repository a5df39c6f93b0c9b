package main

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// What a guarded effect costs before any database: each effect has one
// fingerprint, two changes of its operation and one trip through the engine.

func BenchmarkFingerprint(b *testing.B) {
	request := call("018f2f5e-7c00-7000-8000-000000000000").Request
	b.ReportAllocs()
	for b.Loop() {
		if _, err := request.Fingerprint(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	now := time.Now().UTC()
	claimed := semel.Event{Kind: semel.EvClaimed, At: now, Attempt: 1, By: "bench", Lease: 10 * time.Second, SendWithin: 10 * time.Second}
	confirmed := semel.Event{Kind: semel.EvConfirmed, At: now.Add(time.Millisecond), Attempt: 1, By: "bench"}
	id := semel.Identity{ID: semel.NewID(now, [10]byte{1}), Scope: "bench", Key: "key", Contract: semel.Contract{Protection: semel.Unprotected}}
	b.ReportAllocs()
	for b.Loop() {
		o, err := semel.Replay(id, []semel.Event{claimed, confirmed})
		if err != nil || o.State != semel.Completed {
			b.Fatal(o.State, err)
		}
	}
}

// BenchmarkDo is the engine over a store that costs nothing, encoding included.
func BenchmarkDo(b *testing.B) {
	e, err := engine.New(b.Context(), instant{}, engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	g := &guarded{engine: e}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := g.effect(0); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// instant is a store that accepts every change and keeps none.
type instant struct{ semel.Store }

func (instant) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (instant) Commit(_ context.Context, c semel.Change) (semel.Operation, error) {
	if _, err := c.Event.Encode(); err != nil {
		return semel.Operation{}, err
	}
	if c.Before.Version == 0 {
		if _, err := c.After.Record(); err != nil {
			return semel.Operation{}, err
		}
	}
	return c.Stamped(time.Now()), nil
}

// TestPeersAreMeasuredByTheSameLoop: bench/peers is a module of its own and
// cannot share the file.
func TestPeersAreMeasuredByTheSameLoop(t *testing.T) {
	mine, err := os.ReadFile("loop.go")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile("peers/loop.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mine, theirs) {
		t.Error("bench/loop.go and bench/peers/loop.go differ: copy one over the other")
	}
}
