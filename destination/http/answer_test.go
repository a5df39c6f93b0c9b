package httpdest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// What each answer means (M13, M20, C11; design section 7).
func TestAnswers(t *testing.T) {
	lost := semel.EvLost
	refused, confirmed, retained := semel.EvRefused, semel.EvConfirmed, semel.EvRetained
	tests := []struct {
		profile string
		status  int
		body    string
		header  []string
		want    semel.EventKind
		check   func(semel.Event) bool
	}{
		{"generic", 200, `{"id":"ch_1"}`, nil, confirmed, func(ev semel.Event) bool { return ev.Reference == "ch_1" }},
		{"generic", 201, `{"id":9007199254740993}`, nil, confirmed, func(ev semel.Event) bool { return ev.Reference == "9007199254740993" }},
		{"generic", 204, "", nil, confirmed, nil},
		{"generic", 202, "", []string{"Retry-After", "7"}, lost, func(ev semel.Event) bool { return ev.CheckAfter == 7*time.Second && !ev.Person }},
		{"generic", 203, "", nil, lost, nil},
		{"generic", 206, "{}", nil, lost, nil},
		{"generic", 207, `{"done":["a"],"failed":["b"]}`, nil, lost, func(ev semel.Event) bool { return ev.Person }},
		{"generic", 301, "", []string{"Location", "/elsewhere"}, lost, nil},
		{"generic", 302, "", []string{"Location", "/elsewhere"}, lost, nil},
		{"generic", 303, "", []string{"Location", "/elsewhere"}, lost, nil},
		{"generic", 307, "", []string{"Location", "/elsewhere"}, lost, nil},
		{"generic", 308, "", []string{"Location", "http://127.0.0.1:1/"}, lost, nil},
		{"generic", 400, "", nil, refused, nil},
		{"generic", 401, "", nil, refused, nil},
		{"generic", 403, "", nil, refused, nil},
		{"generic", 404, "", nil, refused, nil},
		{"generic", 405, "", nil, refused, nil},
		{"generic", 413, "", nil, refused, nil},
		{"generic", 415, "", nil, refused, nil},
		{"generic", 422, "", nil, refused, nil},
		{"generic", 429, "", nil, refused, nil},
		{"generic", 402, "", nil, lost, nil},
		{"generic", 407, "", nil, lost, nil},
		{"generic", 408, "", nil, lost, nil},
		{"generic", 409, "", nil, lost, nil},
		{"generic", 410, "", nil, lost, nil},
		{"generic", 412, "", nil, lost, nil},
		{"generic", 423, "", nil, lost, nil},
		{"generic", 425, "", nil, lost, nil},
		{"generic", 428, "", nil, lost, nil},
		{"generic", 499, "", nil, lost, nil},
		{"generic", 500, "", nil, lost, nil},
		{"generic", 502, "", nil, lost, nil},
		{"generic", 503, "", []string{"Retry-After", "999999999"}, lost, func(ev semel.Event) bool { return ev.CheckAfter == time.Hour }},
		{"generic", 504, "", nil, lost, nil},
		{"generic", 599, "", nil, lost, nil},
		{"generic", 999, "", nil, lost, nil},
		{"generic", 422, `{"title":"Idempotency-Key is already used"}`, nil, lost, func(ev semel.Event) bool { return ev.Incident != "" }},
		{
			"generic", 409, `{"title":"A request is outstanding for this Idempotency-Key"}`,
			[]string{"Retry-After", "2"},
			lost,
			func(ev semel.Event) bool { return ev.CheckAfter == 2*time.Second && ev.Incident == "" },
		},

		{
			"stripe", 200, `{"id":"ch_1"}`,
			[]string{"Idempotent-Replayed", "true"},
			confirmed,
			func(ev semel.Event) bool { return strings.Contains(ev.Reason, "from its memory of this key") },
		},
		{
			"stripe", 402, `{"error":{"type":"card_error","code":"card_declined","message":"Your card was declined."}}`, nil, retained,
			func(ev semel.Event) bool { return strings.Contains(ev.Reason, "Your card was declined.") },
		},
		{"stripe", 402, `{"error":{"type":"card_error","code":"processing_error"}}`, nil, lost, nil},
		{"stripe", 402, `not json`, nil, lost, nil},
		{"stripe", 400, `{"error":{"type":"invalid_request_error"}}`, nil, refused, nil},
		{"stripe", 400, `{"error":{"type":"idempotency_error"}}`, nil, lost, func(ev semel.Event) bool { return ev.Incident != "" }},
		{"stripe", 400, ``, nil, lost, nil},
		{
			"stripe", 409, `{"error":{"code":"idempotency_key_in_use"}}`,
			[]string{"Retry-After", "3"},
			lost,
			func(ev semel.Event) bool { return ev.CheckAfter == 3*time.Second && ev.Incident == "" && !ev.Person },
		},
		{"stripe", 409, `{}`, nil, lost, nil},
		{"stripe", 429, `{}`, nil, refused, nil},
		{"stripe", 422, `{}`, nil, lost, nil},
		{"stripe", 500, `{"error":{"type":"api_error"}}`, nil, lost, nil},
		{"sandbox", 402, `{"error":{"code":"card_declined"}}`, nil, retained, nil},
		{"sandbox", 422, `{"error":{"type":"invalid_request_error","code":"refused"}}`, nil, refused, nil},
		{"sandbox", 207, `{}`, nil, lost, func(ev semel.Event) bool { return ev.Person }},
	}
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for _, test := range tests {
		w.says(test.status, test.body, test.header...)
		before := len(w.seen())
		s, _ := w.attempt("POST", []byte(`{"amount":1}`), func(o *semel.Operation) { o.Contract.Profile = test.profile + "@1" })
		ev := d.Send(t.Context(), s)
		if ev.Kind != test.want || ev.Result == nil || ev.Result.Status != test.status || test.check != nil && !test.check(ev) {
			t.Errorf("%s %d %s: got %+v, want %s", test.profile, test.status, test.body, ev, test.want)
		}
		if ev.Closed != (ev.Kind == semel.EvLost) {
			t.Errorf("%s %d: closed is %v", test.profile, test.status, ev.Closed)
		}
		if n := len(w.seen()) - before; n != 1 {
			t.Errorf("%s %d: %d requests, want 1", test.profile, test.status, n)
		}
	}
}

// Completed stays completed, whatever the body holds (C24, M16).
func TestHostileBodies(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 5<<20)
	sum := sha256.Sum256(big)
	tests := map[string]struct {
		body      []byte
		reference string
		size      int64
		sum       string
	}{
		"NUL":             {[]byte(`{"id":"ch_1","note":"a\u0000b"}`), "ch_1", 0, ""},
		"lone surrogate":  {[]byte(`{"id":"ch_1","note":"\ud800"}`), "ch_1", 0, ""},
		"surrogate id":    {[]byte(`{"id":"\ud800"}`), "", 0, ""},
		"NUL id":          {[]byte(`{"id":"a\u0000"}`), "", 0, ""},
		"long id":         {[]byte(`{"id":"` + strings.Repeat("a", 256) + `"}`), "", 0, ""},
		"object id":       {[]byte(`{"id":{"x":1}}`), "", 0, ""},
		"invalid UTF-8":   {[]byte("{\"id\":\"ch_1\",\"note\":\"\xff\"}"), "ch_1", 0, ""},
		"binary":          {[]byte{0, 1, 2, 0xff}, "", 0, ""},
		"repeated member": {[]byte(`{"id":"ch_1","id":"ch_2"}`), "", 0, ""},
		"cut, id first":   {append([]byte(`{"id":"ch_9","data":"`), append(bytes.Repeat([]byte("y"), semel.MaxResult), `"}`...)...), "ch_9", semel.MaxResult + 23, "*"},
		"5 MiB":           {big, "", 5 << 20, hex.EncodeToString(sum[:])},
	}
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for name, test := range tests {
		w.says(201, string(test.body))
		s, _ := w.attempt("POST", []byte(`{}`))
		ev := d.Send(t.Context(), s)
		if ev.Kind != semel.EvConfirmed {
			t.Errorf("%s: got %+v, want confirmed", name, ev)
			continue
		}
		r := ev.Result
		if r.Reference != test.reference || r.Size != test.size || test.sum != "*" && r.SHA256 != test.sum {
			t.Errorf("%s: got reference %q, size %d, digest %s", name, r.Reference, r.Size, r.SHA256)
		}
		if kept := test.body[:min(len(test.body), semel.MaxResult)]; !bytes.Equal(kept, r.Body) {
			t.Errorf("%s: the body was not kept exactly", name)
		}
		wantRoundTrip(t, name, ev)
	}
}

// Bodies that are cut off or never end: bounded, marked, completed (C24). One
// that never ends is refused after 16 MB, besides what lies in buffers.
func TestEndlessAndBrokenBodies(t *testing.T) {
	const most = 64 << 20
	tests := map[string]func(http.ResponseWriter, func()) (written int){
		"endless": func(w http.ResponseWriter, _ func()) (written int) {
			for chunk := make([]byte, 64<<10); written < 2*most; written += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			return written
		},
		"cut off": func(w http.ResponseWriter, kill func()) (written int) {
			_, _ = io.WriteString(w, `{"id":"ch_1",`)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond) // a reset would overtake what is not read yet
			kill()
			return 0
		},
	}
	for _, route := range []string{"h1", "h2"} {
		for name, answer := range tests {
			t.Run(route+"/"+name, func(t *testing.T) {
				w := newWorld(t, route)
				d := w.destination(httpdest.Options{})
				written := make(chan int, 1)
				w.answers(func(rw http.ResponseWriter, _ *http.Request, kill func()) {
					rw.WriteHeader(201)
					written <- answer(rw, kill)
				})
				s, _ := w.attempt("POST", []byte(`{}`), func(o *semel.Operation) { o.Contract.Timeout = 0 })
				ev := d.Send(t.Context(), s)
				if n := <-written; n > most {
					t.Errorf("it took %d bytes", n)
				}
				if ev.Kind != semel.EvConfirmed || ev.Result.Size != -1 || !ev.Result.Truncated() {
					t.Errorf("got %s with size %d, want confirmed and cut", ev.Kind, ev.Result.Size)
				}
			})
		}
	}
}

// A body that comes too slowly does not outlast the contract's timeout, and the
// status still decides. Without a timeout the wait for a body is ten seconds.
func TestSlowBody(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for status, want := range map[int]semel.EventKind{201: semel.EvConfirmed, 402: semel.EvLost} {
		answered := make(chan struct{}, 2)
		w.answers(func(rw http.ResponseWriter, r *http.Request, _ func()) {
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, `{"id":"ch_1","error":{"code":"card_declined","type":"card_error"},`)
			_ = http.NewResponseController(rw).Flush()
			answered <- struct{}{}
			<-r.Context().Done()
		})
		hasty, _ := w.attempt("POST", []byte(`{}`), func(o *semel.Operation) {
			o.Contract.Timeout, o.Contract.Profile = 200*time.Millisecond, "stripe@1"
		})
		patient, _ := w.attempt("POST", []byte(`{}`), func(o *semel.Operation) { o.Contract.Timeout = 0 })
		waiting, leave := context.WithCancel(t.Context())
		left := make(chan semel.Event, 1)
		go func() { left <- d.Send(waiting, patient) }()
		<-answered
		ev := d.Send(t.Context(), hasty)
		if ev.Kind != want || ev.Result.Size != -1 {
			t.Errorf("%d: got %+v, want %s", status, ev, want)
		}
		select {
		case <-left:
			t.Errorf("%d: one without a timeout, which began before, ended before", status)
		default:
			leave()
			<-left
		}
		leave()
	}
}

// Text from outside is fit to store, however hostile (C24 step 4).
func TestHostileTexts(t *testing.T) {
	w := newWorld(t, "h1")
	d := w.destination(httpdest.Options{})
	for _, body := range []string{
		`{"error":{"message":"a\u0000b\u001b[31m\ud800"}}`,
		"{\"error\":\"\xff\xfe\"}",
		`{"error":{"message":"` + strings.Repeat("\u00e9", 10_000) + `"}}`,
		"\x00\x00",
	} {
		w.says(422, body)
		s, _ := w.attempt("POST", []byte(`{}`))
		ev := d.Send(t.Context(), s)
		if ev.Kind != semel.EvRefused || !utf8.ValidString(ev.Reason) || strings.ContainsAny(ev.Reason, "\x00\x1b\n") || len(ev.Reason) > 400 {
			t.Errorf("got %s %q", ev.Kind, ev.Reason)
		}
		wantRoundTrip(t, body[:2], ev)
	}
}

// wantRoundTrip: evidence survives its stored form.
func wantRoundTrip(t *testing.T, name string, ev semel.Event) {
	t.Helper()
	data, err := ev.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var back semel.Event
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Reason != ev.Reason || !bytes.Equal(back.Result.Body, ev.Result.Body) || back.Result.Reference != ev.Result.Reference {
		t.Errorf("%s: evidence changed in storage", name)
	}
}
