package examples_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/examples/checkout"
	"github.com/semel-dev/semel/sandbox"
)

// customer is a browser in front of the shop.
type customer struct {
	*world
	base     string
	worker   *process
	provider *sandbox.Server
}

// shop opens one whose provider misbehaves as told.
func (w *world) shop(o sandbox.Options) *customer {
	w.Helper()
	base, provider := w.provider(o)
	wf := checkout.New(checkout.Destinations{Payments: w.reach("payments", base)})
	p := w.newProcess(0, wf.Definition())
	return &customer{w, w.serve(checkout.NewShop(wf, p.worker, w.store)), p, provider}
}

// open opens a page and returns it as text.
func (c *customer) open(path string) string {
	c.Helper()
	resp, err := http.Get(c.base + path)
	return c.read(resp, err)
}

func (c *customer) read(resp *http.Response, err error) string {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatal(err)
	}
	return string(body)
}

var keyField = regexp.MustCompile(`name="key" value="([^"]+)"`)

// form opens the form and returns the key that is in it.
func (c *customer) form() string {
	c.Helper()
	found := keyField.FindStringSubmatch(c.open("/"))
	if found == nil {
		c.Fatal("the form has no key")
	}
	return found[1]
}

// click sends the form and returns the page that the browser lands on.
func (c *customer) click(key, mail string) string {
	c.Helper()
	resp, err := http.PostForm(c.base+"/orders", url.Values{"key": {key}, "customer": {mail}})
	return c.read(resp, err)
}

// becomes opens the order's page until it holds the words.
func (c *customer) becomes(key, words string) {
	c.Helper()
	page := ""
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if page = c.open("/orders/" + key); strings.Contains(page, words) {
			return
		}
	}
	c.Fatalf("the page does not say %q:\n%s", words, page)
}

func (c *customer) wantCharges(want int) {
	c.Helper()
	if n := len(c.provider.Effects()); n != want {
		c.Errorf("charged %d times, want %d", n, want)
	}
}

func TestOneFormIsChargedOnce(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.shop(sandbox.Options{})
		key := c.form()
		if page := c.open("/orders/" + key); !strings.Contains(page, "Nothing was ordered") {
			c.Errorf("before it was sent, the page says:\n%s", page)
		}
		var clicks sync.WaitGroup
		for range 8 { // at once
			clicks.Go(func() {
				_, _ = http.PostForm(c.base+"/orders", url.Values{"key": {key}, "customer": {"ann@example.com"}})
			})
		}
		clicks.Wait()
		c.becomes(key, "Paid")
		for range 2 { // a reload, and the back button with another click
			if page := c.click(key, "ann@example.com"); !strings.Contains(page, "Paid") {
				c.Errorf("clicked again:\n%s", page)
			}
		}
		if page := c.click(key, "bob@example.com"); !strings.Contains(page, "differs from that order and was not ordered") {
			c.Errorf("another order with the same form:\n%s", page)
		}
		c.wantCharges(1)

		second := c.form() // a new intention
		c.click(second, "ann@example.com")
		c.becomes(second, "Paid")
		c.wantCharges(2)
	})
}

func TestLookingOrdersNothing(t *testing.T) {
	eachStore(t, func(w *world) {
		c := w.shop(sandbox.Options{})
		key := c.form()
		resp, err := http.Get(c.base + "/orders?key=" + key + "&customer=ann@example.com")
		_ = c.read(resp, err)
		if resp.StatusCode != http.StatusMethodNotAllowed {
			c.Errorf("GET /orders answers %d", resp.StatusCode)
		}
		for _, forged := range []string{"", "4417", "00000000-0000-7000-8000-000000000000"} {
			if page := c.click(forged, "ann@example.com"); !strings.Contains(page, "too old") {
				c.Errorf("key %q:\n%s", forged, page)
			}
		}
		elsewhere, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.base+"/orders", strings.NewReader("key="+key))
		if err != nil {
			c.Fatal(err)
		}
		elsewhere.Header.Set("Sec-Fetch-Site", "cross-site")
		elsewhere.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err = http.DefaultClient.Do(elsewhere)
		_ = c.read(resp, err)
		if resp.StatusCode != http.StatusForbidden {
			c.Errorf("a form of another site: %d", resp.StatusCode)
		}
		for range c.store.ListRuns(c.Context(), semel.RunFilter{}) {
			c.Error("a run was started")
		}
		c.wantCharges(0)
	})
}

func TestThePageTellsTheTruth(t *testing.T) {
	answers := map[string]struct {
		fault sandbox.Fault
		words []string // one after the other
		total int
	}{
		"an answer that is lost":  {sandbox.DropAfter, []string{"Confirmation unavailable; checking the original request", "Paid"}, 1},
		"a request that is lost":  {sandbox.DropBefore, []string{"Confirmation unavailable; checking the original request", "Paid"}, 1},
		"a card that is declined": {sandbox.Refuse, []string{"Your card was not charged"}, 0},
		"a slow provider":         {sandbox.Slow, []string{"In progress", "Paid"}, 1},
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(w *world) {
				c := w.shop(sandbox.Options{Delay: 2 * time.Second, Faults: sandbox.Rate{First: 1, Mix: map[sandbox.Fault]int{a.fault: 1}}})
				key := c.form()
				c.click(key, "ann@example.com")
				c.becomes(key, a.words[0])
				ctx, stop := context.WithCancel(c.Context())
				var working sync.WaitGroup
				working.Go(func() { _ = c.worker.worker.Run(ctx) })
				c.becomes(key, a.words[len(a.words)-1])
				stop()
				working.Wait()
				c.wantCharges(a.total)
			})
		})
	}
}

func TestAStoreThatIsAwayIsNoInvitation(t *testing.T) {
	eachStore(t, func(w *world) {
		base, provider := w.provider(sandbox.Options{})
		wf := checkout.New(checkout.Destinations{Payments: w.reach("payments", base)})
		p := w.newProcess(0, wf.Definition())
		server := httptest.NewServer(checkout.NewShop(wf, p.worker, away{w.store}))
		t.Cleanup(server.Close)
		c := &customer{w, server.URL, p, provider}
		if page := c.open("/orders/" + c.form()); !strings.Contains(page, "We cannot look at your order") {
			c.Errorf("the page says:\n%s", page)
		}
	})
}

// away is a store that cannot be read.
type away struct{ keeper }

func (away) FindRun(context.Context, string, semel.Key) (semel.Run, error) {
	return semel.Run{}, semel.ErrUnavailable
}
