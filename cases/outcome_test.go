package cases

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// C11: a 5xx says nothing about the effect, a refusal and a refused connection
// do; repeats follow the state, not the status.
func TestC11ServerErrorsAndKnownFailures(t *testing.T) {
	eachStore(t, func(r *rig) {
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			status := map[string]int{"/504": 504, "/500": 500, "/502": 502, "/422": 422}[a.path]
			if status == 504 || status == 500 {
				act(a.path)
			}
			answer(w, status, `{"error":"x"}`)
		}
		n := r.node(engine.Options{})
		for range 4 {
			for _, path := range []string{"/504", "/500", "/502"} {
				n.want(n.submit(request{key: "e" + path, path: path, body: `{}`}), semel.StatusUnknown)
			}
		}
		n.wantEffects(2, 3)
		for range 3 { // by documented rule a known failure may be tried again
			n.want(n.submit(request{key: "e-422", path: "/422", body: `{}`}), semel.StatusFailed)
		}
		n.wantEffects(2, 6)
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			n.Fatal(err)
		}
		_ = closed.Close()
		c := n.call(request{key: "e-refused", body: `{}`})
		c.Request.URL = "http://" + closed.Addr().String() + "/"
		for range 3 {
			out, err := n.engine.Do(n.Context(), c)
			if err != nil {
				n.Fatal(err)
			}
			n.want(out, semel.StatusFailed)
		}
		n.wantEffects(2, 6)
		n.wantHonest()
	})
}

// C12: the transport never repeats a request by itself, and an attempt that
// follows a known failure sends identical bytes.
func TestC12NoHiddenRepeat(t *testing.T) {
	eachStore(t, func(r *rig) {
		big := `{"data":"` + strings.Repeat("x", 300_000) + `"}`
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			switch {
			case a.path == "/warm":
				answer(w, http.StatusCreated, `{"id":"warm"}`)
			case a.path == "/close":
				act(a.path)
				drop()
			case a.nth <= 2:
				w.Header().Set("Retry-After", "1")
				answer(w, http.StatusTooManyRequests, `{}`)
			default:
				act(a.path)
				answer(w, http.StatusCreated, `{"id":"big"}`)
			}
		}
		n := r.node(engine.Options{})
		keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, KeyHeader: "Idempotency-Key"}
		n.want(n.submit(request{key: "warm", path: "/warm", body: `{}`, contract: keyed}), semel.StatusCompleted)
		n.want(n.submit(request{key: "k1", path: "/close", body: `{}`, contract: keyed}), semel.StatusUnknown)
		n.wantEffects(1, 2)
		for _, status := range []semel.Status{semel.StatusFailed, semel.StatusFailed, semel.StatusCompleted} {
			n.want(n.submit(request{key: "big", path: "/big", body: big, contract: keyed}), status)
		}
		seen := n.dest.seen()[2:]
		for _, a := range seen {
			if !bytes.Equal(a.body, seen[0].body) || a.header.Get("Idempotency-Key") != seen[0].header.Get("Idempotency-Key") || len(a.body) != len(big) {
				n.Error("an attempt sent other bytes or another key")
			}
		}
		n.wantEffects(2, 5)
		n.wantHonest()
	})
}

// C14: a provider that takes longer than we wait, and says 409 on the repeat.
func TestC14TimeoutShorterThanTheProvider(t *testing.T) {
	body := `{"ref":"o-1","amount":20000}`
	for name, second := range map[string]string{
		"ours":         `{"existing":"ch_1","ref":"o-1","amount":20000}`,
		"other amount": `{"existing":"ch_1","ref":"o-1","amount":999}`,
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(r *rig) {
				r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
					if a.nth > 1 {
						answer(w, http.StatusConflict, second)
						return
					}
					time.Sleep(500 * time.Millisecond)
					act("o-1")
					time.Sleep(300 * time.Millisecond)
					answer(w, http.StatusCreated, `{"id":"ch_1"}`)
				}
				n := r.node(engine.Options{})
				keyed := semel.Contract{Protection: semel.Keyed, Window: time.Hour, KeyHeader: "Idempotency-Key", Timeout: 300 * time.Millisecond}
				n.want(n.submit(request{key: "o-1", body: body, contract: keyed}), semel.StatusUnknown)
				time.Sleep(700 * time.Millisecond)
				// The generic profile knows no meaning of this 409: it stays unknown, with the answer as
				// evidence, and is neither completed nor failed by a guess.
				out := n.submit(request{key: "o-1", body: body, contract: keyed})
				n.want(out, semel.StatusUnknown)
				n.wantEffects(1, 2)
				n.wantHonest()
			})
		})
	}
	t.Run("late answer", func(t *testing.T) {
		eachStore(t, func(r *rig) {
			r.dest.script = func(_ arrival, act func(string), w http.ResponseWriter) {
				time.Sleep(500 * time.Millisecond)
				act("o-1")
				answer(w, http.StatusCreated, `{"id":"ch_1"}`)
			}
			n := r.node(engine.Options{Late: true})
			q := request{key: "o-1", body: body, contract: semel.Contract{Timeout: 200 * time.Millisecond}}
			n.want(n.submit(q), semel.StatusUnknown)
			n.want(n.submit(q), semel.StatusUnknown)
			deadline := time.Now().Add(10 * time.Second)
			for n.submit(q).Status != semel.StatusCompleted && time.Now().Before(deadline) {
				time.Sleep(50 * time.Millisecond)
			}
			n.want(n.submit(q), semel.StatusCompleted)
			n.wantEffects(1, 1)
			n.wantHonest()
		})
	})
}

// C16: a lookup that finds nothing proves nothing before its time, which
// counts from the end of the last attempt.
func TestC16LookupVisibilityDelay(t *testing.T) {
	eachStore(t, func(r *rig) {
		var visible atomic.Bool
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			switch {
			case a.path == "/find":
				if visible.Load() && strings.Contains(a.query, "cust-1") {
					answer(w, http.StatusOK, `{"data":[{"id":"cu_1"}]}`)
					return
				}
				answer(w, http.StatusOK, `{"data":[]}`)
			case reference(a.body) == "cust-1":
				act("cust-1")
				drop()
			case a.nth == 1: // cust-2 never arrived, as far as anyone can see
				drop()
			default:
				act("cust-2")
				answer(w, http.StatusCreated, `{"id":"cu_2"}`)
			}
		}
		n := r.node(engine.Options{})
		contract := semel.Contract{
			Protection: semel.Lookup, LookupURL: r.dest.URL + "/find?ref={key}", FoundIn: "data",
			VisibleAfter: 60 * time.Second, MaxProcessing: time.Second, AbsenceIsProof: true,
		}
		one := request{key: "cust-1", body: `{"ref":"cust-1"}`, contract: contract}
		two := request{key: "cust-2", body: `{"ref":"cust-2"}`, contract: contract}
		n.want(n.submit(one), semel.StatusUnknown)
		n.want(n.submit(two), semel.StatusUnknown)
		for _, later := range []time.Duration{10 * time.Second, 45 * time.Second} {
			n.store.Shift(later)
			n.want(n.submit(one), semel.StatusUnknown)
			n.want(n.submit(two), semel.StatusUnknown)
		}
		n.wantEffects(1, 2)
		visible.Store(true)
		n.store.Shift(10 * time.Second)
		n.want(n.submit(one), semel.StatusCompleted)
		n.want(n.submit(two), semel.StatusCompleted) // absence is proven, then it is sent again
		n.wantEffects(2, 3)
		n.wantHonest()
	})
}

// C24: an answer that is hard to store is still an answer: the effect is known
// to have happened, and is never sent again.
func TestC24HostileAnswers(t *testing.T) {
	answers := map[string]string{
		"NUL":             `{"id":"ch_1","note":"a\u0000b"}`,
		"raw NUL":         "{\"id\":\"ch_1\",\"note\":\"a\x00b\"}",
		"lone surrogate":  `{"id":"ch_1","note":"\ud800"}`,
		"invalid UTF-8":   "\xff\xfe\x00",
		"duplicate names": `{"id":"ch_1","id":"ch_2"}`,
		"empty":           ``,
		"5 MiB":           `{"id":"ch_1","pad":"` + strings.Repeat("x", 5<<20) + `"}`,
		"50 MB":           strings.Repeat("y", 50_000_000),
	}
	eachStore(t, func(r *rig) {
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			name := strings.ReplaceAll(strings.TrimPrefix(a.path, "/"), "_", " ")
			switch {
			case name == "refused":
				answer(w, http.StatusUnprocessableEntity, "{\"error\":\"bad \x00 \\u0000 text\"}")
			case name == "endless":
				act(a.path)
				w.WriteHeader(http.StatusCreated)
				for range 5000 {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			default:
				act(a.path)
				answer(w, http.StatusCreated, answers[name])
			}
		}
		n := r.node(engine.Options{})
		for name := range answers {
			q := request{key: name, path: "/" + strings.ReplaceAll(name, " ", "_"), body: `{}`}
			for range 2 {
				n.want(n.submit(q), semel.StatusCompleted)
			}
		}
		n.want(n.submit(request{key: "endless", path: "/endless", body: `{}`}), semel.StatusCompleted)
		n.want(n.submit(request{key: "refused", path: "/refused", body: `{}`}), semel.StatusFailed)
		n.wantEffects(len(answers)+1, len(answers)+2)
		for _, q := range []request{{key: "nul in body", body: `{"a":"\u0000"}`}} {
			n.want(n.submit(q), semel.StatusCompleted)
		}
		c := n.call(request{key: "oversized", body: `{}`})
		c.Request.Body = []byte(`{"a":"` + strings.Repeat("x", 20<<20) + `"}`)
		if _, err := n.engine.Do(n.Context(), c); err == nil || !strings.Contains(err.Error(), fmt.Sprint(semel.MaxBody)) {
			n.Errorf("an oversized body: %v, want a refusal that names the limit", err)
		}
		if _, err := n.store.Load(n.Context(), "acct-1", "oversized"); err == nil {
			n.Error("the refused request left a claim")
		}
		n.wantHonest()
	})
}
