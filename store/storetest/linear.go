package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/semel-dev/semel"
)

// testLinearizable: M14, law 6. Concurrent claims, outcomes and readings
// through several handles are as if they had happened one after the other.
func testLinearizable(t *testing.T, h Harness) {
	const clients, steps, keys = 8, 30, 3
	stores := []semel.Store{h.Open(t), h.Open(t), h.Open(t)}
	sc := semel.Scope("linear-" + string(newKey()))
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for client := range clients {
		s := stores[client%len(stores)]
		wg.Go(func() {
			seen := map[semel.Key]semel.Operation{}
			for step := range steps {
				key := semel.Key(fmt.Sprintf("k%d", (step/3+client)%keys))
				in := linearInput{key: key}
				if step%3 != 0 { // write what was seen, else read
					in.write, in.version = true, seen[key].Version
				}
				call := time.Since(began)
				out := in.run(t, s, sc, seen)
				ret := time.Since(began)
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: call.Nanoseconds(), Output: out, Return: ret.Nanoseconds()})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if got := porcupine.CheckOperationsTimeout(linearModel, history, 30*time.Second); got != porcupine.Ok {
		t.Fatalf("the history of %d operations is not linearizable: %s", len(history), got)
	}
}

type linearInput struct {
	key     semel.Key
	write   bool
	version int // expected by a write
}

type linearOutput struct {
	version int // read, or written
	stale   bool
}

func (in linearInput) run(t *testing.T, s semel.Store, sc semel.Scope, seen map[semel.Key]semel.Operation) linearOutput {
	if !in.write {
		o, err := s.Load(t.Context(), sc, in.key)
		if err != nil && !errors.Is(err, semel.ErrNotFound) {
			t.Errorf("load: %v", err)
		}
		seen[in.key] = o
		return linearOutput{version: o.Version}
	}
	o, ev := seen[in.key], semel.Event{Kind: semel.EvJoined, By: "source"}
	if o.Version == 0 {
		o, ev = fresh(time.Now(), in.key, contract()), claimed(1)
		o.Scope = sc
	}
	ev.At = time.Now()
	c, err := o.Change(ev, newToken())
	if err != nil {
		t.Errorf("change: %v", err)
		return linearOutput{stale: true}
	}
	after, err := s.Commit(t.Context(), c)
	if err != nil {
		wantErrorf(t, "commit", err, semel.ErrStale)
		return linearOutput{stale: true}
	}
	seen[in.key] = after
	return linearOutput{version: after.Version}
}

// linearModel is a register per key that holds a version.
var linearModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[semel.Key][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(linearInput).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		version, in, out := state.(int), input.(linearInput), output.(linearOutput)
		switch {
		case !in.write:
			return out.version == version, version
		case in.version == version:
			return !out.stale && out.version == version+1, version + 1
		}
		return out.stale, version
	},
}
