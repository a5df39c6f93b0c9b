package sandbox_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

const order = `{"amount":4200,"reference":"r"}`

func TestSameKeySameBytesReplaysFirstAnswer(t *testing.T) {
	s := start(t, sandbox.Options{})
	first := post(s, sandbox.Charges, order, "Idempotency-Key", "k")
	for _, spelling := range []string{"k", `"k"`, `"\k"`} {
		got := post(s, sandbox.Charges, order, "Idempotency-Key", spelling)
		if spelling == `"\k"` { // not a quoted string: another key
			if got.Replayed {
				t.Errorf("key %s was taken for k", spelling)
			}
			continue
		}
		if want := (reply{201, first.Body, true}); got != want {
			t.Errorf("key %s: got %+v, want %+v", spelling, got, want)
		}
	}
	wantCount(t, s, sandbox.Charges, "r", 2)
}

func TestQuotedKeyIsUnescaped(t *testing.T) {
	s := start(t, sandbox.Options{})
	post(s, sandbox.Charges, order, "Idempotency-Key", `a"b\c`)
	if got := post(s, sandbox.Charges, order, "Idempotency-Key", `"a\"b\\c"`); !got.Replayed {
		t.Errorf("got %+v, want a replay", got)
	}
}

func TestSameKeyOtherRequestIsAnError(t *testing.T) {
	for name, other := range map[string]struct{ target, body string }{
		"other amount":      {"/v1/charges", `{"amount":4300,"reference":"r"}`},
		"other white space": {"/v1/charges", `{"amount": 4200,"reference":"r"}`},
		"wrong body":        {"/v1/charges", `{}`},
		"other path":        {"/v1/charges?expand=all", order},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, sandbox.Options{})
			post(s, sandbox.Charges, order, "Idempotency-Key", "k")
			wantIn(t, send(s, "POST", other.target, other.body, "Idempotency-Key", "k"), 400, `{"error":{"type":"idempotency_error","message":`)
			wantCount(t, s, sandbox.Charges, "r", 1)
		})
	}
}

func TestFaultQueryIsNotPartOfTheRequestIdentity(t *testing.T) {
	s := start(t, sandbox.Options{})
	send(s, "POST", "/v1/charges?fault=drop_after", order, "Idempotency-Key", "k")
	if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); !got.Replayed {
		t.Errorf("got %+v, want a replay", got)
	}
}

func TestUnusableKeyIsRefused(t *testing.T) {
	for name, headers := range map[string][]string{
		"empty":    {"Idempotency-Key", ""},
		"quotes":   {"Idempotency-Key", `""`},
		"too long": {"Idempotency-Key", strings.Repeat("k", 256)},
		"two":      {"Idempotency-Key", "a", "Idempotency-Key", "b"},
	} {
		s := start(t, sandbox.Options{})
		if got := post(s, sandbox.Charges, order, headers...); got.Status != 400 {
			t.Errorf("%s: got %+v, want 400", name, got)
		}
		wantCount(t, s, sandbox.Charges, "r", 0)
	}
}

func TestWithoutKeyEveryRequestIsAnEffect(t *testing.T) {
	s := start(t, sandbox.Options{})
	post(s, sandbox.Charges, order)
	post(s, sandbox.Charges, order)
	wantCount(t, s, sandbox.Charges, "r", 2)
	if all := s.Effects(); all[0].ID == all[1].ID {
		t.Errorf("both effects have the id %s", all[0].ID)
	}
}

func TestOnlyChargesHonourKeys(t *testing.T) {
	for _, resource := range []sandbox.Resource{sandbox.Transfers, sandbox.Messages} {
		s := start(t, sandbox.Options{})
		post(s, resource, order, "Idempotency-Key", "k")
		post(s, resource, order, "Idempotency-Key", "k")
		wantCount(t, s, resource, "r", 2)
		post(s, resource, order, "Idempotency-Key", "")
		wantCount(t, s, resource, "r", 3)
	}
}

func TestKeyIsForgottenWindowAfterFirstSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{Window: time.Hour})
		post(s, sandbox.Charges, order, "Idempotency-Key", "k")
		time.Sleep(time.Hour - 1) // virtual
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); !got.Replayed {
			t.Errorf("inside the window: got %+v, want a replay", got)
		}
		time.Sleep(time.Nanosecond) // the replay did not prolong it
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); got.Replayed {
			t.Errorf("after the window: got %+v, want a new effect", got)
		}
		wantCount(t, s, sandbox.Charges, "r", 2)
	})
}

func TestConcurrentRequestsWithOneKeyActOnce(t *testing.T) {
	s := start(t, sandbox.Options{LedgerPath: t.TempDir() + "/ledger"})
	var mu sync.Mutex
	seen := map[int]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			got := post(s, sandbox.Charges, order, "Idempotency-Key", "k")
			if got.Status == 201 && got.Replayed {
				got.Status = 200
			}
			mu.Lock()
			seen[got.Status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if seen[201] != 1 || seen[201]+seen[200]+seen[409] != 50 {
		t.Errorf("answers: got %v, want one 201 and otherwise replays and 409", seen)
	}
	wantCount(t, s, sandbox.Charges, "r", 1)
}

func TestRunningRequestKeepsItsKeyPastTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{Window: time.Hour, Delay: 3 * time.Hour})
		post(s, sandbox.Charges, order, "Idempotency-Key", "k", "Sandbox-Fault", "late")
		time.Sleep(2 * time.Hour) // virtual
		wantIn(t, post(s, sandbox.Charges, order, "Idempotency-Key", "k"), 409, "in_use")
	})
}

func TestKeyOfARunningRequestIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{Delay: time.Minute})
		var wg sync.WaitGroup
		wg.Go(func() { post(s, sandbox.Charges, order, "Idempotency-Key", "k", "Sandbox-Fault", "slow") })
		synctest.Wait()
		wantIn(t, post(s, sandbox.Charges, order, "Idempotency-Key", "k"), 409, `"code":"idempotency_key_in_use"`)
		wantIn(t, post(s, sandbox.Charges, `{"amount":1}`, "Idempotency-Key", "k"), 400, `"idempotency_error"`)
		wantCount(t, s, sandbox.Charges, "r", 0)
		wg.Wait()
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); !got.Replayed {
			t.Errorf("afterwards: got %+v, want a replay", got)
		}
		wantCount(t, s, sandbox.Charges, "r", 1)
	})
}
