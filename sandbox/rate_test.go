package sandbox_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/semel-dev/semel/sandbox"
)

// firstFaults sends one request for each of n references, in a shuffled order
// and at the same time, and returns the faults met.
func firstFaults(t *testing.T, options sandbox.Options, n int) map[string]sandbox.Fault {
	t.Helper()
	s := start(t, options)
	var wg sync.WaitGroup
	for _, i := range rand.Perm(n) {
		wg.Go(func() { post(s, sandbox.Transfers, fmt.Sprintf(`{"amount":1,"reference":"r%d"}`, i)) })
	}
	wg.Wait()
	met := map[string]sandbox.Fault{}
	for _, r := range s.Requests() {
		if r.Fault != "" {
			met[r.Reference] = r.Fault
		}
	}
	return met
}

func TestRateMeetsTheSameReferencesInAnyOrder(t *testing.T) {
	options := sandbox.Options{Seed: 7, Faults: sandbox.Rate{First: 0.2}}
	first := firstFaults(t, options, 500)
	if again := firstFaults(t, options, 500); !maps.Equal(first, again) {
		t.Errorf("same seed: got %v, want %v", again, first)
	}
	options.Seed = 8
	if other := firstFaults(t, options, 500); maps.Equal(first, other) {
		t.Error("another seed met the same faults")
	}
	if n := len(first); n < 70 || n > 130 {
		t.Errorf("faulted references: got %d of 500 at 0.2", n)
	}
	byFault := map[sandbox.Fault]int{}
	for _, fault := range first {
		byFault[fault]++
	}
	if byFault[sandbox.DropAfter] <= byFault[sandbox.ErrorAfter] || byFault[sandbox.ErrorAfter] == 0 || byFault[sandbox.DropBefore] == 0 || len(byFault) != 3 {
		t.Errorf("default mix: got %v", byFault)
	}
}

func TestRaisingARateKeepsItsFaults(t *testing.T) {
	low := firstFaults(t, sandbox.Options{Faults: sandbox.Rate{First: 0.1}}, 200)
	high := firstFaults(t, sandbox.Options{Faults: sandbox.Rate{First: 0.5}}, 200)
	for reference, fault := range low {
		if high[reference] != fault {
			t.Errorf("%s: got %q, want %q", reference, high[reference], fault)
		}
	}
}

func TestRatedReferenceRecoversOnItsSecondRequest(t *testing.T) {
	s := start(t, sandbox.Options{Faults: sandbox.Rate{First: 1, Mix: map[sandbox.Fault]int{sandbox.DropAfter: 1}}})
	if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); got.Status != 0 {
		t.Errorf("first: got %+v, want no answer", got)
	}
	if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); got.Status != 201 || !got.Replayed {
		t.Errorf("second: got %+v, want the replayed answer", got)
	}
}

func TestLaterRateMeetsLaterRequestsOnly(t *testing.T) {
	s := start(t, sandbox.Options{Faults: sandbox.Rate{Later: 1, Mix: map[sandbox.Fault]int{sandbox.ErrorBefore: 1}}})
	for i, want := range []int{200, 503, 503} {
		if got := post(s, sandbox.Messages, order); got.Status != want {
			t.Errorf("request %d: got %d, want %d", i+1, got.Status, want)
		}
	}
}

func TestResourcesCanHaveTheirOwnRate(t *testing.T) {
	always := sandbox.Rate{First: 1, Mix: map[sandbox.Fault]int{sandbox.Refuse: 1}}
	for name, row := range map[string]struct {
		options                      sandbox.Options
		charges, transfers, messages int
	}{
		"all":             {sandbox.Options{Faults: always}, 422, 422, 422},
		"only charges":    {sandbox.Options{FaultsOn: map[sandbox.Resource]sandbox.Rate{sandbox.Charges: always}}, 422, 201, 200},
		"all but charges": {sandbox.Options{Faults: always, FaultsOn: map[sandbox.Resource]sandbox.Rate{sandbox.Charges: {}}}, 201, 422, 422},
	} {
		s := start(t, row.options)
		got := [3]int{post(s, sandbox.Charges, order).Status, post(s, sandbox.Transfers, order).Status, post(s, sandbox.Messages, order).Status}
		if want := [3]int{row.charges, row.transfers, row.messages}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestNamedFaultOverridesTheRate(t *testing.T) {
	s := start(t, sandbox.Options{Faults: sandbox.Rate{First: 1, Later: 1}})
	if got := post(s, sandbox.Messages, order, "Sandbox-Fault", "none"); got.Status != 200 {
		t.Errorf("none: got %+v", got)
	}
	if got := post(s, sandbox.Messages, order, "Sandbox-Fault", "refuse"); got.Status != 422 {
		t.Errorf("refuse: got %+v", got)
	}
}
