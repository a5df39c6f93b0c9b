package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// testBytewise: M9. Keys and scopes compare byte by byte.
func testBytewise(t *testing.T, h Harness) {
	s := h.Open(t)
	long := strings.Repeat("x", semel.MaxKeyLen)
	names := []string{
		"a", "A", "a ", " a", "a\t", "a/b", "a:b", "a%b", "a_b", `a\b`, "a'b", `a"b`, "a\nb", "1", "01", "1.0", "é", "e\u0301", "ｅ", "ß", "ss", "SS",
		"i", "I", "İ", "ı", "\u200b", "a\u200b", "\ufeffa", "😀", "null", "\x01", long, long[:254], long[:254] + "y", strings.Repeat("é", 127),
	}
	ids := map[string]semel.ID{}
	for _, name := range names {
		for _, asKey := range []bool{true, false} {
			o := fresh(now(t, s), semel.Key(name), contract())
			if !asKey {
				o.Scope, o.Key = semel.Scope(name), "k"
			}
			o = commit(t, s, o, claimed(1))
			ids[string(o.Scope)+"\x00"+string(o.Key)] = o.ID
		}
	}
	for name, id := range ids {
		sc, k, _ := strings.Cut(name, "\x00")
		o, err := s.Load(t.Context(), semel.Scope(sc), semel.Key(k))
		if err != nil || o.ID != id || string(o.Scope) != sc || string(o.Key) != k {
			t.Errorf("load %q %q: got %q %q, error %v", sc, k, o.Scope, o.Key, err)
		}
	}
}

// testExactBytes: law 10, M16. Every byte of request, result and evidence
// comes back, whatever it is.
func testExactBytes(t *testing.T, h Harness) {
	s := h.Open(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	bodies := map[string][]byte{
		"none":          nil,
		"every byte":    all,
		"NUL":           {0},
		"not UTF-8":     {0xff, 0xfe, 'a', 0xc3},
		"JSON with NUL": []byte(`{"a":"\u0000","n":9007199254740993,"m":1.10,"e":1e400,"a":2}`),
		"large":         []byte(strings.Repeat("0123456789abcdef", semel.MaxBody/16)),
	}
	for name, body := range bodies {
		o := fresh(now(t, s), newKey(), contract())
		o.Request.Body = body
		o.Request.Header = map[string]string{"X-Odd": "a\u0000b \u2028 <&> \"'"}
		o.Contract.Owner = "it's \"odd\" \\ <&>"
		o = commit(t, s, o, claimed(1))
		ev := confirmed(1, "ref\u0000 \u2028 é")
		ev.Result.Body = body[:min(len(body), semel.MaxResult)]
		ev.Result.Size = 9007199254740993
		o = commit(t, s, o, ev)
		o = commit(t, s, o, semel.Event{Kind: semel.EvJoined, By: "\u0000 <&>", Reason: "a\nb"})
		got := load(t, h.Open(t), o.ID)
		same(t, name, got, o)
		if string(got.Request.Body) != string(body) || string(got.Result.Body) != string(ev.Result.Body) {
			t.Errorf("%s: the bytes differ", name)
		}
	}
}

// testEvents: M36. The story is complete, in order, with every field, and each
// event has the store's time, which never runs back.
func testEvents(t *testing.T, h Harness) {
	s := h.Open(t)
	o := fresh(now(t, s), newKey(), semel.Contract{Protection: semel.Keyed, Window: time.Hour, Timeout: time.Second})
	asked := now(t, s).Round(time.Microsecond)
	story := []semel.Event{
		claimed(1),
		{
			Kind: semel.EvLost, Attempt: 1, By: "w", Reason: "reset", Reference: "req_1", Closed: true, CheckAfter: time.Second,
			Result: &semel.Result{Status: 503, MediaType: "text/plain", Body: []byte("later"), Size: -1, SHA256: "ab"},
		},
		{Kind: semel.EvNoAnswer, By: "recovery", AskedAt: asked, Reason: "no route"},
		{Kind: semel.EvClaimed, Attempt: 2, By: "w2", Lease: time.Minute, SendWithin: time.Second, Token: newToken()},
		{Kind: semel.EvCancelAsked, By: "person", Reason: "wrong amount"},
		lost(2),
		{Kind: semel.EvDidNotHappen, By: "person", Reason: "asked the bank", Reference: "ticket 7", Force: true, NewKey: true},
	}
	for i := range story {
		before := now(t, s)
		o = commit(t, s, o, story[i])
		if o.UpdatedAt.Before(before) {
			t.Fatalf("event %d was stamped %v, before %v", i+1, o.UpdatedAt, before)
		}
		story[i].At = o.UpdatedAt
		h.Shift(time.Second)
	}
	got, err := h.Open(t).Events(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(story, got, emptyBytes); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	same(t, "replayed", load(t, s, o.ID), o)
}

// testClock: law 14. The store's clock never runs back: not from commit to
// commit, not from handle to handle for one operation, not across a restart,
// and not when the machine's clock is set back.
func testClock(t *testing.T, h Harness) {
	s, other := h.Open(t), h.Open(t)
	h.Shift(time.Hour)
	o := claim(t, s, contract())
	last := o.UpdatedAt
	for i := range 6 {
		if i == 2 {
			h.Shift(-2 * time.Hour)
		}
		if i == 4 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = h.Open(t)
		}
		w := []semel.Store{s, other}[i%2]
		o = commit(t, w, o, semel.Event{Kind: semel.EvJoined, By: "source"})
		if o.UpdatedAt.Before(last) {
			t.Fatalf("commit %d was stamped %v, after one of %v", i, o.UpdatedAt, last)
		}
		last = o.UpdatedAt
		if at := now(t, w); at.Before(last) {
			t.Fatalf("now is %v, after a commit at %v", at, last)
		}
		same(t, "replayed", load(t, w, o.ID), o)
	}
	if at := now(t, h.Open(t)); at.Before(last) {
		t.Fatalf("after a restart now is %v, before %v", at, last)
	}
}
