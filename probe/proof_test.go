package probe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/probe"
)

// careless acts on every request, whatever its key, and names the effect so that
// this cannot be seen.
func careless(t *testing.T, name func(r *http.Request, reference string, n int) string) (url string, count func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var order struct{ Reference string }
		_ = json.Unmarshal(body, &order)
		mu.Lock()
		n++
		mine := n
		mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]string{"id": name(r, order.Reference, mine)})
	}))
	t.Cleanup(server.Close)
	return server.URL, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// A name that cannot tell two effects apart proves nothing, however many
// requests are allowed.
func TestNamesThatTellNothing(t *testing.T) {
	key := func(r *http.Request) string { return r.Header.Get("Idempotency-Key") }
	tests := map[string]func(r *http.Request, reference string, n int) string{
		"the label":          func(_ *http.Request, reference string, _ int) string { return reference },
		"with the label":     func(_ *http.Request, reference string, _ int) string { return "order/" + strings.ToUpper(reference) },
		"the key":            func(r *http.Request, _ string, _ int) string { return key(r) },
		"with the key":       func(r *http.Request, _ string, _ int) string { return "k:" + key(r) + ":1" },
		"a part of the key":  func(r *http.Request, _ string, _ int) string { return key(r)[:min(28, len(key(r)))] },
		"always one":         func(*http.Request, string, int) string { return "ok" },
		"a member of a body": func(*http.Request, string, int) string { return "100" },
		"made of the body":   func(_ *http.Request, reference string, _ int) string { return fmt.Sprintf("o_%x", len(reference)) },
	}
	for name, of := range tests {
		for _, allowed := range []int{2, 3, 5, 11} {
			if name == "made of the body" && allowed < 11 {
				continue // only two requests that look the same, without a key, show it
			}
			t.Run(fmt.Sprintf("%s/%d", name, allowed), func(t *testing.T) {
				t.Parallel()
				url, count := careless(t, of)
				tg := target(t, url, "generic")
				tg.Contract = keyed(tg.Contract, time.Hour)
				r := run(t, tg, probe.Options{MaxEffects: allowed, ID: "37c266ff8c44"})
				for _, q := range []probe.Question{probe.SameKey, probe.AtOnce, probe.Spelling, probe.ChangedBody, probe.WithoutKey} {
					if o := r.Of(q); o.Finding != probe.Unknown && o.Finding != probe.NotTested {
						if name == "made of the body" && (q == probe.ChangedBody || q == probe.AtOnce) {
							continue
						}
						t.Errorf("%s: %s (%s)", q, o.Finding, o.Words)
					}
				}
				got := rulings(r)
				if r.Holds() != probe.Undecided || got[probe.PromiseKey] != probe.Undecided || got[probe.PromiseAtOnce] == probe.Holds {
					t.Errorf("%s, %v", r.Holds(), got)
				}
				if p, err := httpdest.ParseProfile([]byte(r.Profile)); err != nil || p.Key.Header != "" || strings.Contains(r.Profile, "confidence: tested") && strings.Contains(r.Profile, "\nkey:") {
					t.Errorf("%v, the profile claims a key:\n%s", err, r.Profile)
				}
				if n := count(); n < r.Effects.AtLeast || n > r.Effects.AtMost {
					t.Errorf("%d effects, the report says %+v", n, r.Effects)
				}
			})
		}
	}
}

// One more effect under another key proves that names tell effects apart; it is
// planned first where requests are few.
func TestNamesAreTriedUnderAnotherKey(t *testing.T) {
	for allowed, want := range map[int]probe.Ruling{2: probe.Undecided, 3: probe.Holds, 4: probe.Holds, 5: probe.Holds} {
		server := httptest.NewServer(&memory{replay: same})
		t.Cleanup(server.Close)
		tg := target(t, server.URL, "generic")
		tg.Contract = keyed(tg.Contract, time.Hour)
		p, err := probe.New(tg, probe.Options{MaxEffects: allowed})
		if err != nil {
			t.Fatal(err)
		}
		planned := false
		for _, s := range p.Plan().Steps {
			planned = planned || s.Question == probe.OtherKey && s.Skipped == ""
		}
		r, err := p.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := r.Of(probe.SameKey)
		if rulings(r)[probe.PromiseKey] != want || planned != (allowed == 3 || allowed == 4) || (allowed == 2) != strings.Contains(o.Words, "not certain: under another key nothing was tried") {
			t.Errorf("%d allowed: %+v, planned %t: %s", allowed, rulings(r), planned, o.Words)
		}
	}
}

// A marker that is on every answer marks nothing.
func TestMarkerThatIsAlwaysThere(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Idempotent-Replayed", "true")
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(server.Close)
	tg := target(t, server.URL, "generic")
	tg.Contract = keyed(tg.Contract, time.Hour)
	if r := run(t, tg, probe.Options{}); r.Holds() != probe.Undecided || r.Of(probe.SameKey).Finding != probe.Unknown || r.Effects.AtMost != r.Effects.Requests {
		t.Errorf("%s: %+v, %+v", r.Holds(), r.Of(probe.SameKey), r.Effects)
	}
}

// 408, 409, 423 and 425 do not say that nothing happened.
func TestStatusesThatDoNotTell(t *testing.T) {
	for _, status := range []int{408, 409, 423, 425} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{}`)
		}))
		t.Cleanup(server.Close)
		tg := target(t, server.URL, "generic")
		tg.Contract = keyed(tg.Contract, time.Hour)
		r := run(t, tg, probe.Options{})
		if o := r.Of(probe.SameKey); o.Finding != probe.Unknown || r.Effects.AtMost < 1 || status != 409 && status != 423 && r.Effects.AtMost != 2 {
			t.Errorf("%d: %s (%s), %+v", status, o.Finding, o.Words, r.Effects)
		}
	}
}

// An answer that is cut off is called so.
func TestAnswerThatIsCutOff(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":`)
		_ = http.NewResponseController(w).Flush()
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	tg := target(t, server.URL, "generic")
	tg.Contract.Timeout = 100 * time.Millisecond
	r := run(t, tg, probe.Options{MaxEffects: 5})
	for _, q := range []probe.Question{probe.SameKey, probe.AtOnce} {
		if o := r.Of(q); o.Finding != probe.Unknown || !strings.Contains(o.Words, "cut off") {
			t.Errorf("%s: %s (%s)", q, o.Finding, o.Words)
		}
	}
}

// Where nothing could be tested, nothing holds.
func TestNothingTested(t *testing.T) {
	server := httptest.NewServer(&memory{replay: same})
	t.Cleanup(server.Close)
	tg := target(t, server.URL, "generic")
	tg.Contract = keyed(tg.Contract, time.Hour)
	pr, err := probe.New(tg, probe.Options{MaxEffects: 1})
	if err != nil {
		t.Fatal(err)
	}
	plan := pr.Plan()
	for _, s := range plan.Steps {
		if s.Skipped == "" {
			t.Errorf("%s is planned, and the one request leaves no room for it", s.Question)
		}
	}
	r, err := pr.Run(t.Context())
	if err != nil || r.Effects.Requests != plan.Effects {
		t.Errorf("planned %d requests, sent %d (%v)", plan.Effects, r.Effects.Requests, err)
	}
	if o := r.Of(probe.AfterError); r.Holds() != probe.Untested || !strings.Contains(r.Of(probe.Spelling).Words, "1 more request that") {
		t.Errorf("%s: %+v, %s", r.Holds(), r.Verdicts, o.Words)
	}
}

// No spelling of a secret is shown, whether it is read as text or decoded.
func TestSecretsAreHiddenInEverySpelling(t *testing.T) {
	const secret = "S/e+cr.t-47é\"11"
	each := func(format string) string {
		var b strings.Builder
		for _, r := range secret {
			fmt.Fprintf(&b, format, r)
		}
		return b.String()
	}
	plain := strings.ReplaceAll(secret, `"`, `\"`)
	spellings := map[string]string{
		"plain": plain, "slash": strings.ReplaceAll(plain, "/", `\/`), "plus": strings.ReplaceAll(plain, "+", `\u002B`), "all": each(`\u%04x`), "all, loud": each(`\u%04X`),
		"twice": strings.ReplaceAll(each(`\u%04x`), `\`, `\\`), "first only": strings.Replace(plain, "S", `\u0053`, 1), "entities": each("&#%d;"),
		"base64, escaped": `\u0055y9lK2NyLnQtNDfDqSIxMQ==`, "in base64 of more": `eFMvZStjci50LTQ3w6kiMTE=`,
	}
	for name, spelling := range spellings {
		for _, by := range []string{"header", "connection"} {
			for _, status := range []int{200, 400} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, by, status), func(t *testing.T) {
					t.Parallel()
					server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(status)
						fmt.Fprintf(w, `{"id":"%s","code":"%s","error":{"code":"x %s"}}`, spelling, spelling, spelling)
					}))
					t.Cleanup(server.Close)
					var headers []string
					if by == "header" {
						headers = []string{"Authorization: Bearer " + secret}
					}
					tg := target(t, server.URL, "generic", headers...)
					if by == "connection" {
						tg.Secrets = []string{secret}
					}
					r := run(t, tg, probe.Options{})
					shown, err := json.Marshal(r)
					if err != nil {
						t.Fatal(err)
					}
					var decoded any
					if err := json.Unmarshal(shown, &decoded); err != nil {
						t.Fatal(err)
					}
					text := fmt.Sprintf("%s\n%v\n%s", shown, decoded, r.Profile)
					for _, leak := range []string{secret, spelling, `e+cr`, `/e+`, `cr.t`, "y9lK2Ny", "MvZStj"} {
						if i := strings.Index(text, leak); i >= 0 {
							t.Fatalf("%q is shown: ...%s", leak, text[max(0, i-80):min(len(text), i+80)])
						}
					}
					for _, o := range r.Observations {
						for _, e := range o.Exchanges {
							var answer any
							if json.Unmarshal([]byte(e.Answer), &answer) == nil && strings.Contains(fmt.Sprint(answer), secret) {
								t.Errorf("an answer decodes to it: %s", e.Answer)
							}
						}
					}
					if !strings.Contains(text, "(hidden)") {
						t.Error("it was not repeated at all")
					}
				})
			}
		}
	}
}
