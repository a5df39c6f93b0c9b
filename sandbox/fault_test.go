package sandbox_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

func TestFaultDecidesAnswerEffectAndWhatIsRetained(t *testing.T) {
	type outcome struct{ status, effects int }
	type row struct {
		first  outcome
		resend outcome // same key, no fault
		replay bool    // whether the resend was answered from the key
	}
	for fault, want := range map[string]row{
		"none":           {first: outcome{201, 1}, resend: outcome{201, 1}, replay: true},
		"drop_before":    {first: outcome{0, 0}, resend: outcome{201, 1}},
		"drop_after":     {first: outcome{0, 1}, resend: outcome{201, 1}, replay: true},
		"error_before":   {first: outcome{503, 0}, resend: outcome{201, 1}},
		"error_after":    {first: outcome{500, 1}, resend: outcome{500, 1}, replay: true},
		"bad_gateway":    {first: outcome{502, 1}, resend: outcome{201, 1}, replay: true},
		"late":           {first: outcome{0, 0}, resend: outcome{409, 0}},
		"slow":           {first: outcome{201, 1}, resend: outcome{201, 1}, replay: true},
		"refuse":         {first: outcome{422, 0}, resend: outcome{201, 1}},
		"retained_error": {first: outcome{402, 0}, resend: outcome{402, 0}, replay: true},
		"partial":        {first: outcome{207, 1}, resend: outcome{207, 1}, replay: true},
		"nonsense":       {first: outcome{400, 0}, resend: outcome{201, 1}},
	} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, sandbox.Options{})
				var got row
				r := post(s, sandbox.Charges, order, "Idempotency-Key", "k", "Sandbox-Fault", fault)
				got.first = outcome{r.Status, s.Count(sandbox.Charges, "r")}
				r = post(s, sandbox.Charges, order, "Idempotency-Key", "k")
				got.resend, got.replay = outcome{r.Status, s.Count(sandbox.Charges, "r")}, r.Replayed
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				for i, request := range s.Requests() {
					if status := []int{want.first.status, want.resend.status}[i]; request.Status != status {
						t.Errorf("request log: got status %d, want %d", request.Status, status)
					}
				}
			})
		})
	}
}

func TestDroppedConnectionReachesTheClientAsAnError(t *testing.T) {
	for _, fault := range []string{"drop_before", "drop_after", "late"} {
		s := start(t, sandbox.Options{})
		server := httptest.NewServer(s)
		resp, err := http.Post(server.URL+"/v1/transfers?fault="+fault, "", strings.NewReader(order))
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v, want EOF", fault, err)
		}
		server.Close()
	}
}

func TestLateActsAfterTheClientHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{})
		began := time.Now()
		post(s, sandbox.Charges, order, "Idempotency-Key", "k", "Sandbox-Fault", "late")
		wantCount(t, s, sandbox.Charges, "r", 0)
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		wantCount(t, s, sandbox.Charges, "r", 1)
		effect, request := s.Effects()[0], s.Requests()[0]
		if waited := effect.At.Sub(began); waited != time.Second {
			t.Errorf("acted after %v, want 1s", waited)
		}
		if request.Effect != effect.ID || request.Status != 0 {
			t.Errorf("request log: got %+v", request)
		}
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); got.Status != 201 || !got.Replayed {
			t.Errorf("resend: got %+v, want a replayed 201", got)
		}
	})
}

func TestLateEffectsCanBeFinishedAtOnce(t *testing.T) {
	s := start(t, sandbox.Options{Delay: time.Hour})
	for range 3 {
		post(s, sandbox.Messages, order, "Sandbox-Fault", "late")
	}
	if err := s.FinishLate(); err != nil {
		t.Fatal(err)
	}
	wantCount(t, s, sandbox.Messages, "r", 3)
	if err := s.FinishLate(); err != nil {
		t.Fatal(err)
	}
	wantCount(t, s, sandbox.Messages, "r", 3)
}

func TestCloseFinishesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{Delay: time.Hour})
		began := time.Now()
		post(s, sandbox.Messages, order, "Sandbox-Fault", "late")
		var wg sync.WaitGroup
		wg.Go(func() { post(s, sandbox.Messages, order, "Sandbox-Fault", "slow") })
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wantCount(t, s, sandbox.Messages, "r", 2)
		wg.Wait()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("close waited %v", waited)
		}
	})
}

func TestSlowActsAtHalfAndAnswersAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, sandbox.Options{Delay: 2 * time.Second})
		began := time.Now()
		if got := post(s, sandbox.Messages, order, "Sandbox-Fault", "slow"); got.Status != 200 {
			t.Errorf("got %+v", got)
		}
		if acted, answered := s.Effects()[0].At.Sub(began), time.Since(began); acted != time.Second || answered != 2*time.Second {
			t.Errorf("acted after %v and answered after %v, want 1s and 2s", acted, answered)
		}
	})
}

func TestFaultCanBeLimitedToOneRequestOfAReference(t *testing.T) {
	s := start(t, sandbox.Options{})
	var got []int
	for range 4 {
		got = append(got, post(s, sandbox.Transfers, order, "Sandbox-Fault", "drop_after@1, error_before@3").Status)
	}
	if want := [4]int{0, 201, 503, 201}; [4]int(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	wantCount(t, s, sandbox.Transfers, "r", 3)
}

func TestLookupsAreCountedApart(t *testing.T) {
	s := start(t, sandbox.Options{})
	get(s, "/v1/transfers?reference=r")
	if got := post(s, sandbox.Transfers, order, "Sandbox-Fault", "refuse@1"); got.Status != 422 {
		t.Errorf("got %+v, want the fault of the first request", got)
	}
}

func TestFaultReachesReplaysToo(t *testing.T) {
	for fault, want := range map[string]struct {
		status   int
		replayed bool
	}{
		"drop_after": {}, "late": {}, "error_after": {500, true}, "bad_gateway": {502, false}, "partial": {201, true}, "retained_error": {201, true},
	} {
		s := start(t, sandbox.Options{})
		post(s, sandbox.Charges, order, "Idempotency-Key", "k")
		got := post(s, sandbox.Charges, order, "Idempotency-Key", "k", "Sandbox-Fault", fault)
		if got.Status != want.status || got.Replayed != want.replayed {
			t.Errorf("%s: got %+v, want %+v", fault, got, want)
		}
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); got.Status != 201 {
			t.Errorf("after %s: got %+v, want the first answer", fault, got)
		}
		if lost := s.Summary()[sandbox.Charges].Lost; lost != 0 {
			t.Errorf("after %s: got %d effects lost, want 0: the first answer arrived", fault, lost)
		}
		wantCount(t, s, sandbox.Charges, "r", 1)
	}
}

func TestBadFaultIsNamedAndDoesNothing(t *testing.T) {
	for _, fault := range []string{"drop", "drop_after@", "drop_after@0", "none@1", "drop_after,"} {
		s := start(t, sandbox.Options{})
		if got := post(s, sandbox.Messages, order, "Sandbox-Fault", fault); got.Status != 400 {
			t.Errorf("%s: got %+v, want 400", fault, got)
		}
		wantCount(t, s, sandbox.Messages, "r", 0)
	}
}

func TestPartialMovesHalfAndSaysSo(t *testing.T) {
	s := start(t, sandbox.Options{VisibleAfter: -1})
	got := post(s, sandbox.Transfers, `{"amount":5,"reference":"r","to":"x"}`, "Sandbox-Fault", "partial")
	wantIn(t, got, 207, `"results":[{"status":"done","id":"tr_`)
	wantIn(t, got, 207, `{"status":"failed","error":{`)
	if e := s.Effects()[0]; e.Amount != 3 || !e.Partial {
		t.Errorf("effect: got %+v, want 3 of 5", e)
	}
	found := get(s, "/v1/transfers/by-reference/r")
	wantIn(t, found, 200, `"status":"partial"`)
	wantIn(t, found, 200, `"amount":3,"reference":"r","to":"x"`)
}

func TestFaultReachesLookupsToo(t *testing.T) {
	for fault, status := range map[string]int{
		"drop_before": 0, "drop_after": 0, "error_before": 503, "error_after": 500, "bad_gateway": 502, "slow": 200, "none": 200, "nonsense": 400,
	} {
		s := start(t, sandbox.Options{Delay: -1})
		if got := get(s, "/v1/transfers?reference=r", "Sandbox-Fault", fault); got.Status != status {
			t.Errorf("%s: got %+v, want %d", fault, got, status)
		}
	}
}
