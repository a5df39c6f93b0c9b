package httpdest

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// Options configure a Destination. The zero Options reach any URL, directly or
// through the proxy that the environment names, and read answers by the
// generic profile.
type Options struct {
	// Name is the connection's, and part of the scope of its actions.
	Name string
	// Base is where the destination lives, for example https://api.example.com.
	// Requests to another origin are then refused, so that secrets never reach
	// it. Empty reaches any URL.
	Base string
	// Profile interprets answers to operations that name none; nil is generic.
	Profile *Profile
	// Contract is the starting point of this destination's actions. Zero is
	// what the profile declares.
	Contract semel.Contract
	// Given are headers that NewRequest puts into every request: part of its
	// identity, and stored with it.
	Given map[string]string
	// Header gives further headers, for example secrets, and is asked for each
	// attempt. They are sent and never stored.
	Header func(ctx context.Context) (map[string]string, error)
	// AtOnce is the most requests under way at one time, and PerSecond the most
	// that begin in one second; 0 sets no limit. Limit says how they are kept.
	AtOnce    int
	PerSecond float64
	// ConnectTimeout bounds everything before the first byte; 0 is ten seconds.
	ConnectTimeout time.Duration
	// LateFor is how long an answer is awaited after Send stopped waiting; 0 is
	// ten minutes.
	LateFor time.Duration
	// Proxy chooses the proxy for a request; nil follows HTTP_PROXY, HTTPS_PROXY
	// and NO_PROXY.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the certificates trusted; nil are the system's. Verification
	// cannot be turned off.
	RootCAs *x509.CertPool
}

// Destination reaches HTTP endpoints. It implements semel.Destination and
// semel.Looker and is safe for concurrent use. Close it.
type Destination struct {
	options Options
	base    *url.URL // nil for any
	profile *Profile
	dialer  dialer
	pool    pool
	lookups *http.Client

	mu      sync.Mutex
	closed  bool
	closing chan struct{} // closed when Close has waited long enough
	hurry   sync.Once
	late    int
	wg      sync.WaitGroup
}

var (
	_ semel.Destination = (*Destination)(nil)
	_ semel.Looker      = (*Destination)(nil)
)

// maxLate bounds how many answers are awaited after their Send has returned.
const maxLate = 1000

// New makes a Destination. The error is *semel.InputError.
func New(o Options) (*Destination, error) {
	d := &Destination{options: o, profile: o.Profile, closing: make(chan struct{})}
	if o.Base != "" {
		u, err := parseURL("base", o.Base)
		if err != nil {
			return nil, err
		}
		if u.RawQuery != "" || u.ForceQuery {
			return nil, &semel.InputError{Field: "base", Problem: "has a query", Hint: "give scheme, host and path only"}
		}
		d.base = u
	}
	if o.AtOnce < 0 || o.PerSecond < 0 || o.ConnectTimeout < 0 || o.LateFor < 0 {
		return nil, &semel.InputError{Field: "limits", Problem: "are negative", Hint: "leave out a limit that is not meant"}
	}
	if d.profile == nil {
		generic, err := BuiltIn("generic")
		if err != nil {
			return nil, err
		}
		d.profile = generic
	}
	if d.options.Contract.Protection == "" {
		d.options.Contract = d.profile.Contract()
	}
	if err := d.options.Contract.Validate(); err != nil {
		return nil, err
	}
	d.options.ConnectTimeout = orElse(o.ConnectTimeout, 10*time.Second)
	d.options.LateFor = orElse(o.LateFor, 10*time.Minute)
	d.dialer = newDialer(o.Proxy, o.RootCAs)
	d.lookups = d.dialer.lookups()
	return d, nil
}

// Contract is what actions of this destination promise, unless they say
// otherwise.
func (d *Destination) Contract() semel.Contract { return d.options.Contract }

// Name is the connection's name.
func (d *Destination) Name() string { return d.options.Name }

// Limit is what all engines over one store keep to together: AtOnce, and
// beginnings that are evenly spaced by PerSecond. A destination without a name
// has none.
func (d *Destination) Limit() semel.Limit {
	if d.options.Name == "" {
		return semel.Limit{}
	}
	l := semel.Limit{Name: d.options.Name, AtOnce: d.options.AtOnce}
	if d.options.PerSecond > 0 {
		l.Every, l.Burst = time.Duration(float64(time.Second)/d.options.PerSecond), 1
	}
	return l
}

// Profile interprets the answers.
func (d *Destination) Profile() *Profile { return d.profile }

// Close refuses new attempts, waits for those under way until ctx ends, and
// then closes their connections; what is known of them is still delivered.
func (d *Destination) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		d.wg.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		d.hurry.Do(func() { close(d.closing) })
		<-idle
	}
	d.pool.close()
	d.lookups.CloseIdleConnections()
	return nil
}

// enter makes Close wait for one more attempt, unless it has begun.
func (d *Destination) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.wg.Add(1)
	return true
}

// follow takes one of the places for late answers.
func (d *Destination) follow(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late+n > maxLate {
		return false
	}
	d.late += n
	return true
}

// profileFor is the profile that an operation was claimed with.
func (d *Destination) profileFor(id string) (*Profile, error) {
	name, _, _ := strings.Cut(id, "@")
	if id == "" || id == d.profile.ID() {
		return d.profile, nil
	}
	p, err := BuiltIn(id)
	if err != nil && name == d.profile.Name {
		return d.profile, nil // the user's own profile, in another version
	}
	return p, err
}

// within reports whether u belongs to the destination.
func (d *Destination) within(u *url.URL) error {
	if d.base == nil || originOf(u) == originOf(d.base) {
		return nil
	}
	return fmt.Errorf("%s is not at %s, where connection %q lives", originOf(u), originOf(d.base), d.options.Name)
}

// originOf is scheme, host and port.
func originOf(u *url.URL) string {
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + portOf(u)
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
