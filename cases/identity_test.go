package cases

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// C01: a retry with the same fields in another order is the same request; the
// order of an array is meaning.
func TestC01MemberOrderIsNoDifference(t *testing.T) {
	eachStore(t, func(r *rig) {
		n := r.node(engine.Options{})
		n.want(n.submit(request{key: "ord-100", body: `{"amount":1200,"currency":"EUR","meta":{"a":1,"b":[1,2]}}`}), semel.StatusCompleted)
		again := n.submit(request{key: "ord-100", body: `{ "meta": {"b":[1,2],"a":1}, "currency":"EUR", "amount":1200 }`})
		n.want(again, semel.StatusCompleted)
		if !again.Replayed || again.Operation.Result.Reference != "ch_1" {
			n.Errorf("the repeat was not a replay of ch_1: %+v", again)
		}
		n.want(n.submit(request{key: "ord-100", body: `{"amount":1200,"currency":"EUR","meta":{"a":1,"b":[2,1]}}`}), semel.StatusConflict)
		n.wantEffects(1, 1)
		n.wantHonest()
	})
}

// C03: numbers are exact everywhere: on the wire, in the comparison, on record.
func TestC03NumbersStayExact(t *testing.T) {
	eachStore(t, func(r *rig) {
		n := r.node(engine.Options{})
		exact := `{"to":7615917337495251231,"amount":0.10,"note":"1e400","big":123456789012345678901234567890}`
		n.want(n.submit(request{key: "pay-1", body: `{"to":9007199254740993,"amount":100}`}), semel.StatusCompleted)
		n.want(n.submit(request{key: "pay-1", body: `{"to":9007199254740992,"amount":100}`}), semel.StatusConflict)
		n.want(n.submit(request{key: "pay-2", body: exact}), semel.StatusCompleted)
		seen := n.dest.seen()
		if string(seen[0].body) != `{"to":9007199254740993,"amount":100}` || string(seen[1].body) != exact {
			n.Errorf("the destination saw %s and %s", seen[0].body, seen[1].body)
		}
		o, err := n.store.Load(n.Context(), "acct-1", "pay-2")
		if err != nil || string(o.Request.Body) != exact {
			n.Errorf("on record: %s, %v", o.Request.Body, err)
		}
		n.wantEffects(2, 2)
		n.wantHonest()
	})
}

// C04: declared volatile fields are no part of identity; undeclared ones are a
// conflict that names them.
func TestC04VolatileFields(t *testing.T) {
	first := `{"id":1,"sent_at":"2026-12-01T10:00:00Z","params":{"cart":"c9","total":500}}`
	retry := `{"id":2,"sent_at":"2026-12-01T10:00:31Z","params":{"cart":"c9","total":500}}`
	other := `{"id":2,"sent_at":"2026-12-01T10:00:31Z","params":{"cart":"c9","total":501}}`
	eachStore(t, func(r *rig) {
		r.dest.script = func(a arrival, act func(string), _ http.ResponseWriter) {
			act(a.path)
			drop()
		}
		n := r.node(engine.Options{})
		volatile := []string{"id", "sent_at"}
		n.want(n.submit(request{key: "co-1", body: first, volatile: volatile}), semel.StatusUnknown)
		n.want(n.submit(request{key: "co-1", body: retry, volatile: volatile}), semel.StatusUnknown)
		conflict := n.submit(request{key: "co-1", body: other, volatile: volatile})
		n.want(conflict, semel.StatusConflict)
		if !slices.Equal(conflict.Fields, []string{"body.params.total"}) {
			n.Errorf("the conflict names %v", conflict.Fields)
		}
		n.wantEffects(1, 1)
		n.want(n.submit(request{key: "co-2", body: first}), semel.StatusUnknown)
		undeclared := n.submit(request{key: "co-2", body: retry})
		n.want(undeclared, semel.StatusConflict)
		if !slices.Equal(undeclared.Fields, []string{"body.id", "body.sent_at"}) {
			n.Errorf("the conflict names %v", undeclared.Fields)
		}
		n.wantEffects(2, 2)
		n.wantHonest()
	})
}

// C05: keys and scopes compare byte by byte; a key that cannot be kept is
// refused, never cut.
func TestC05KeysCompareBytewise(t *testing.T) {
	eachStore(t, func(r *rig) {
		n := r.node(engine.Options{})
		long := strings.Repeat("k", 254)
		pairs := []struct{ scope, key string }{
			{"s", "Pay-AB"},
			{"s", "pay-ab"},
			{"s", "k1"},
			{"s", "k1 "},
			{"s", " k1"},
			{"s", long + "a"},
			{"s", long + "b"},
			{"s", `o'brien"; --`},
			{"s", "a/b?c=d&e"},
			{"s", "%2F"},
			{"s", "é"},
			{"s", "e\u0301"},
			{"s", "\\0"},
			{"s", "Straße"},
			{"s", "STRASSE"},
			{"x", "a|b"},
			{"x|a", "b"},
		}
		for i, p := range pairs {
			n.want(n.submit(request{scope: p.scope, key: p.key, body: `{"n":` + string(rune('0'+i%10)) + `}`, path: "/" + string(rune('a'+i))}), semel.StatusCompleted)
		}
		n.wantEffects(len(pairs), len(pairs))
		for _, length := range []int{256, 1024, 4096} {
			for _, last := range []string{"a", "b"} {
				c := n.call(request{key: strings.Repeat("k", length-1) + last, body: `{}`})
				if _, err := n.engine.Do(n.Context(), c); err == nil || !strings.Contains(err.Error(), "255") {
					n.Errorf("a key of %d bytes: %v, want a refusal that names the limit", length, err)
				}
			}
		}
		n.wantEffects(len(pairs), len(pairs))
		n.wantHonest()
	})
}

// C07: a key that travels to the next call, or to another tenant, never hands
// over somebody else's result.
func TestC07KeysStayInTheirScope(t *testing.T) {
	eachStore(t, func(r *rig) {
		n := r.node(engine.Options{})
		create := n.submit(request{scope: "t1/invoice.create", key: "K", path: "/invoices", body: `{"cust":"c1"}`})
		pay := n.submit(request{scope: "t1/invoice.pay", key: "K", path: "/pay", body: `{"invoice":"inv_1"}`})
		other := n.submit(request{scope: "t2/invoice.create", key: "K", path: "/invoices", body: `{"cust":"c1"}`})
		for _, out := range []semel.Outcome{create, pay, other} {
			n.want(out, semel.StatusCompleted)
		}
		if pay.Replayed || other.Replayed || other.Operation.Result.Reference == create.Operation.Result.Reference {
			n.Error("a result crossed its scope")
		}
		// Another endpoint under one scope and key is a conflict: the scope names the logical destination.
		n.want(n.submit(request{scope: "t1/invoice.create", key: "K", path: "/other-account/invoices", body: `{"cust":"c1"}`}), semel.StatusConflict)
		n.wantEffects(3, 3)
		n.wantHonest()
	})
}

// C09: the same key with a changed body is a visible conflict, before and
// after a restart; the first operation keeps its own bytes.
func TestC09ChangedBody(t *testing.T) {
	eachStore(t, func(r *rig) {
		r.dest.script = func(a arrival, act func(string), w http.ResponseWriter) {
			if len(r.dest.seen()) == 1 {
				answer(w, http.StatusTooManyRequests, `{"error":"slow down"}`)
				return
			}
			act(string(a.body))
			answer(w, http.StatusCreated, `{"id":"ok"}`)
		}
		n := r.node(engine.Options{})
		n.want(n.submit(request{key: "b-1", body: `{"items":["tmp-1"]}`}), semel.StatusFailed)
		conflict := n.submit(request{key: "b-1", body: `{"items":["cat-9"]}`})
		n.want(conflict, semel.StatusConflict)
		if !slices.Equal(conflict.Fields, []string{"body.items"}) {
			n.Errorf("the conflict names %v", conflict.Fields)
		}
		n.want(n.submit(request{key: "b-1", body: `{"items":["tmp-1"]}`}), semel.StatusCompleted)
		n.want(n.submit(request{key: "b-2", body: `{"v":1}`}), semel.StatusCompleted)

		restarted := r.node(engine.Options{})
		again := restarted.submit(request{key: "b-2", body: `{"v":1}`})
		restarted.want(again, semel.StatusCompleted)
		if !again.Replayed {
			n.Error("the repeat after the restart was not a replay")
		}
		restarted.want(restarted.submit(request{key: "b-2", body: `{"v":2}`}), semel.StatusConflict)
		n.wantEffects(2, 3)
		n.wantHonest()
	})
}
