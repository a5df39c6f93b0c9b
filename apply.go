package semel

import (
	"slices"
	"time"
)

// Apply returns the operation as it is after ev. It is the only way in which
// an operation changes: it looks ev up in the state table and fails with
// *TransitionError, changing nothing, where the table has no row. ev.At must
// be the store's time.
func (o Operation) Apply(ev Event) (Operation, error) {
	row, ok := o.row(&ev)
	if !ok {
		return o, &TransitionError{State: o.State, Event: ev.Kind, Reason: "the state table has no such transition"}
	}
	if ev.Attempt != 0 && ev.Kind != EvClaimed && !o.has(ev.Attempt) {
		return o, &TransitionError{State: o.State, Event: ev.Kind, Reason: "there was no such attempt"}
	}
	if ev.Kind == EvClaimed && ev.Attempt != o.Attempt+1 {
		return o, &TransitionError{State: o.State, Event: ev.Kind, Reason: "the attempt number is not the next one"}
	}
	before := o.State
	o.Attempts = slices.Clone(o.Attempts)
	o.State = row.To
	o.Version++
	o.UpdatedAt = ev.At
	o.record(&ev, before)
	row.mark.raise(&o, &ev)
	o.CheckAt = o.due(ev.At)
	return o, nil
}

func (o *Operation) row(ev *Event) (*Transition, bool) {
	for i := range transitions {
		if t := &transitions[i]; t.From == o.State && t.On == ev.Kind && t.test.holds(o, ev) {
			return t, true
		}
	}
	return nil, false
}

// record takes over what the event says; the state is already the new one.
func (o *Operation) record(ev *Event, before State) {
	if o.State != before {
		o.Reason = ev.Reason
	}
	switch ev.Kind {
	case EvClaimed:
		o.claim(ev, before)
	case EvConfirmed:
		o.close(ev)
		o.complete(ev, before, ev.Attempt)
		if a := o.attempt(ev); a != nil {
			a.Open = o.State == Unknown // it acted, and nobody knows yet what that means
		}
	case EvFound:
		o.look(ev)
		o.complete(ev, before, 0)
	case EvHappened:
		o.complete(ev, before, 0)
	case EvRefused, EvCancelled:
		o.close(ev)
		o.Cancelled = o.Cancelled || ev.Kind == EvCancelled && o.State == Failed && before != Failed
		o.reason(ev)
	case EvRetained:
		for i := range o.Attempts {
			same := o.Attempts[i].Generation == o.generation(ev.Attempt)
			if same && o.Attempts[i].Number <= ev.Attempt || o.State == Failed {
				o.Attempts[i].Open = false
			}
		}
		o.close(ev)
		o.nextKey = o.State == Failed && (o.nextKey || o.currentKey(ev))
		o.reason(ev)
	case EvLost:
		o.lose(ev, before)
	case EvLapsed:
		// the row says it all
	case EvAbsent, EvNoAnswer:
		o.look(ev)
		o.Person = o.Person || ev.Person && o.State == Unknown
		if o.State == Failed && before == Unknown {
			o.closeAll()
			o.Absent = true
		}
		o.reason(ev)
	case EvDidNotHappen:
		o.closeAll()
		o.nextKey = ev.NewKey
		o.Person = false
	case EvIncident:
		o.correct(ev)
	case EvCancelAsked:
		o.Cancel = o.Cancel || o.State == InProgress || o.State == Unknown
	case EvJoined:
		o.Joined++
	case EvExpired:
		o.Expired, o.Request.Body, o.Result = true, nil, nil
	case EvContradiction:
		// the incident is raised by the row's mark
	}
	if ev.Kind != EvJoined && ev.Kind != EvCancelAsked {
		o.triedAt = ev.At
	}
	if o.State != Failed {
		o.nextKey = false // a new key is only for what is known to have had no effect
	}
	if o.State == Unknown && (before == Failed || before == Completed || ev.Kind == EvIncident) {
		o.openAll() // what closed them is in doubt
	}
}

func (o *Operation) claim(ev *Event, before State) {
	if o.Attempt == 0 {
		o.CreatedAt = ev.At
	}
	if o.nextKey {
		o.Generation, o.nextKey, o.KeySince = o.Generation+1, false, time.Time{}
	}
	if o.KeySince.IsZero() {
		o.KeySince = ev.At
	}
	o.Attempt = ev.Attempt
	o.LeaseUntil = ev.At.Add(ev.Lease)
	sendBy := ev.At.Add(min(ev.SendWithin, ev.Lease))
	if o.Contract.Protection == Keyed && before == Unknown && o.WindowEnd(o.Contract).Before(sendBy) {
		sendBy = o.WindowEnd(o.Contract) // a resend; after a failure there is nothing to recognise
	}
	if until := ev.ApprovedUntil; !until.IsZero() && until.Before(sendBy) {
		sendBy = until
	}
	o.Approval, o.ApprovedUntil, o.Unapproved = ev.Approval, ev.ApprovedUntil, false
	token := ev.Token
	if token == (ID{}) {
		token = o.ID
	}
	o.Attempts = append(o.Attempts, Attempt{Number: ev.Attempt, Token: token, By: ev.By, Generation: o.Generation, ClaimedAt: ev.At, SendBy: sendBy, Open: true, Outcome: EvClaimed})
	o.Reason, o.Person, o.Cancel, o.Cancelled, o.Absent = "", false, false, false, false
	o.Looks, o.lookedAt, o.notBefore = 0, time.Time{}, time.Time{}
}

func (o *Operation) look(ev *Event) {
	o.Looks++
	o.lookedAt = later(o.lookedAt, ev.AskedAt)
}

// attempt returns the attempt that ev speaks of, or nil.
func (o *Operation) attempt(ev *Event) *Attempt {
	if !o.has(ev.Attempt) {
		return nil
	}
	return &o.Attempts[ev.Attempt-1]
}

func (o *Operation) close(ev *Event) {
	if a := o.attempt(ev); a != nil {
		a.Open, a.Outcome, a.Reason = false, ev.Kind, ev.Reason
		a.Unsent = a.Unsent || ev.Unsent
	}
}

func (o *Operation) closeAll() {
	for i := range o.Attempts {
		o.Attempts[i].Open = false
	}
}

func (o *Operation) openAll() {
	for i := range o.Attempts {
		o.Attempts[i].Open = true
	}
}

func (o *Operation) complete(ev *Event, before State, winner int) {
	if o.State != Completed || before == Completed {
		return
	}
	o.winner, o.Reason, o.Person = winner, "", false
	o.Result = ev.result()
}

func (o *Operation) lose(ev *Event, before State) {
	if a := o.attempt(ev); a != nil {
		if a.Outcome == EvClaimed {
			a.Outcome, a.Reason = EvLost, ev.Reason
		}
		if ev.Closed && a.ClosedAt.IsZero() {
			a.ClosedAt = ev.At
		}
	}
	if before == Completed || before == Failed {
		return
	}
	o.reason(ev)
	o.Person = o.Person || ev.Person
	o.Unapproved = o.Unapproved || ev.Unapproved
	if ev.CheckAfter > 0 {
		o.notBefore = ev.At.Add(ev.CheckAfter)
	}
}

// reason keeps the latest words about an outcome that stays unknown.
func (o *Operation) reason(ev *Event) {
	if ev.Reason != "" && o.State == Unknown {
		o.Reason = ev.Reason
	}
}

func (o *Operation) correct(ev *Event) {
	o.Incident, o.Person, o.Reason = "", false, ev.Reason
	switch ev.Correction {
	case Failed:
		o.closeAll()
		o.Result, o.nextKey = nil, ev.NewKey
	case Completed:
		if ev.Result != nil || o.Result == nil {
			o.Result = ev.result() // proof that it stands never replaces the recorded answer
		}
	case Unknown:
		o.Result, o.Person = nil, true
	case InProgress:
		// not a correction: the table has no row for it
	}
}

// due is when recovery should look at the operation by itself, zero for never.
func (o *Operation) due(now time.Time) time.Time {
	if o.State != Unknown {
		return time.Time{}
	}
	m := Decide(o, o.Contract, now)
	if (m.Kind == MoveResend || m.Kind == MoveLookup) && !m.Caller {
		return m.At
	}
	return time.Time{}
}
