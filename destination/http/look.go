package httpdest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// lookTimeout bounds a lookup whose contract names no timeout.
const lookTimeout = 30 * time.Second

// Look asks the contract's LookupURL, with one GET and the operation's own
// headers, what became of the operation. What was found must be what was asked
// for: an object that differs in a member the profile compares, or in one that
// the lookup was made with, is no evidence but work for a person.
func (d *Destination) Look(ctx context.Context, s *semel.Send) semel.Event {
	ev, _ := d.LookReply(ctx, s)
	return ev
}

// LookReply is Look that also hands back the answer as it came, nil where there
// was none.
func (d *Destination) LookReply(ctx context.Context, s *semel.Send) (semel.Event, *Reply) {
	ctx, cancel := context.WithTimeout(ctx, orElse(s.Operation.Contract.Timeout, lookTimeout))
	defer cancel()
	req, profile, err := d.question(ctx, s)
	if err != nil {
		return noAnswer(err.Error()), nil
	}
	resp, err := d.lookups.Do(req)
	if err != nil {
		return noAnswer("the lookup got no answer: " + cause(err)), nil
	}
	got := readAnswer(resp)
	_ = resp.Body.Close()
	return profile.found(s, &got), got.reply()
}

// question builds the GET.
func (d *Destination) question(ctx context.Context, s *semel.Send) (*http.Request, *Profile, error) {
	c := &s.Operation.Contract
	if c.LookupURL == "" {
		return nil, nil, errors.New("the contract names no lookup")
	}
	profile, err := d.profileFor(c.Profile)
	if err != nil {
		return nil, nil, err
	}
	filled, err := fill(c.LookupURL, values(s))
	if err != nil {
		return nil, nil, err
	}
	target, err := parseURL("lookup", filled)
	if err != nil {
		return nil, nil, err
	}
	if err := d.within(target); err != nil {
		return nil, nil, err
	}
	if asked, err := parseURL("url", s.Operation.Request.URL); len(s.Withheld) > 0 && (err != nil || originOf(asked) != originOf(target)) {
		return nil, nil, errors.New("the lookup is at another origin than the request, and credentials were given for that one only")
	}
	header, err := d.header(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	for name := range header {
		if strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "If-") || strings.HasSuffix(name, "Idempotency-Key") ||
			name == "Prefer" || name == "Range" {
			header.Del(name)
		}
	}
	if header.Get("Accept") == "" {
		header.Set("Accept", "application/json")
	}
	req := (&http.Request{Method: http.MethodGet, URL: target, Host: target.Host, Header: header}).WithContext(ctx)
	return req, profile, nil
}

// found reads the answer to a lookup.
func (p *Profile) found(s *semel.Send, a *answer) semel.Event {
	c := &s.Operation.Contract
	status := a.result.Status
	switch {
	case status == http.StatusNotFound:
		return semel.Event{Kind: semel.EvAbsent, Reason: "the destination does not know it: " + a.words(p)}
	case status != http.StatusOK:
		return noAnswer("the lookup does not tell: " + a.words(p))
	case !a.kept():
		return noAnswer("the lookup does not tell: its answer is too long or was cut off")
	}
	v, ok := parse(a.result.Body)
	if !ok {
		return noAnswer("the lookup does not tell: its answer is not JSON")
	}
	if c.FoundIn != "" {
		one, ev := only(v, c.FoundIn)
		if one == nil {
			return ev
		}
		v = one
	}
	object, ok := v.(map[string]any)
	switch {
	case !ok:
		return noAnswer("the lookup does not tell: its answer is not an object")
	case len(object) == 0:
		return noAnswer("the lookup does not tell: its answer is an empty object")
	}
	return p.foundOne(s, a, object)
}

// only returns the one element of the list at path, or why there is none.
func only(v any, path string) (any, semel.Event) {
	found, ok := at(v, path)
	list, isList := found.([]any)
	if !ok || !isList {
		return nil, noAnswer(fmt.Sprintf("the lookup does not tell: its answer has no list at %s", path))
	}
	if more, ok := scalarAt(v, "has_more"); ok && more != "false" {
		return nil, noAnswer("the lookup does not tell: it shows only a part of the list")
	}
	switch len(list) {
	case 0:
		return nil, semel.Event{Kind: semel.EvAbsent, Reason: "the destination lists nothing for it"}
	case 1:
		if list[0] == nil {
			return nil, noAnswer("the lookup does not tell: it lists a null")
		}
		return list[0], semel.Event{}
	}
	ev := noAnswer(fmt.Sprintf("the lookup found %d of them, and one was asked for", len(list)))
	ev.Person = true
	return nil, ev
}

func (p *Profile) foundOne(s *semel.Send, a *answer, object map[string]any) semel.Event {
	var used []string
	for _, name := range placeholders(s.Operation.Contract.LookupURL) {
		if field, ok := strings.CutPrefix(name, "body."); ok {
			used = append(used, field)
		}
	}
	if other := p.contradicts(s.Operation.Request.Body, object, used); other != "" {
		ev := noAnswer("the lookup found something else: " + other)
		ev.Person = true
		ev.Result = &a.result
		return ev
	}
	result := a.result
	if s.Operation.Contract.FoundIn != "" {
		body, err := json.Marshal(object) // numbers keep their digits
		if err != nil {
			return noAnswer("the lookup does not tell: " + err.Error())
		}
		result.Body, result.Size, result.SHA256 = body, 0, ""
	}
	result.Reference = p.reference(&result, p.Reference.At)
	if result.Reference == "" && !p.shares(s.Operation.Request.Body, object, used) {
		return noAnswer("the lookup does not tell: its answer neither names an effect nor repeats a field of the request; where it is a list, found_in says where")
	}
	return semel.Event{Kind: semel.EvFound, Reason: "the destination has it", Reference: result.Reference, Result: &result}
}

func noAnswer(why string) semel.Event { return semel.Event{Kind: semel.EvNoAnswer, Reason: plain(why)} }

// cause is the error without the URL, which may hold values.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
