package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// defaultKeyHeader carries the key where nobody says otherwise.
const defaultKeyHeader = "Idempotency-Key"

// doHTTP posts once.
func (sh *shell) doHTTP(ctx context.Context, o *doOptions, given func(string) bool, call semel.Call) error {
	var body []byte
	var err error
	if o.body != "" {
		if body, err = sh.readFile("--body", o.body, semel.MaxBody); err != nil {
			return err
		}
	}
	ds, target, err := sh.httpDestination(o, &call)
	if err != nil {
		return err
	}
	defer ds.close(ctx)
	if err := o.promise(&call.Contract, ds.contract, given); err != nil {
		return err
	}
	request, withheld, err := httpdest.NewRequest(http.MethodPost, target, o.header, body)
	if err != nil {
		return err
	}
	request.Connection = o.connection
	call.Request, call.Withheld, call.Destination = request, withheld, ds.over
	if err := sh.ownKey(o, &call.Contract); err != nil {
		return err
	}
	if err := call.Contract.Validate(); err != nil {
		return err
	}
	return sh.perform(ctx, call, new(atomic.Bool))
}

// endpoint is the destination of one do, with what it declares by itself.
type endpoint struct {
	*destinations
	over     *httpdest.Destination
	contract semel.Contract
}

// httpDestination finds the destination and the whole URL.
func (sh *shell) httpDestination(o *doOptions, call *semel.Call) (*endpoint, string, error) {
	ds := &endpoint{destinations: &destinations{sh: sh}}
	if o.connection != "" {
		if o.profile != "" {
			return nil, "", usagef("--profile and --connection both say how answers are read: give one of them")
		}
		d, err := sh.database()
		if err != nil {
			return nil, "", err
		}
		ds.d = d
		if ds.over, ds.contract, err = ds.connection(o.connection); err != nil {
			return nil, "", err
		}
		target, err := ds.over.URL(o.post)
		return ds, target, err
	}
	profile, err := httpdest.BuiltIn(cmp.Or(o.profile, "generic"))
	if err != nil {
		return nil, "", err
	}
	if ds.over, err = httpdest.New(httpdest.Options{Profile: profile}); err != nil {
		return nil, "", err
	}
	ds.opened = append(ds.opened, ds.over.Close)
	ds.contract = ds.over.Contract()
	return ds, o.post, nil
}

// promise joins what the flags say with what the destination declares; flags
// win.
func (o *doOptions) promise(c *semel.Contract, declared semel.Contract, given func(string) bool) error {
	c.Profile, c.Effect, c.Metered, c.Owner = declared.Profile, declared.Effect, declared.Metered, declared.Owner
	if !given("protection") {
		c.Protection = declared.Protection
	}
	if c.Protection == semel.Keyed {
		c.Window = cmp.Or(c.Window, declared.Window)
		c.KeyHeader, c.KeyQuoted = declared.KeyHeader, declared.KeyQuoted
		c.KeyHeader = cmp.Or(c.KeyHeader, defaultKeyHeader)
	}
	if o.keyHeader != "" {
		if http.CanonicalHeaderKey(o.keyHeader) != c.KeyHeader {
			c.KeyQuoted = false
		}
		c.KeyHeader = http.CanonicalHeaderKey(o.keyHeader)
	}
	c.MaxProcessing = cmp.Or(c.MaxProcessing, declared.MaxProcessing)
	if !given("lookup") {
		c.LookupURL, c.FoundIn = declared.LookupURL, cmp.Or(c.FoundIn, declared.FoundIn)
		c.AbsenceIsProof = c.AbsenceIsProof || declared.AbsenceIsProof
		c.VisibleAfter = max(c.VisibleAfter, declared.VisibleAfter)
	}
	switch {
	case c.FoundIn != "" && c.LookupURL == "":
		return usagef("--found-in says where a lookup's answer lists what it found, but there is no --lookup URL")
	case c.AbsenceIsProof && given("absence-is-proof") && !given("visible-after") && declared.VisibleAfter == 0:
		return usagef("--visible-after is missing: \"not found\" proves nothing until a new effect is sure to be visible, so say how long that takes (0s if at once)")
	case given("window") && c.Protection != semel.Keyed:
		return usagef("--window belongs to --protection keyed: it says how long the destination honours the key")
	}
	return nil
}

// ownKey speaks up when the caller sends a key by hand.
func (sh *shell) ownKey(o *doOptions, c *semel.Contract) error {
	for _, line := range o.header {
		name, _, _ := strings.Cut(line, ":")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if !isKeyHeader(name) {
			continue
		}
		if name == c.KeyHeader {
			return usagef("--header %s and --protection %s both send a key: leave out the header, and Semel sends one stable key on every attempt", name, c.Protection)
		}
		sh.say("note: %s is sent as written. It changes no protection (%s): Semel does not rely on it, and does not resend because of it. "+
			"If this destination honours keys, say --protection keyed --window D instead", name, c.Protection)
	}
	return nil
}

// isKeyHeader reports whether some known destination reads a key there.
func isKeyHeader(name string) bool {
	if name == "Idempotency-Key" || name == "X-Idempotency-Key" {
		return true
	}
	return slices.ContainsFunc(httpdest.Profiles(), func(p *httpdest.Profile) bool {
		return p.Key.Header != "" && http.CanonicalHeaderKey(p.Key.Header) == name
	})
}
