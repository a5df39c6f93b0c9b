package main

import (
	"cmp"
	"context"
	"net/http"
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
	ds, target, err := sh.endpoint(o)
	if err != nil {
		return err
	}
	defer ds.close(ctx)
	if call.Contract, err = o.promise(ds.over, given); err != nil {
		return err
	}
	newRequest := httpdest.NewRequest
	if o.connection != "" {
		newRequest = ds.over.NewRequest // adds what the connection gives, and stays at its origin
	}
	request, withheld, err := newRequest(http.MethodPost, target, o.header, body)
	if err != nil {
		return err
	}
	call.Request, call.Withheld, call.Destination = request, withheld, ds.over
	if err := o.sendable(&call); err != nil {
		return err
	}
	sh.noteKeys(o, &call.Contract)
	sh.noteQuery("--post", target)
	sh.noteQuery("--lookup", o.lookup)
	return sh.perform(ctx, call, new(atomic.Bool))
}

// sendable refuses what would fail when it is sent, or when it is looked up:
// nothing is on record yet.
func (o *doOptions) sendable(call *semel.Call) error {
	c := &call.Contract
	if err := c.Validate(); err != nil {
		return err
	}
	if o.keyHeader != "" {
		if err := httpdest.CheckKeyHeader(o.keyHeader); err != nil {
			return err
		}
	}
	if name := http.CanonicalHeaderKey(c.KeyHeader); name != "" {
		_, stored := call.Request.Header[name]
		_, withheld := call.Withheld[name]
		if stored || withheld {
			return usagef("--header %s and --protection %s both send a key: leave out the header, and Semel sends one stable key on every attempt", name, c.Protection)
		}
	}
	if c.LookupURL != "" {
		return httpdest.CheckLookup(&call.Request, c.LookupURL)
	}
	return nil
}

// endpoint is the destination of one do.
type endpoint struct {
	*destinations
	over *httpdest.Destination
}

// endpoint finds the destination and the whole URL.
func (sh *shell) endpoint(o *doOptions) (*endpoint, string, error) {
	ds := &endpoint{destinations: &destinations{sh: sh}}
	if o.connection == "" {
		profile, err := httpdest.BuiltIn(cmp.Or(o.profile, "generic"))
		if err != nil {
			return nil, "", err
		}
		if ds.over, err = httpdest.New(httpdest.Options{Profile: profile}); err != nil {
			return nil, "", err
		}
		ds.opened = append(ds.opened, ds.over.Close)
		return ds, o.post, nil
	}
	if o.profile != "" {
		return nil, "", usagef("--profile and --connection both say how answers are read: give one of them")
	}
	var err error
	if ds.d, err = sh.database(); err != nil {
		return nil, "", err
	}
	file, err := ds.read()
	if err != nil {
		return nil, "", err
	}
	if ds.over, err = file.HTTP(o.connection); err != nil {
		return nil, "", err
	}
	target, err := ds.over.URL(o.post)
	return ds, target, err
}

// promise joins what the destination declares with what the flags say; flags
// win.
func (o *doOptions) promise(over *httpdest.Destination, given func(string) bool) (semel.Contract, error) {
	c := over.Contract()
	declared := c
	if given("protection") {
		c.Protection = semel.Protection(o.protection)
		if c.Protection != semel.Keyed {
			c.Window, c.KeyHeader, c.KeyQuoted = 0, "", false
		}
	}
	if c.Protection == semel.Keyed {
		c.Window, c.KeyHeader = cmp.Or(o.window, c.Window), cmp.Or(c.KeyHeader, defaultKeyHeader)
	}
	if name := http.CanonicalHeaderKey(o.keyHeader); name != "" && name != c.KeyHeader {
		c.KeyHeader, c.KeyQuoted = name, false
	}
	if given("lookup") {
		target := o.lookup
		if o.connection != "" && strings.HasPrefix(target, "/") {
			whole, err := over.URL(target)
			if err != nil {
				return c, err
			}
			target = whole
		}
		c.LookupURL, c.FoundIn, c.VisibleAfter, c.AbsenceIsProof = target, "", 0, false
	}
	c.FoundIn = cmp.Or(o.foundIn, c.FoundIn)
	c.AbsenceIsProof = c.AbsenceIsProof || o.absence
	c.MaxProcessing = cmp.Or(o.processing, c.MaxProcessing)
	c.VisibleAfter = cmp.Or(o.visibleAfter, c.VisibleAfter)
	c.OnFailed = cmp.Or(semel.OnFailed(o.onFailed), c.OnFailed)
	if given("timeout") || c.Timeout == 0 {
		c.Timeout = o.timeout
	}
	switch {
	case c.FoundIn != "" && c.LookupURL == "":
		return c, usagef("--found-in says where a lookup's answer lists what it found, but there is no --lookup URL")
	case o.absence && !given("visible-after") && declared.VisibleAfter == 0:
		return c, usagef("--visible-after is missing: \"not found\" proves nothing until a new effect is sure to be visible, so say how long that takes (0s if at once)")
	case given("window") && c.Protection != semel.Keyed:
		return c, usagef("--window belongs to --protection keyed: it says how long the destination honours the key")
	}
	if c.LookupURL != "" {
		if err := httpdest.CheckTemplate(c.LookupURL); err != nil {
			return c, usagef("--lookup %s: %v: use {key}, {destination_key} or {body.FIELD}", c.LookupURL, err)
		}
	}
	return c, nil
}
