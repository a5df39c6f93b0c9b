package probe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/probe"
	"github.com/semel-dev/semel/sandbox"
)

// provider is a sandbox and a destination that leads to it.
type provider struct {
	*sandbox.Server
	url string
}

func newProvider(t *testing.T, o sandbox.Options) *provider {
	t.Helper()
	s, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		_ = s.Close()
		server.Close()
	})
	return &provider{s, server.URL}
}

// destination reads answers by a built-in profile.
func destination(t *testing.T, profile string) *httpdest.Destination {
	t.Helper()
	p, err := httpdest.BuiltIn(profile)
	if err != nil {
		t.Fatal(err)
	}
	d, err := httpdest.New(httpdest.Options{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	return d
}

// target posts an amount, labelled by its reference, under what the profile
// declares.
func target(t *testing.T, url, profile string, headers ...string) probe.Target {
	t.Helper()
	d := destination(t, profile)
	r, withheld, err := httpdest.NewRequest("POST", url, headers, []byte(`{"amount":100}`))
	if err != nil {
		t.Fatal(err)
	}
	c := d.Contract()
	c.Timeout = 5 * time.Second
	return probe.Target{Destination: d, Request: r, Withheld: withheld, Contract: c, Label: "reference"}
}

func run(t *testing.T, tg probe.Target, o probe.Options) probe.Report {
	t.Helper()
	p, err := probe.New(tg, o)
	if err != nil {
		t.Fatal(err)
	}
	report, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// findings are what was found of each question.
func findings(r probe.Report) map[probe.Question]probe.Finding {
	all := map[probe.Question]probe.Finding{}
	for _, o := range r.Observations {
		all[o.Question] = o.Finding
	}
	return all
}

// rulings are the verdicts on each promise.
func rulings(r probe.Report) map[probe.Promise]probe.Ruling {
	all := map[probe.Promise]probe.Ruling{}
	for _, v := range r.Verdicts {
		all[v.Promise] = v.Ruling
	}
	return all
}

// truthful holds a report against the ledger: what it says of each intention,
// and how many effects there were (M39).
func truthful(t *testing.T, p *provider, r probe.Report, allowed int) {
	t.Helper()
	if err := p.FinishLate(); err != nil {
		t.Fatal(err)
	}
	effects := p.Effects()
	if n := len(effects); n < r.Effects.AtLeast || n > r.Effects.AtMost || n > allowed || r.Effects.Requests > allowed {
		t.Errorf("%d effects at the provider; the report says %+v, and %d were allowed", n, r.Effects, allowed)
	}
	for _, e := range effects {
		if !strings.HasPrefix(e.Reference, "semel-probe-"+r.ID+"-") {
			t.Errorf("effect %s is not labelled: %s", e.ID, e.Request)
		}
	}
	var posts []int // numbers of the requests that may have an effect, in order
	for _, q := range p.Requests() {
		if q.Header.Get("User-Agent") != "semel-probe" {
			t.Errorf("request %d is from %q", q.Number, q.Header.Get("User-Agent"))
		}
		if q.Key != "" && (!strings.HasPrefix(q.Key, "semel-probe-") || len(q.Key) != 36) {
			t.Errorf("request %d has the key %q", q.Number, q.Key)
		}
		if q.Method == http.MethodPost {
			posts = append(posts, q.Number)
		}
	}
	if len(posts) != r.Effects.Requests {
		t.Errorf("%d requests at the provider, the report counts %d", len(posts), r.Effects.Requests)
	}
	for _, o := range r.Observations {
		n := 0 // effects of this question's requests
		for _, e := range o.Exchanges {
			if e.Method != http.MethodPost || e.Unsent {
				continue
			}
			n += len(slices.DeleteFunc(slices.Clone(effects), func(e sandbox.Effect) bool { return e.Number != posts[0] }))
			posts = posts[1:]
		}
		before := 0 // an effect that the question compares with
		if o.Question == probe.Spelling || o.Question == probe.ChangedBody || o.Question == probe.AfterDelay {
			before = 1
		}
		isTrue := map[probe.Finding]bool{
			probe.OneEffect: before+n == 1, probe.SeveralEffects: before+n > 1, probe.Refused: n <= 1-before,
			probe.Replayed: n == 0, probe.Kept: n == 0, probe.Free: n == 1,
			probe.Found: o.Question == probe.Visibility && len(effects) > 0, probe.Absent: true, probe.NotFound: true, probe.Unknown: true, probe.NotTested: true,
		}
		if !isTrue[o.Finding] {
			t.Errorf("%s: %s (%s), but its requests had %d effects", o.Question, o.Finding, o.Words, n)
		}
	}
	if _, err := httpdest.ParseProfile([]byte(r.Profile)); err != nil {
		t.Errorf("the profile cannot be read: %v\n%s", err, r.Profile)
	}
}

func keyed(c semel.Contract, window time.Duration) semel.Contract {
	c.Protection, c.Window, c.KeyHeader = semel.Keyed, window, "Idempotency-Key"
	return c
}
