package probe

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-dev/semel"
)

// Lookups are repeated ever more slowly, and not for ever.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// visibility looks for the first effect until it is found.
func (r *run) visibility(ctx context.Context, sent Exchange) Observation {
	o := Observation{Question: Visibility}
	switch why := r.skip(Visibility); {
	case why != "":
		o.Finding, o.Words = NotTested, why
		return o
	case sent.tells() == refused:
		o.Finding, o.Words = NotTested, "the first request was refused, so there is nothing to find"
		return o
	}
	answered := sent.begun.Add(time.Duration(sent.Took))
	end := time.Now().Add(r.options.LookFor)
	asked, evidence, last := 0, 0, Exchange{}
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		e, ev := r.look(ctx, r.first)
		asked++
		last = e
		if ev.Kind == semel.EvFound || ev.Person {
			o.Finding, o.FoundAfter = Found, Duration(e.begun.Add(time.Duration(e.Took)).Sub(sent.begun))
			o.Words = fmt.Sprintf("a lookup found it %v after the request", o.FoundAfter)
			if o.MissedAt > 0 {
				o.Words += fmt.Sprintf(", and missed it at %v after the answer", o.MissedAt)
			}
			o.Exchanges = append(o.Exchanges, e)
			return o
		}
		if ev.Kind == semel.EvAbsent {
			evidence++
			o.MissedAt = Duration(e.begun.Sub(answered))
			o.Exchanges = []Exchange{e} // the last that missed it
		}
		if ctx.Err() != nil || !time.Now().Add(pause).Before(end) {
			break
		}
		sleep(ctx, pause)
	}
	if sent.tells() != made {
		o.Finding, o.Words = Unknown, fmt.Sprintf("%d lookups found nothing, and whether the first request had an effect is unknown", asked)
		return o
	}
	if evidence == 0 {
		o.Finding, o.Words = NotFound, "no lookup told anything: "+last.Says
		if last.Status == 0 {
			o.Finding = Unknown
		}
		o.Exchanges = []Exchange{last}
		return o
	}
	o.Finding, o.Words = NotFound, fmt.Sprintf("%d lookups within %v did not find it", asked, Duration(r.options.LookFor))
	return o
}

// census counts the effects of an intention where a lookup lists them. What it
// sees goes before what answers said.
func (r *run) census(ctx context.Context, o *Observation, l letter) {
	if n, ok := r.list(ctx, o, l); ok {
		if judgeListed(o, n) {
			r.proof[o.Question] = byList
		}
	}
}

// censusOfChanged counts what another body under the first key did. A lookup by
// the key lists the first effect as well, one by the label does not.
func (r *run) censusOfChanged(ctx context.Context, o *Observation, l letter) {
	n, ok := r.list(ctx, o, l)
	if !ok {
		return
	}
	if r.target.Label == "" || !strings.Contains(r.target.Contract.LookupURL, "{body."+r.target.Label+"}") {
		n--
	}
	if n > 0 {
		o.Finding, o.Words = SeveralEffects, o.Words+"; a lookup finds that it was done as well"
		r.proof[o.Question] = byList
	}
}

// list asks the lookup for all effects of an intention, when they should be
// visible.
func (r *run) list(ctx context.Context, o *Observation, l letter) (int, bool) {
	if r.skip(Visibility) != "" || r.target.Contract.FoundIn == "" || o.Finding == NotTested || r.found(Absence).Finding == Found {
		return 0, false
	}
	// As long as a lookup needed before, and half of it again.
	wait := time.Duration(r.found(Visibility).FoundAfter)
	for _, e := range o.Exchanges {
		wait = max(wait, time.Duration(e.Took))
	}
	sleep(ctx, min(max(wait*3/2, firstPause), r.options.LookFor))
	e, _ := r.look(ctx, l)
	o.Exchanges = append(o.Exchanges, e)
	return r.listed(&e)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
