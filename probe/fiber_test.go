package probe_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/probe"
)

// buildShop builds the shop behind Fiber's middleware. It is a module of its
// own, so that Fiber is none of our dependencies.
func buildShop(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "shop")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join("testdata", "fiber"), "-mod=readonly", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the shop behind Fiber's middleware cannot be built (it needs the Go module proxy once): %v\n%s", err, out)
	}
	return binary
}

// shop starts the shop and returns its address.
func shop(t *testing.T, binary string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line)
}

func shopLedger(t *testing.T, url string) (count map[string]int, total int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/ledger", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&count); err != nil {
		t.Fatal(err)
	}
	for _, n := range count {
		total += n
	}
	return count, total
}

// Fiber's idempotency middleware is known to differ from what Stripe and the
// draft describe, and the probe finds how: another header, no comparison of
// bodies, no marker, no conflict, keys of 36 bytes only, errors kept by how a
// handler reports them (M39).
func TestFiberDiffers(t *testing.T) {
	binary := buildShop(t)
	url := shop(t, binary, "-pause", "50ms")

	tg := target(t, url+"/charges", "generic")
	tg.Contract = keyed(tg.Contract, 30*time.Minute)
	tg.Contract.KeyHeader = "X-Idempotency-Key"
	r := run(t, tg, probe.Options{ID: "one", Delay: 100 * time.Millisecond})
	want := map[probe.Question]probe.Finding{
		probe.Absence: probe.NotTested, probe.Visibility: probe.NotTested, probe.OtherKey: probe.NotTested,
		probe.SameKey: probe.OneEffect, probe.AtOnce: probe.OneEffect, probe.AfterDelay: probe.OneEffect, probe.WithoutKey: probe.SeveralEffects,
		probe.Spelling:    probe.Unknown,  // 500: a quoted key has 38 bytes
		probe.ChangedBody: probe.Replayed, // the body is not compared
		probe.AfterError:  probe.Kept,     // a status set by the handler is kept
	}
	if diff := cmp.Diff(want, findings(r)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	count, total := shopLedger(t, url)
	wantCount := map[string]int{"semel-probe-one-first": 1, "semel-probe-one-many": 1, "semel-probe-one-nokey": 2}
	if diff := cmp.Diff(wantCount, count); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if total < r.Effects.AtLeast || total > r.Effects.AtMost {
		t.Errorf("%d effects, the report says %+v", total, r.Effects)
	}
	if o := r.Of(probe.AtOnce); o.Conflict != nil {
		t.Errorf("at once: %+v, want all to wait for the first", o.Conflict)
	}
	if m := r.Of(probe.SameKey).Marker; m != nil {
		t.Errorf("marker %+v, want none", m)
	}
	if r.Holds() != probe.Holds {
		t.Errorf("keyed for 30 min: %s, %+v", r.Holds(), r.Verdicts)
	}
	about := map[string]bool{}
	for _, d := range r.Differences {
		about[d.About] = true
	}
	if !about["changed_body"] || !about["after_error"] {
		t.Errorf("differences: %+v", r.Differences)
	}
	profile, err := httpdest.ParseProfile([]byte(r.Profile))
	if err != nil {
		t.Fatal(err)
	}
	if profile.Key.Header != "X-Idempotency-Key" || time.Duration(profile.Window.Is) != 30*time.Minute || profile.ReplayMarker.Header != "" {
		t.Errorf("profile:\n%s", r.Profile)
	}
	if got := profile.Read(400, []byte(`{"message":"amount is missing"}`)); got != httpdest.MeansRetained {
		t.Errorf("400 reads as %s, want retained:\n%s", got, r.Profile)
	}

	t.Run("errors that a handler returns are not kept", func(t *testing.T) {
		tg := target(t, url+"/refunds", "generic")
		tg.Contract = keyed(tg.Contract, 30*time.Minute)
		tg.Contract.KeyHeader = "X-Idempotency-Key"
		r := run(t, tg, probe.Options{ID: "two"})
		if got := r.Of(probe.AfterError).Finding; got != probe.Free {
			t.Errorf("after an error: %s, want free", got)
		}
		if count, _ := shopLedger(t, url); count["semel-probe-two-error"] != 1 {
			t.Errorf("ledger: %v", count)
		}
	})
	t.Run("Stripe's header does nothing", func(t *testing.T) {
		r := run(t, target(t, url+"/charges", "stripe"), probe.Options{ID: "three"})
		if r.Holds() != probe.Broken || rulings(r)[probe.PromiseKey] != probe.Broken {
			t.Errorf("as Stripe: %+v", r.Verdicts)
		}
		if count, _ := shopLedger(t, url); count["semel-probe-three-first"] != 2 {
			t.Errorf("ledger: %v", count)
		}
		if p, err := httpdest.ParseProfile([]byte(r.Profile)); err != nil || p.Key.Header != "" {
			t.Errorf("%v, profile:\n%s", err, r.Profile)
		}
	})
	t.Run("a key is forgotten after its lifetime", func(t *testing.T) {
		url := shop(t, binary, "-lifetime", "1s")
		tg := target(t, url+"/charges", "generic")
		tg.Contract = keyed(tg.Contract, 30*time.Minute)
		tg.Contract.KeyHeader = "X-Idempotency-Key"
		r := run(t, tg, probe.Options{ID: "four", Delay: 3 * time.Second})
		if rulings(r)[probe.PromiseWindow] != probe.Broken {
			t.Errorf("window: %+v", r.Of(probe.AfterDelay))
		}
		if count, _ := shopLedger(t, url); count["semel-probe-four-first"] != 2 {
			t.Errorf("ledger: %v", count)
		}
	})
}
