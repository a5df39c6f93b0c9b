package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// ErrNothingSent says that not one request left: nothing is known of the
// destination, and nothing happened there.
var ErrNothingSent = errors.New("nothing could be sent")

// The subjects: each is one intention with a label and a key of its own.
const (
	subjectAbsent  = "absent"
	subjectFirst   = "first"
	subjectChanged = "other"
	subjectApart   = "apart"
	subjectAtOnce  = "many"
	subjectError   = "error"
	subjectNoKey   = "nokey"
)

// run is one probe under way.
type run struct {
	*Probe
	sent   int // requests that may have an effect
	first  letter
	answer Exchange // the first that told of the effect; of SameKey
	begun  time.Time
	marker *Marker
	seen   []Observation
	proof  map[Question]proof
	// Why names, and the marker, do not tell effects apart; empty where they do.
	noNames, noMarker string
	recurs            bool // one name is several effects', or may be
}

// Run asks every question of the plan that the answers leave open. It returns
// when all are answered, or ctx ends; what was not asked then is not tested. The
// error wraps ErrNothingSent, and there is no report then.
func (p *Probe) Run(ctx context.Context) (Report, error) {
	r := &run{Probe: p, proof: map[Question]proof{}}
	r.first = letter{r.request(r.label(subjectFirst)), r.key(subjectFirst), asDeclared}
	began := time.Now().UTC()
	r.absence(ctx)
	if err := r.sameKey(ctx); err != nil {
		return Report{}, err
	}
	for _, q := range Questions()[3:] { // what comes after Visibility, which sameKey asks
		r.ask(ctx, q)
	}
	return r.report(began), nil
}

// ask asks one question, or notes why not.
func (r *run) ask(ctx context.Context, q Question) {
	why := r.skip(q)
	if why == "" {
		why = r.settled(q)
	}
	switch {
	case why != "":
	case ctx.Err() != nil:
		why = "the probe was stopped"
	case r.sent+q.cost() > r.options.MaxEffects:
		why = tooMany(q.cost())
	}
	if why != "" {
		r.note(Observation{Question: q, Finding: NotTested, Words: why})
		return
	}
	switch q {
	case Spelling:
		r.again(ctx, q, letter{r.first.request, r.first.key, otherwise})
	case ChangedBody:
		changed, _ := r.changed(r.label(subjectChanged))
		r.again(ctx, q, letter{changed, r.first.key, asDeclared})
	case OtherKey:
		r.otherKey(ctx)
	case AtOnce:
		r.atOnce(ctx)
	case AfterError:
		r.afterError(ctx)
	case WithoutKey:
		r.withoutKey(ctx)
	case AfterDelay:
		r.afterDelay(ctx)
	case Absence, SameKey, Visibility:
	}
}

// settled says why a question has no sense after what was seen; empty if it has.
func (r *run) settled(q Question) string {
	same := r.found(SameKey)
	switch {
	case r.answer.tells() != made:
		return "the first request was not answered with success, so there is no effect to compare with"
	case same.Finding == SeveralEffects && q != WithoutKey:
		return "keys make no difference here"
	case same.Finding == SeveralEffects:
		return "a key made no difference, so the requests with one stand for those without"
	}
	return ""
}

func tooMany(n int) string {
	return fmt.Sprintf("it needs %d more %s that may have an effect than max-effects allows", n, map[bool]string{true: "request", false: "requests"}[n == 1])
}

// absence looks for what does not exist.
func (r *run) absence(ctx context.Context) {
	if why := r.skip(Absence); why != "" {
		r.note(Observation{Question: Absence, Finding: NotTested, Words: why})
		return
	}
	e, ev := r.look(ctx, letter{r.request(r.label(subjectAbsent)), r.key(subjectAbsent), asDeclared})
	o := Observation{Question: Absence, Exchanges: []Exchange{e}}
	switch {
	case ev.Kind == semel.EvAbsent:
		o.Finding, o.Words = Absent, fmt.Sprintf("a lookup of what does not exist is answered %d, and reads as absent", e.Status)
	case ev.Kind == semel.EvFound || ev.Person:
		o.Finding, o.Words = Found, fmt.Sprintf("a lookup of what does not exist is answered %d with something", e.Status)
	default:
		o.Finding, o.Words = Unknown, "a lookup of what does not exist does not tell: "+e.Says
	}
	r.note(o)
}

// sameKey sends one request twice under one key, and looks for it in between.
func (r *run) sameKey(ctx context.Context) error {
	first := r.count(fresh(r.send(ctx, r.first, func() {})))
	if first.Unsent {
		return fmt.Errorf("%w: %s", ErrNothingSent, strings.TrimPrefix(first.Says, "nothing was sent: "))
	}
	r.begun, r.answer = first.begun, first
	r.note(r.visibility(ctx, first))
	o := Observation{Question: SameKey, Exchanges: []Exchange{first}}
	switch {
	case ctx.Err() != nil:
		o.Finding, o.Words = Unknown, "the probe was stopped before the key was used again; the first request "+happened(&first)
	case r.sent >= r.options.MaxEffects:
		o.Finding, o.Words = NotTested, "max-effects allows no second request"
	default:
		second := r.count(r.send(ctx, r.first, func() {}))
		o.Exchanges = append(o.Exchanges, second)
		r.learn(&first, &o.Exchanges[1])
		r.prove(&o, judgeSame(&o))
		if first.tells() != made && second.tells() == made {
			r.answer = o.Exchanges[1]
		}
		r.census(ctx, &o, r.first)
	}
	r.note(o)
	return nil
}

// otherKey makes one more effect, under a key and with a label of its own: only
// where it gets another name do names tell effects apart.
func (r *run) otherKey(ctx context.Context) {
	e := r.count(fresh(r.send(ctx, letter{r.request(r.label(subjectApart)), r.key(subjectApart), asDeclared}, func() {})))
	o := Observation{Question: OtherKey, Exchanges: []Exchange{e}}
	switch {
	case e.tells() == made && e.Reference != "" && r.answer.Reference != "" && e.Reference != r.answer.Reference:
		o.Finding, o.Words = SeveralEffects, fmt.Sprintf("under another key the answer names %s", e.Reference)
	case e.tells() == made:
		o.Finding, o.Words = Unknown, "under another key the answer names no other effect"
	case e.tells() == refused:
		o.Finding, o.Conflict = Refused, conflict(&e)
		o.Words = "a request under another key was refused with " + o.Conflict.String()
	default:
		o.Finding, o.Words = Unknown, e.Says
	}
	r.note(o)
}

// again sends one more request under the key of the first.
func (r *run) again(ctx context.Context, q Question, l letter) {
	e := r.count(r.send(ctx, l, func() {}))
	o := Observation{Question: q, Exchanges: []Exchange{e}}
	r.prove(&o, judgeAgain(&o, &r.answer))
	if q == ChangedBody {
		r.censusOfChanged(ctx, &o, l)
	}
	r.note(o)
}

// atOnce lets several requests with one key begin at one moment.
func (r *run) atOnce(ctx context.Context) {
	l := letter{r.request(r.label(subjectAtOnce)), r.key(subjectAtOnce), asDeclared}
	o := Observation{Question: AtOnce, Exchanges: make([]Exchange, together)}
	gate := newGate(together)
	var wg sync.WaitGroup
	for i := range together {
		wg.Go(func() {
			come := sync.OnceFunc(gate.come)
			defer come() // one that cannot begin holds up nobody
			o.Exchanges[i] = r.send(ctx, l, func() { come(); <-gate.open })
		})
	}
	wg.Wait()
	for i := range o.Exchanges {
		o.Exchanges[i] = r.count(o.Exchanges[i])
	}
	r.prove(&o, judgeAtOnce(&o))
	if !slices.ContainsFunc(o.Exchanges, func(e Exchange) bool { return e.tells() == made }) {
		for i := range o.Exchanges {
			o.Exchanges[i].fresh = true // none is known to have used the key
		}
	}
	r.census(ctx, &o, l)
	r.note(o)
}

// afterError gets an error under a key, and then sends a good request under it.
func (r *run) afterError(ctx context.Context) {
	key := r.key(subjectError)
	bad := r.count(fresh(r.send(ctx, letter{r.wrong(r.label(subjectError)), key, asDeclared}, func() {})))
	o := Observation{Question: AfterError, Exchanges: []Exchange{bad}}
	if bad.tells() != refused {
		o.Finding = NotTested
		o.Words = fmt.Sprintf("the request that should have been refused was not: %s; give a body that the destination refuses", bad.Says)
		if bad.tells() == silent {
			o.Finding, o.Words = Unknown, "the request that should have been refused was not answered clearly: "+bad.Says
		}
		r.note(o)
		return
	}
	good := r.count(r.send(ctx, letter{r.request(r.label(subjectError)), key, asDeclared}, func() {}))
	o.Exchanges = append(o.Exchanges, good)
	judgeError(&o)
	r.note(o)
}

// withoutKey sends one request twice without any key.
func (r *run) withoutKey(ctx context.Context) {
	l := letter{r.request(r.label(subjectNoKey)), r.key(subjectNoKey), withoutAKey}
	first := r.count(fresh(r.send(ctx, l, func() {})))
	o := Observation{Question: WithoutKey, Exchanges: []Exchange{first}}
	if first.tells() == refused {
		o.Finding, o.Words = Refused, fmt.Sprintf("a request without a key is refused with %d", first.Status)
		o.Conflict = conflict(&first)
		r.note(o)
		return
	}
	o.Exchanges = append(o.Exchanges, r.count(r.send(ctx, l, func() {})))
	r.prove(&o, judgeSame(&o))
	r.census(ctx, &o, l)
	r.note(o)
}

// afterDelay uses the first key again when the delay is over.
func (r *run) afterDelay(ctx context.Context) {
	timer := time.NewTimer(time.Until(r.begun.Add(r.options.Delay)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		r.note(Observation{Question: AfterDelay, Finding: NotTested, Words: "the probe was stopped"})
		return
	}
	e := r.send(ctx, r.first, func() {})
	waited := Duration(e.begun.Sub(r.begun).Truncate(time.Millisecond))
	e = r.count(e)
	o := Observation{Question: AfterDelay, Exchanges: []Exchange{e}, Waited: waited}
	r.prove(&o, judgeAgain(&o, &r.answer))
	switch o.Finding {
	case OneEffect:
		o.Words = fmt.Sprintf("the key held for at least %v; %s", waited, o.Words)
	case SeveralEffects:
		o.Words = fmt.Sprintf("the key was forgotten within %v; %s", waited, o.Words)
	default:
		o.Words = fmt.Sprintf("after %v: %s", waited, o.Words)
	}
	r.note(o)
}

// fresh is an answer to the first request under its key.
func fresh(e Exchange) Exchange {
	e.fresh = true
	return e
}

// count notes that a request left, which may have had an effect.
func (r *run) count(e Exchange) Exchange {
	r.mark(&e)
	if !e.Unsent {
		r.sent++
	}
	return e
}

func (r *run) note(o Observation) { r.seen = append(r.seen, o) }

// found is what was seen of a question.
func (r *run) found(q Question) Observation {
	for _, o := range r.seen {
		if o.Question == q {
			return o
		}
	}
	return Observation{Question: q, Finding: NotTested}
}

// happened says what one answer tells.
func happened(e *Exchange) string {
	switch e.tells() {
	case made:
		return "had an effect"
	case refused:
		return "was refused"
	case silent:
	}
	return "may have had an effect"
}
