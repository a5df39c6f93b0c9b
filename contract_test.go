package semel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

func TestMarginIsATenthWithinBounds(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		0:                   time.Second,
		5 * time.Second:     time.Second,
		10 * time.Second:    time.Second,
		10*time.Second + 10: time.Second + 1,
		20 * time.Second:    2 * time.Second,
		50*time.Minute - 10: 5*time.Minute - 1,
		50 * time.Minute:    5 * time.Minute,
		51 * time.Minute:    5 * time.Minute,
		30 * 24 * time.Hour: 5 * time.Minute,
	} {
		c := semel.Contract{Window: window}
		if got := c.Margin(); got != want {
			t.Errorf("window %v: got margin %v, want %v", window, got, want)
		}
	}
}

// Law 8: the stricter of the pinned and the current profile applies.
func TestStricterNeverAllowsMoreThanEither(t *testing.T) {
	day, hour := 24*time.Hour, time.Hour
	base := semel.Contract{Protection: semel.Keyed, Window: day, Timeout: 30 * time.Second, MaxProcessing: time.Minute, VisibleAfter: time.Second, AbsenceIsProof: true, CanLookUp: true}
	with := func(change func(*semel.Contract)) semel.Contract {
		c := base
		change(&c)
		return c
	}
	for _, c := range []struct {
		name                  string
		pinned, current, want semel.Contract
	}{
		{"both the same", base, base, base},
		{"the window shrank", base, with(func(c *semel.Contract) { c.Window = hour }), with(func(c *semel.Contract) { c.Window = hour })},
		{"the window grew", with(func(c *semel.Contract) { c.Window = hour }), base, with(func(c *semel.Contract) { c.Window = hour })},
		{"no window any more", base, with(func(c *semel.Contract) { c.Window = 0 }), with(func(c *semel.Contract) { c.Window = 0 })},
		{"visible later", base, with(func(c *semel.Contract) { c.VisibleAfter = hour }), with(func(c *semel.Contract) { c.VisibleAfter = hour })},
		{"visible sooner", with(func(c *semel.Contract) { c.VisibleAfter = hour }), base, with(func(c *semel.Contract) { c.VisibleAfter = hour })},
		{"slower", base, with(func(c *semel.Contract) { c.MaxProcessing = hour }), with(func(c *semel.Contract) { c.MaxProcessing = hour })},
		{"faster", with(func(c *semel.Contract) { c.MaxProcessing = hour }), base, with(func(c *semel.Contract) { c.MaxProcessing = hour })},
		{"absence no longer proves", base, with(func(c *semel.Contract) { c.AbsenceIsProof = false }), with(func(c *semel.Contract) { c.AbsenceIsProof = false })},
		{"absence did not prove", with(func(c *semel.Contract) { c.AbsenceIsProof = false }), base, with(func(c *semel.Contract) { c.AbsenceIsProof = false })},
		{
			"processing no longer declared: no proof, and a resend still ends in time", with(func(c *semel.Contract) { c.MaxProcessing = hour }),
			with(func(c *semel.Contract) { c.MaxProcessing = 0 }), with(func(c *semel.Contract) { c.MaxProcessing, c.AbsenceIsProof = hour, false }),
		},
		{
			"processing not declared before: no proof, and the attempt timeout counts", with(func(c *semel.Contract) { c.MaxProcessing, c.Timeout = 0, hour }),
			base, with(func(c *semel.Contract) { c.MaxProcessing, c.Timeout, c.AbsenceIsProof = hour, hour, false }),
		},
		{
			"processing never declared: the longer attempt timeout counts", with(func(c *semel.Contract) { c.MaxProcessing, c.AbsenceIsProof = 0, false }),
			with(func(c *semel.Contract) { c.MaxProcessing, c.AbsenceIsProof, c.Timeout = 0, false, hour }),
			with(func(c *semel.Contract) { c.MaxProcessing, c.AbsenceIsProof, c.Timeout = 0, false, hour }),
		},
		{
			"keys no longer honoured", base, with(func(c *semel.Contract) { c.Protection, c.Window = semel.Lookup, 0 }),
			with(func(c *semel.Contract) { c.Protection, c.Window = semel.Lookup, 0 }),
		},
		{
			"keys not honoured before", with(func(c *semel.Contract) { c.Protection, c.Window = semel.Lookup, 0 }), base,
			with(func(c *semel.Contract) { c.Protection, c.Window = semel.Lookup, 0 }),
		},
		{
			"budget, address and owner stay those of the first claim", base,
			with(func(c *semel.Contract) {
				c.Attempts, c.LookupURL, c.Owner, c.OnFailed = 99, "https://elsewhere.example", "eve", semel.ReturnFailed
			}), base,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.pinned.Stricter(c.current)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A pause doubles up to five minutes and never shrinks.
func TestBackoffDoublesAndNeverShrinks(t *testing.T) {
	for _, c := range []struct {
		backoff time.Duration
		want    []time.Duration // the pause before the 2nd, 3rd ... attempt
	}{
		{0, []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}},
		{7, []time.Duration{7, 14, 28, 56, 112, 224, 300, 300}},
		{150, []time.Duration{150, 300, 300}},
		{300, []time.Duration{300, 300}},
		{600, []time.Duration{600, 600, 600}},
	} {
		contract := semel.Contract{Protection: semel.Absolute, Attempts: 100, Backoff: c.backoff * time.Second}
		var events []semel.Event
		for n, want := range c.want {
			at := time.Duration(n) * time.Hour
			events = append(events, claim(n+1, at), event(semel.EvLost, n+1, at))
			o := replay(t, contract, events...)
			if got := o.CheckAt.Sub(after(at)); got != want*time.Second {
				t.Errorf("backoff %v: attempt %d follows after %v, want %v", contract.Backoff, n+2, got, want*time.Second)
			}
		}
	}
}
