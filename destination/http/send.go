package httpdest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// Send performs one attempt: one request at most. It returns when there is an
// answer, when the contract's timeout is over or when ctx ends; in the last
// two cases it goes on reading if s.Late is set, and closes the connection if
// not.
func (d *Destination) Send(ctx context.Context, s *semel.Send) semel.Event {
	ev, _ := d.SendReply(ctx, s)
	return ev
}

// SendReply is Send that also hands back the answer as it came. It is nil where
// none had come when Send would return.
func (d *Destination) SendReply(ctx context.Context, s *semel.Send) (semel.Event, *Reply) {
	if !d.enter() {
		return refused(s, "the destination is closed"), nil
	}
	defer d.wg.Done()
	s = lasting(s)
	o, err := d.order(ctx, s)
	if err != nil {
		return refused(s, err.Error()), nil
	}
	a := newAttempt(s, orElse(s.Operation.Contract.WriteTimeout, semel.DefaultWriteTimeout))
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan semel.Event, 1)
	d.wg.Go(func() {
		defer cancel()
		defer a.done()
		done <- d.attempt(inner, a, o)
	})
	ev := d.await(ctx, a, cancel, done)
	return ev, a.heard()
}

// lasting is a copy of s that outlives the call, for late evidence.
func lasting(s *semel.Send) *semel.Send {
	own, operation := *s, *s.Operation
	own.Operation = &operation
	return &own
}

// order is a request that is ready to leave.
type order struct {
	request *http.Request // without a context
	target  *url.URL
	body    []byte
	profile *Profile
}

// order builds the request. An error means that it cannot be sent at all.
func (d *Destination) order(ctx context.Context, s *semel.Send) (*order, error) {
	r, c := &s.Operation.Request, &s.Operation.Contract
	if s.Begin == nil {
		return nil, errors.New("nobody checks the claim")
	}
	if r.Kind != Kind || !validHeaderName(r.Method) {
		return nil, fmt.Errorf("a request of kind %q and method %q is not one for HTTP", r.Kind, r.Method)
	}
	target, err := parseURL("url", r.URL)
	if err != nil {
		return nil, err
	}
	if err := d.within(target); err != nil {
		return nil, err
	}
	profile, err := d.profileFor(c.Profile)
	if err != nil {
		return nil, err
	}
	header, err := d.header(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := setKey(header, c, s.DestinationKey); err != nil {
		return nil, err
	}
	if limit := profile.Key.Max; c.KeyHeader != "" && limit > 0 && len(s.DestinationKey) > limit {
		return nil, fmt.Errorf("the key has %d bytes, and %s takes at most %d", len(s.DestinationKey), profile.ID(), limit)
	}
	if r.MediaType != "" && len(r.Body) > 0 {
		if !validHeaderValue(r.MediaType) {
			return nil, errors.New("the media type is not a header value")
		}
		header.Set("Content-Type", r.MediaType)
	}
	req := &http.Request{
		Method: r.Method, URL: target, Host: target.Host, Header: header, Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(r.Body) > 0 {
		// A one-shot reader with its length and without GetBody: it cannot be
		// read a second time.
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	}
	return &order{request: req, target: target, body: r.Body, profile: profile}, nil
}

// header collects what was given, what is withheld and what the connection adds.
func (d *Destination) header(ctx context.Context, s *semel.Send) (http.Header, error) {
	h := http.Header{"User-Agent": {"semel"}}
	r := &s.Operation.Request
	set := func(values map[string]string) error {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			canonical := http.CanonicalHeaderKey(name)
			if why, bad := managed[canonical]; bad {
				return fmt.Errorf("header %s cannot be given: %s", canonical, why)
			}
			if !validHeaderName(name) || !validHeaderValue(values[name]) {
				return fmt.Errorf("header %q cannot be sent", plain(name))
			}
			h.Set(canonical, values[name])
		}
		return nil
	}
	if d.options.Header != nil {
		own, err := d.options.Header(ctx)
		if err != nil {
			return nil, fmt.Errorf("connection %q: %w", d.options.Name, err)
		}
		if err := set(own); err != nil {
			return nil, err
		}
	}
	if err := set(r.Header); err != nil {
		return nil, err
	}
	if err := set(s.Withheld); err != nil {
		return nil, err
	}
	for _, name := range r.Withheld {
		if _, ok := h[http.CanonicalHeaderKey(name)]; !ok {
			return nil, fmt.Errorf("it needs the header %s, which is not stored: give it again", name)
		}
	}
	return h, nil
}

// setKey adds the destination key where the contract says that it is honoured.
func setKey(h http.Header, c *semel.Contract, key string) error {
	if c.KeyHeader == "" {
		return nil
	}
	name := http.CanonicalHeaderKey(c.KeyHeader)
	if _, given := h[name]; given {
		return fmt.Errorf("header %s is the key's and cannot be given", name)
	}
	if err := CheckKeyHeader(name); err != nil {
		return err
	}
	if key == "" {
		return errors.New("there is no key to send")
	}
	if !c.KeyQuoted {
		if !validHeaderValue(key) || strings.TrimSpace(key) != key {
			return errors.New("the key cannot be sent in a header")
		}
		h.Set(name, key)
		return nil
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return errors.New("the key cannot be spelled as a structured-field string")
		}
	}
	h.Set(name, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key)+`"`)
	return nil
}

// attempt opens a connection, sends and reads. It is the only code that
// touches the wire, and always ends with evidence.
func (d *Destination) attempt(ctx context.Context, a *attempt, o *order) semel.Event {
	l, err := d.connect(ctx, o.target)
	if err != nil {
		return a.fate(err)
	}
	l.wire.bind(a, len(o.body))
	resp, err := l.client.RoundTrip(o.request.WithContext(ctx))
	if err != nil {
		l.close()
		return a.fate(err)
	}
	a.answer()
	slow := time.AfterFunc(answerTime, l.wire.abort)
	got := readAnswer(resp)
	slow.Stop()
	_ = resp.Body.Close() // it is read as far as it will be
	a.hear(got.reply())
	ev := o.profile.judge(a.send, got)
	whole := l.wire.unbind()
	if ev.Kind == semel.EvLost || !whole || !got.whole || resp.Close {
		l.close()
		ev.Closed = ev.Kind == semel.EvLost
		return ev
	}
	d.pool.put(l)
	return ev
}

// connect returns a link that carries nothing else.
func (d *Destination) connect(ctx context.Context, target *url.URL) (*link, error) {
	proxy, err := d.dialer.via(target)
	if err != nil {
		return nil, err
	}
	route := originOf(target)
	if proxy != nil {
		route += " via " + proxy.String()
	}
	if l := d.pool.take(route); l != nil {
		return l, nil
	}
	return d.dialer.dial(ctx, target, proxy, route)
}

// await waits for the attempt as long as its contract and its caller do.
func (d *Destination) await(ctx context.Context, a *attempt, cancel func(), done <-chan semel.Event) semel.Event {
	timeout := a.send.Operation.Contract.Timeout
	limit := d.options.ConnectTimeout
	if timeout > 0 {
		limit = min(limit, timeout)
	}
	connect := time.NewTimer(limit)
	defer connect.Stop()
	var answer <-chan time.Time
	opened := a.opened
	for {
		select {
		case ev := <-done:
			return ev
		case <-opened:
			opened = nil
			if timeout > 0 {
				timer := time.NewTimer(timeout)
				defer timer.Stop() //nolint:gocritic // it is set once: opened is nil from here on
				answer = timer.C
			}
		case <-connect.C:
			if a.stop(fmt.Sprintf("no connection within %v", limit)) {
				cancel()
				return <-done
			}
		case <-answer:
			return d.giveUp(a, cancel, done, fmt.Sprintf("no answer within %v", timeout))
		case <-ctx.Done():
			return d.giveUp(a, cancel, done, "the caller stopped waiting: "+context.Cause(ctx).Error())
		}
	}
}

// giveUp stops waiting. What has not begun never will; what has is closed, or
// followed in the background where somebody takes late evidence.
func (d *Destination) giveUp(a *attempt, cancel func(), done <-chan semel.Event, why string) semel.Event {
	if a.stop(why) {
		cancel()
		return <-done
	}
	if a.send.Late == nil || a.isAnswered() || !d.follow(1) {
		a.quit(why)
		return <-done
	}
	late := a.send.Late
	d.wg.Go(func() {
		defer d.follow(-1)
		timer := time.NewTimer(d.options.LateFor)
		defer timer.Stop()
		select {
		case ev := <-done:
			late(ev)
			return
		case <-timer.C:
		case <-d.closing:
		}
		a.quit(why)
		late(<-done)
	})
	return semel.Event{
		Kind: semel.EvLost, Attempt: a.send.Attempt,
		Reason: plain("the request may have arrived: " + why + "; its answer is still awaited"),
	}
}
