package drill

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
)

// intention is one effect that was asked for.
type intention struct {
	scope semel.Scope
	key   semel.Key
}

func of(o *semel.Operation) intention { return intention{o.Scope, o.Key} }

// effect is something that happened.
type effect struct {
	intention
	step     string
	key      string // that the destination got
	body     string
	result   *semel.Result
	at       time.Time
	visible  time.Time // to a lookup
	subject  string    // what an absolute write sets
	commutes bool      // it needs no record
	repeats  bool      // happening again changes nothing
	run      semel.ID  // that asked for it
	lookup   string    // where it can be found
}

// receipt is what a destination remembers of a key.
type receipt struct {
	effect *effect
	since  time.Time
	barred int // attempts up to this one can have no effect any more
}

// world is every destination of one trial. It keeps the contracts that the
// operations have, and nothing beyond them.
type world struct {
	t *trial

	mu       sync.Mutex
	effects  []*effect
	receipts map[string]*receipt // by connection and key
	first    map[intention]string
	modes    map[intention]Fault // what goes on being broken
	landings []landing
	late     []lateAnswer
	faults   []fault
	stopped  map[semel.ID]bool // runs that were asked to stop before a claim
	revoked  bool
}

// landing is a request under way.
type landing struct {
	at  time.Time
	act func(at time.Time)
}

// lateAnswer is an answer under way to a worker.
type lateAnswer struct {
	p     *process
	of    intention
	place string
	ev    semel.Event
	late  func(semel.Event)
}

// fault is something that the world saw and must never see.
type fault struct {
	of   intention
	why  string
	lost bool // what was asked for last is not there any more
}

func newWorld(t *trial) *world {
	return &world{t: t, receipts: map[string]*receipt{}, first: map[intention]string{}, modes: map[intention]Fault{}, stopped: map[semel.ID]bool{}}
}

// send is one request.
func (w *world) send(p *process, s *semel.Send, f Fault) semel.Event {
	if err := s.Begin(); err != nil {
		w.t.tell("%s does not send %s: %v", p.name, w.t.place(s.Operation), err)
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	w.t.tell("%s sends %s, attempt %d", p.name, w.t.place(s.Operation), s.Attempt)
	w.watch(s)
	defer func() {
		if !p.dead.Load() {
			w.deliver(of(s.Operation))
		}
	}()
	o := *s.Operation
	switch w.mode(of(&o)) {
	case ResendRefused:
		w.t.tell("it is refused on its way")
		return semel.Event{Kind: semel.EvRefused, Reason: "403 Forbidden"}
	case WindowCreeps:
		f = WindowCreeps
	case RefusedLate:
		w.setMode(of(&o), "") // the late answer comes with this one
		f = AnswerLost
	default:
	}
	switch f {
	case RequestLost:
		w.t.tell("the request is lost")
		return lost(true)
	case Refused:
		if w.t.schedule.has(RefusalLies) {
			_ = w.land(s.Attempt, s.DestinationKey, &o, false)
		}
		w.t.tell("%s refuses it", o.Request.Connection)
		return semel.Event{Kind: semel.EvRefused, Reason: "declined"}
	case RefusedLate:
		w.t.tell("%s refuses it, and its answer takes longer than the timeout", o.Request.Connection)
		w.setMode(of(&o), f)
		w.postpone(p, s, semel.Event{Kind: semel.EvRefused, Reason: "declined"})
		return lost(false)
	case LandsLate, LookupStale:
		w.delay(s, w.t.now().Add(w.processing(&o.Contract)-time.Millisecond), f == LookupStale)
		return lost(true)
	case DiesLandsLate:
		sent := o.Attempts[s.Attempt-1].SendBy.Add(semel.DefaultWriteTimeout)
		if o.Contract.WriteTimeout > 0 {
			sent = sent.Add(o.Contract.WriteTimeout - semel.DefaultWriteTimeout)
		}
		w.delay(s, sent.Add(w.processing(&o.Contract)-time.Millisecond), true)
		p.die()
		return lost(false)
	default:
	}
	ev := w.land(s.Attempt, s.DestinationKey, &o, f == LookupBlind)
	return w.answer(p, s, f, ev)
}

// answer is what comes back of a request that reached its destination.
func (w *world) answer(p *process, s *semel.Send, f Fault, ev semel.Event) semel.Event {
	o := s.Operation
	switch f {
	case AnswerLost, LookupBlind:
		w.t.tell("the answer is lost")
		return lost(true)
	case ErrorAfter:
		w.t.tell("the answer is an error: 500")
		return semel.Event{Kind: semel.EvLost, Reason: "500 Internal Server Error", Closed: true}
	case AnswerLate:
		w.t.tell("the answer takes longer than the timeout")
		w.postpone(p, s, ev)
		return lost(false)
	case ResendRefused:
		w.t.tell("the answer is lost, and from now on every request is refused on its way")
		w.setMode(of(o), f)
		return lost(true)
	case WindowOver:
		w.t.tell("the answer is lost, and nobody works until the key is forgotten")
		w.t.pass(o.Contract.Window + time.Second)
		return lost(true)
	case WindowCreeps:
		w.t.tell("the answer is lost, and so is every other; a resend comes later each time")
		w.setMode(of(o), f)
		w.t.pass(o.Contract.Window * 3 / 5)
		return lost(true)
	case ChangedPayload:
		w.t.tell("the answer is lost; the code asks with another payload when it goes on")
		w.t.setChanged(o)
		p.die()
		return lost(false)
	case CancelDuring:
		w.t.cancel(false)
	case ApprovalEnds:
		w.t.tell("the answer is lost")
		w.t.revoke()
		return lost(true)
	case PersonWrong:
		w.t.tell("the answer is lost for now, and what comes instead only a person can judge")
		w.setMode(of(o), f)
		w.postpone(p, s, ev)
		return semel.Event{Kind: semel.EvLost, Reason: "the answer needs a person", Person: true}
	default:
	}
	return ev
}

// processing is the longest time between a request and its effect that the
// contract allows; where it declares none, a while.
func (w *world) processing(c *semel.Contract) time.Duration {
	switch {
	case w.t.schedule.has(TakesLonger):
		return 2*c.MaxProcessing + 2*c.VisibleAfter + 5*time.Minute
	case c.MaxProcessing > 0:
		return c.MaxProcessing
	case c.Timeout > 0:
		return c.Timeout
	}
	return 10 * time.Second
}

func lost(closed bool) semel.Event {
	return semel.Event{Kind: semel.EvLost, Reason: "no answer came within the timeout", Closed: closed}
}

// anotherRequest says that one intention was two requests.
const anotherRequest = "another request was sent under its key than before"

// watch looks at what arrives: one intention is one request, and nothing is
// sent that nobody allows.
func (w *world) watch(s *semel.Send) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, body := of(s.Operation), string(s.Operation.Request.Body)
	if was, ok := w.first[i]; ok && was != body {
		w.faults = append(w.faults, fault{of: i, why: anotherRequest})
	}
	w.first[i] = body
	if until := s.Operation.ApprovedUntil; !until.IsZero() && !w.t.now().Before(until) {
		w.faults = append(w.faults, fault{of: i, why: "it was sent after its approval had ended"})
	}
	if s.Operation.Incident != "" {
		w.faults = append(w.faults, fault{of: i, why: "it was sent although evidence contradicts its record, and no person had looked"})
	}
	if w.stopped[s.Operation.Run] && s.Operation.Run != (semel.ID{}) {
		w.faults = append(w.faults, fault{of: i, why: "it was claimed and sent after its run had been asked to stop"})
	}
	if w.revoked && s.Operation.Approval != (semel.ID{}) {
		w.faults = append(w.faults, fault{of: i, why: "it was sent after its approval had been revoked"})
	}
}

// blame takes note of something that must never be.
func (w *world) blame(f fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, f)
}

func (w *world) mode(i intention) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.modes[i]
}

func (w *world) setMode(i intention, f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.modes[i] = f
}

// delay lets a request arrive later.
func (w *world) delay(s *semel.Send, at time.Time, blind bool) {
	w.t.tell("the request is slow: it takes effect at the last moment that its contract allows")
	attempt, key, o := s.Attempt, s.DestinationKey, *s.Operation
	w.mu.Lock()
	defer w.mu.Unlock()
	w.landings = append(w.landings, landing{at, func(at time.Time) { _ = w.landAt(at, attempt, key, &o, blind) }})
}

// arrive lets what is under way until a time take effect, in its order.
func (w *world) arrive(now time.Time) {
	w.mu.Lock()
	var due []landing
	w.landings = slices.DeleteFunc(w.landings, func(l landing) bool {
		here := !l.at.After(now)
		if here {
			due = append(due, l)
		}
		return here
	})
	w.mu.Unlock()
	slices.SortStableFunc(due, func(a, b landing) int { return a.at.Compare(b.at) })
	for _, l := range due {
		l.act(l.at)
	}
}

// next is when something under way takes effect; zero for nothing.
func (w *world) next() (at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.landings {
		if at.IsZero() || l.at.Before(at) {
			at = l.at
		}
	}
	return at
}

func (w *world) postpone(p *process, s *semel.Send, ev semel.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, lateAnswer{p, of(s.Operation), w.t.place(s.Operation), ev, s.Late})
}

// deliver hands over late answers: those of one intention, or all.
func (w *world) deliver(only intention) {
	w.mu.Lock()
	var now []lateAnswer
	w.late = slices.DeleteFunc(w.late, func(l lateAnswer) bool {
		here := w.modes[l.of] != PersonWrong && w.modes[l.of] != RefusedLate && (only == (intention{}) || only == l.of)
		if here {
			now = append(now, l)
		}
		return here
	})
	w.mu.Unlock()
	for _, l := range now {
		l.hand()
	}
}

// hand gives the late answer to its worker.
func (l *lateAnswer) hand() {
	if l.p.dead.Load() || l.late == nil {
		return
	}
	l.p.t.tell("the late answer to %s comes to %s: %s", l.place, l.p.name, l.ev.Kind)
	if l.ev.Kind == semel.EvConfirmed {
		l.p.t.heardLate(l.of)
	}
	l.late(l.ev)
}

// land lets a request take effect, as its contract says.
func (w *world) land(attempt int, key string, o *semel.Operation, blind bool) semel.Event {
	return w.landAt(w.t.now(), attempt, key, o, blind)
}

func (w *world) landAt(now time.Time, attempt int, key string, o *semel.Operation, blind bool) semel.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &o.Contract
	known := w.receipts[o.Request.Connection+" "+key]
	switch {
	case known == nil || !enforces(c.Protection):
	case c.Protection == semel.Transactional && attempt <= known.barred && known.effect == nil:
		w.t.tell("it comes too late: a lookup has ruled it out")
		return semel.Event{Kind: semel.EvRefused, Reason: "ruled out by a lookup"}
	case known.effect == nil, c.Protection == semel.Keyed && !w.t.schedule.has(IgnoresKeys) && !now.Before(known.since.Add(w.window(c))):
	case known.effect.body != string(o.Request.Body):
		return semel.Event{Kind: semel.EvLost, Reason: "the key was used with another request", Incident: "the destination has seen this key with another request"}
	case c.Protection != semel.Keyed || !w.t.schedule.has(IgnoresKeys):
		w.t.tell("%s knows the key, and answers as before", o.Request.Connection)
		return semel.Event{Kind: semel.EvConfirmed, Result: known.effect.result}
	}
	e := &effect{
		intention: of(o), step: w.t.place(o), key: key, body: string(o.Request.Body), at: now, visible: now,
		subject: subject(o), lookup: lookup(o), commutes: c.Protection == semel.Commutes, repeats: c.Protection == semel.Commutes || c.Protection == semel.Absolute, result: w.t.d.result(w.t.place(o), o, len(w.effects)+1),
		run: o.Run,
	}
	if blind {
		e.visible = now.Add(c.VisibleAfter)
	}
	if w.t.schedule.has(SlowToShow) {
		e.visible = now.Add(2*c.VisibleAfter + time.Minute)
	}
	w.effects = append(w.effects, e)
	w.receipts[o.Request.Connection+" "+key] = &receipt{effect: e, since: now}
	w.t.tell("it happens: %s", e.step)
	return semel.Event{Kind: semel.EvConfirmed, Result: e.result}
}

// window is how long a destination knows a key.
func (w *world) window(c *semel.Contract) time.Duration {
	if w.t.schedule.has(HalfWindow) {
		return c.Window / 2
	}
	return c.Window
}

// enforces reports whether the destination knows its keys again.
func enforces(p semel.Protection) bool { return p == semel.Keyed || p == semel.Transactional }

// subject is what an absolute write sets, where that can be told.
func subject(o *semel.Operation) string {
	if o.Contract.Protection != semel.Absolute || o.Request.URL == "" {
		return ""
	}
	return o.Request.Connection + " " + o.Request.URL
}

// lookup is where an operation is looked up, with what is filled in; empty where
// that is not known.
func lookup(o *semel.Operation) string {
	url := o.Contract.LookupURL
	if url == "" {
		return ""
	}
	var body map[string]json.RawMessage
	_ = json.Unmarshal(o.Request.Body, &body) // another body has no members
	for name, value := range body {
		url = strings.ReplaceAll(url, "{body."+name+"}", string(value))
	}
	url = strings.NewReplacer("{key}", string(o.Key), "{destination_key}", o.DestinationKey()).Replace(url)
	return o.Request.Connection + " " + url
}

// look is a lookup of what became of an operation.
func (w *world) look(p *process, s *semel.Send) semel.Event {
	now := w.t.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	o := s.Operation
	for _, e := range w.effects {
		if now.Before(e.visible) || w.t.schedule.has(NeverShows) {
			continue
		}
		if same := e.intention == of(o); !same && e.lookup != "" && e.lookup == lookup(o) && e.body != string(o.Request.Body) {
			return semel.Event{Kind: semel.EvNoAnswer, Person: true, Reason: "the lookup found something else"}
		} else if same || e.lookup != "" && e.lookup == lookup(o) {
			w.t.tell("%s looks up %s: it is there", p.name, e.step)
			return semel.Event{Kind: semel.EvFound, Result: e.result}
		}
	}
	if o.Contract.Protection == semel.Transactional {
		name := o.Request.Connection + " " + s.DestinationKey
		if w.receipts[name] == nil {
			w.receipts[name] = &receipt{}
		}
		w.receipts[name].barred = max(w.receipts[name].barred, o.Attempt)
	}
	w.t.tell("%s looks up %s: not found", p.name, w.t.place(o))
	return semel.Event{Kind: semel.EvAbsent, Reason: "not found"}
}
