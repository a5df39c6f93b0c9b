package probe_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/probe"
)

// memory is a destination whose manners a test chooses.
type memory struct {
	mu      sync.Mutex
	effects []string          // references, in order
	keys    map[string]string // answer by key
	replay  func(w http.ResponseWriter, answer string)
	trim    bool // the quoted key is the bare one
	noID    bool
	needKey bool
	content bool // tells a repetition by the body
	race    bool // looks for a key before it acts, and not again
	bare    bool // the test gives no label
	status  int
	header  string
}

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var order struct{ Reference string }
	_ = json.Unmarshal(body, &order)
	if r.Method == http.MethodGet {
		m.list(w, r.URL.Query().Get("reference"))
		return
	}
	name := m.header
	if name == "" {
		name = "Idempotency-Key"
	}
	key := r.Header.Get(name)
	if m.trim {
		key = strings.Trim(key, `"`)
	}
	if m.content {
		key = string(body)
	}
	if m.needKey && key == "" {
		http.Error(w, "a key is needed", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	answer, known := m.keys[key]
	if m.race {
		m.mu.Unlock()
		time.Sleep(30 * time.Millisecond)
		m.mu.Lock()
	}
	defer m.mu.Unlock()
	if key != "" && known {
		m.replay(w, answer)
		return
	}
	m.effects = append(m.effects, order.Reference)
	answer = fmt.Sprintf(`{"id":"o_%d"}`, len(m.effects))
	if m.noID {
		answer = `{"ok":true}`
	}
	if m.keys == nil {
		m.keys = map[string]string{}
	}
	m.keys[key] = answer
	if m.status > 0 {
		w.WriteHeader(m.status)
	}
	_, _ = io.WriteString(w, answer)
}

func (m *memory) list(w http.ResponseWriter, reference string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := []string{}
	for i, r := range m.effects {
		if r == reference {
			found = append(found, fmt.Sprintf(`{"id":"o_%d","reference":%q}`, i+1, r))
		}
	}
	fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(found, ","))
}

func same(w http.ResponseWriter, answer string) { _, _ = io.WriteString(w, answer) }

// What other implementations do, and what the probe says of it.
func TestForeignManners(t *testing.T) {
	withHeader := func(name, is string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, answer string) { w.Header().Set(name, is); same(w, answer) }
	}
	tests := map[string]struct {
		world *memory
		keyed bool
		look  bool
		want  map[probe.Question]probe.Finding
		holds probe.Ruling
	}{
		"quoted is another key": {
			&memory{replay: same}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect, probe.Spelling: probe.SeveralEffects, probe.ChangedBody: probe.Replayed},
			probe.Holds,
		},
		"a marker nobody knew": {
			&memory{replay: withHeader("X-From-Memory", "hit"), trim: true}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect, probe.Spelling: probe.OneEffect},
			probe.Holds,
		},
		"a marker and no names": {
			&memory{replay: withHeader("Idempotency-Replayed", "true"), noID: true}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect, probe.AtOnce: probe.OneEffect},
			probe.Holds,
		},
		"neither marker nor names": {
			&memory{replay: same, noID: true}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.Unknown, probe.AtOnce: probe.Unknown},
			probe.Undecided,
		},
		"neither, but a list": {
			&memory{replay: same, noID: true}, true, true,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect, probe.AtOnce: probe.OneEffect, probe.Visibility: probe.Found, probe.WithoutKey: probe.SeveralEffects},
			probe.Holds,
		},
		"keys ignored, no names, but a list": {
			&memory{replay: same, noID: true, header: "Other"}, true, true,
			map[probe.Question]probe.Finding{probe.SameKey: probe.SeveralEffects, probe.AtOnce: probe.NotTested},
			probe.Broken,
		},
		"two at once slip through": {
			&memory{replay: same, race: true}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect, probe.AtOnce: probe.SeveralEffects},
			probe.Broken,
		},
		"the second is refused": {
			&memory{replay: func(w http.ResponseWriter, _ string) { http.Error(w, `{"code":"duplicate"}`, http.StatusConflict) }}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.Refused, probe.ChangedBody: probe.Refused},
			probe.Undecided,
		},
		"told by content, without a label": {
			&memory{replay: same, content: true, bare: true}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.Unknown, probe.AtOnce: probe.Unknown, probe.AfterError: probe.NotTested, probe.WithoutKey: probe.Unknown},
			probe.Undecided,
		},
		"it is accepted only": {
			&memory{status: http.StatusAccepted, replay: func(w http.ResponseWriter, answer string) { w.WriteHeader(http.StatusAccepted); same(w, answer) }}, true, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect},
			probe.Holds,
		},
		"a key is needed": {
			&memory{replay: same, needKey: true}, false, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.OneEffect, probe.WithoutKey: probe.Refused},
			probe.Holds,
		},
		"told by content": {
			&memory{replay: same, content: true}, false, false,
			map[probe.Question]probe.Finding{probe.SameKey: probe.Unknown, probe.WithoutKey: probe.Unknown, probe.ChangedBody: probe.SeveralEffects},
			probe.Holds,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := test.world
			server := httptest.NewServer(world)
			t.Cleanup(server.Close)
			tg := target(t, server.URL+"/orders", "generic")
			if test.world.bare {
				tg.Label = ""
			}
			if test.keyed {
				tg.Contract = keyed(tg.Contract, time.Hour)
			}
			if test.look {
				tg.Contract.LookupURL, tg.Contract.FoundIn = server.URL+"/orders?reference={body.reference}", "data"
			}
			r := run(t, tg, probe.Options{})
			got := findings(r)
			for q, want := range test.want {
				if got[q] != want {
					t.Errorf("%s: %s (%s), want %s", q, got[q], r.Of(q).Words, want)
				}
			}
			if r.Holds() != test.holds {
				t.Errorf("%s, want %s: %+v", r.Holds(), test.holds, r.Verdicts)
			}
			if n := len(world.effects); n < r.Effects.AtLeast || n > r.Effects.AtMost || n > probe.DefaultMaxEffects {
				t.Errorf("%d effects, the report says %+v", n, r.Effects)
			}
			p, err := httpdest.ParseProfile([]byte(r.Profile))
			if err != nil {
				t.Fatalf("%v\n%s", err, r.Profile)
			}
			if protects := got[probe.SameKey] == probe.OneEffect && got[probe.AtOnce] == probe.OneEffect; protects != (p.Key.Header != "") {
				t.Errorf("the profile has the key %q\n%s", p.Key.Header, r.Profile)
			}
			if got := p.Read(http.StatusConflict, []byte(`{"code":"duplicate"}`)); name == "the second is refused" && got != httpdest.MeansUnknown {
				t.Errorf("the same request and another one are refused alike, and that reads as %s\n%s", got, r.Profile)
			}
			if name == "it is accepted only" && r.Effects.AtLeast > 1 {
				t.Errorf("accepted is not done: %+v", r.Effects)
			}
			if name == "a marker nobody knew" && p.ReplayMarker.Header != "X-From-Memory" {
				t.Errorf("marker:\n%s", r.Profile)
			}
		})
	}
}

// A timeout is unknown, neither a failure nor a reason to send again.
func TestTimeoutIsUnknown(t *testing.T) {
	var mu sync.Mutex
	requests := 0
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		requests++
		mu.Unlock()
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	tg := target(t, server.URL, "stripe")
	tg.Contract.Timeout = 100 * time.Millisecond
	r := run(t, tg, probe.Options{})
	mu.Lock()
	defer mu.Unlock()
	if o := r.Of(probe.SameKey); o.Finding != probe.Unknown || r.Holds() != probe.Undecided || requests != 2 || r.Effects != (probe.Effects{Requests: 2, AtMost: 2}) {
		t.Errorf("%+v after %d requests, %s, %+v", o, requests, r.Holds(), r.Effects)
	}
}

// Where nothing leaves, nothing is reported.
func TestNothingSent(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	p, err := probe.New(target(t, server.URL, "stripe"), probe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(t.Context()); !errors.Is(err, probe.ErrNothingSent) {
		t.Errorf("%v, want nothing sent", err)
	}
}

// A probe that is stopped sends nothing more, and says what it did not test.
func TestStoppedProbe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	world := &memory{replay: func(w http.ResponseWriter, answer string) { cancel(); same(w, answer) }}
	server := httptest.NewServer(world)
	t.Cleanup(server.Close)
	p, err := probe.New(target(t, server.URL, "stripe"), probe.Options{Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Of(probe.AtOnce).Finding != probe.NotTested || r.Of(probe.AfterDelay).Finding != probe.NotTested || len(world.effects) != 1 {
		t.Errorf("%v, %d effects", findings(r), len(world.effects))
	}
}

// No secret is shown, also where the destination repeats it.
func TestSecretsAreHidden(t *testing.T) {
	const token, password, fixed = `sk_test_"4711"<&>`, "pass word/+", "connection-secret"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, user, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		w.Header().Set("Echo", r.Header.Get("Authorization"))
		if r.Method == http.MethodPost && r.Header.Get("Idempotency-Key") == "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": r.Header.Get("X-Api-Key"), "message": "bad token " + user + " " + r.Header.Get("X-Api-Key"), "error": fixed,
			"escaped": url.QueryEscape(r.Header.Get("X-Api-Key")) + url.PathEscape(r.Header.Get("X-Api-Key")),
			"encoded": base64.StdEncoding.EncodeToString([]byte(r.Header.Get("X-Api-Key"))),
		})
	}))
	t.Cleanup(server.Close)
	tg := target(t, server.URL, "generic", "Authorization: Bearer "+token, "X-Api-Key: "+password)
	tg.Contract.LookupURL = server.URL + "/{key}"
	tg.Secrets = []string{fixed}
	r := run(t, tg, probe.Options{LookFor: 50 * time.Millisecond})
	var shown strings.Builder
	enc := json.NewEncoder(&shown)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	text := shown.String() + fmt.Sprintf("%+v", r) + r.Profile
	for _, secret := range []string{"sk_test", "4711", "pass word", "pass+word", "pass%20word", fixed, base64.StdEncoding.EncodeToString([]byte(password))} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%q is shown: ...%s", secret, text[max(0, i-80):min(len(text), i+80)])
		}
	}
	if !strings.Contains(text, "(hidden)") {
		t.Error("the destination's repetition is not in the report at all")
	}
}

// What cannot be probed is refused before anything is sent.
func TestNewRefuses(t *testing.T) {
	tests := map[string]struct {
		change  func(*probe.Target)
		options probe.Options
		field   string
	}{
		"no effects allowed":     {nil, probe.Options{MaxEffects: -1}, "max-effects"},
		"a loud id":              {nil, probe.Options{ID: "LOUD"}, "id"},
		"a name that is taken":   {nil, probe.Options{Name: "stripe"}, "name"},
		"no name":                {nil, probe.Options{Name: "My profile"}, "name"},
		"a program":              {func(t *probe.Target) { t.Request.Kind = "command" }, probe.Options{}, "request"},
		"a key of one's own":     {func(t *probe.Target) { t.Withheld = map[string]string{"Idempotency-Key": "k"} }, probe.Options{}, "header Idempotency-Key"},
		"a header for no key":    {func(t *probe.Target) { t.Contract.KeyHeader = "Trailer" }, probe.Options{}, "key-header"},
		"a label without object": {func(t *probe.Target) { t.Request.Body = []byte(`[1]`) }, probe.Options{}, "label"},
		"a label through text":   {func(t *probe.Target) { t.Request.Body, t.Label = []byte(`{"a":"x"}`), "a.b" }, probe.Options{}, "label"},
		"a lookup of nothing":    {func(t *probe.Target) { t.Contract.LookupURL = "http://h/{body.nope}" }, probe.Options{}, "lookup"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tg := target(t, "http://127.0.0.1:1/", "stripe")
			if test.change != nil {
				test.change(&tg)
			}
			_, err := probe.New(tg, test.options)
			if input, ok := errors.AsType[*semel.InputError](err); !ok || input.Field != test.field {
				t.Errorf("%v, want an input error of %s", err, test.field)
			}
		})
	}
}

// Requests at once begin at one moment, however long each took to connect: none
// arrives while another still connects.
func TestRequestsBeginTogether(t *testing.T) {
	var calls, connecting, early atomic.Int64
	m := &memory{replay: same}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		early.Add(connecting.Load())
		m.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	tg := target(t, server.URL, "generic")
	d, err := httpdest.New(httpdest.Options{Proxy: func(*http.Request) (*url.URL, error) {
		connecting.Add(1)
		defer connecting.Add(-1)
		time.Sleep(time.Duration(calls.Add(1)%3) * 100 * time.Millisecond)
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	tg.Destination = d
	r := run(t, tg, probe.Options{MaxEffects: 5})
	if n := len(r.Of(probe.AtOnce).Exchanges); n < 2 || early.Load() > 0 {
		t.Errorf("%d requests at once; %d times one had arrived while another still connected", n, early.Load())
	}
}

// What a destination says cannot add to the profile.
func TestHostileAnswersStayData(t *testing.T) {
	n := 0
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n++
		if n%2 == 0 {
			w.WriteHeader(http.StatusConflict)
		}
		fmt.Fprintf(w, `{"id":"x%d\nname: evil\u0085\u2028version: 7","code":"a\"]}, means: completed}\n\u0000"}`, n)
	}))
	t.Cleanup(server.Close)
	for _, label := range []string{"reference", ""} {
		tg := target(t, server.URL+"/?q=\"a\"", "generic")
		tg.Label, tg.Changed = label, []byte(`{"b":1}`)
		r := run(t, tg, probe.Options{})
		p, err := httpdest.ParseProfile([]byte(r.Profile))
		if err != nil || p.Name != "probed" || p.Version != 1 || strings.Contains(r.Profile, "\nname: evil") {
			t.Errorf("%v\n%q", err, r.Profile)
		}
	}
}
