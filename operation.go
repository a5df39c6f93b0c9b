package semel

import "time"

// Operation is one intended effect and all that is known about it. It is a
// value: Apply returns a new one. The zero Operation is one nobody claimed.
type Operation struct {
	Identity
	State      State
	Version    int // events applied; the store compares it
	Attempt    int // the current attempt: the fence
	Generation int // of the destination key
	// KeySince is when the first claim that could send the current destination
	// key was committed: the start of the destination's window.
	KeySince   time.Time
	CreatedAt  time.Time
	UpdatedAt  time.Time
	LeaseUntil time.Time // of the current attempt
	CheckAt    time.Time // the next automatic look or resend; zero for none
	Attempts   []Attempt
	Result     *Result // when completed
	Reason     string  // why it failed, is unknown or needs a person
	Incident   string  // what contradicts the outcome; blocks claim and resend
	Cancel     bool    // somebody asked to stop it
	Cancelled  bool    // stopped before sending; only a person may start it again
	Looks      int     // lookups since the last attempt
	Absent     bool    // failed, because a lookup proved that nothing had happened
	Person     bool    // only a person can settle it
	Joined     int     // requests that this operation absorbed
	Expired    bool    // body and result were dropped when retention ended
	// Approval is what allowed the current attempt, ApprovedUntil its end, and
	// Unapproved says that it was taken back: nothing is sent again then.
	Approval      ID
	ApprovedUntil time.Time
	Unapproved    bool

	nextKey   bool      // the next claim starts a new generation
	winner    int       // the attempt whose confirmation completed it, 0 for other evidence
	notBefore time.Time // when the destination asked to be asked again
	triedAt   time.Time // the last evidence about an attempt or a lookup: a pause begins here
	lookedAt  time.Time // when the last lookup since the last claim was sent
}

// Identity is the part of an operation that never changes.
type Identity struct {
	ID          ID
	Scope       Scope
	Key         Key
	Fingerprint Fingerprint
	Request     Request
	Contract    Contract
	// Run and Step say which run claimed it first; zero for none.
	Run  ID
	Step string
}

// Attempt is one try at an operation.
type Attempt struct {
	Number int
	Token  ID
	By     string
	// Generation is that of the destination key it sends.
	Generation int
	ClaimedAt  time.Time
	// SendBy is when the first byte had to have left, by the store's clock.
	SendBy time.Time
	// ClosedAt is when the attempt's own worker recorded that its connection
	// is closed; zero if nobody did.
	ClosedAt time.Time
	// Open: it may have sent and is not proven to be without effect.
	Open bool
	// Unsent: it ended before it tried to send.
	Unsent bool
	// Outcome is the last event about it: claimed, confirmed, refused, lost ...
	Outcome EventKind
	Reason  string
}

// DestinationKey is the key that the current or next attempt sends.
func (o *Operation) DestinationKey() string {
	g := o.Generation
	if o.nextKey && o.State != InProgress {
		g++
	}
	return DestinationKey(o.Scope, o.Key, g)
}

// StateAt is the state as of now: an in-progress operation whose lease has
// lapsed is unknown, whether or not a worker has written so.
func (o *Operation) StateAt(now time.Time) State {
	if o.State == InProgress && !now.Before(o.LeaseUntil) {
		return Unknown
	}
	return o.State
}

// ProofAt is the first moment at which "not found" can prove that nothing
// happened: over all open attempts, the last moment its bytes could leave, plus
// the longest processing, the visibility delay and the skew. ok is false when
// the contract never lets absence prove anything. A contract with a Check lets
// that program's word be proof as soon as the attempt's own worker has recorded
// that the program it started is gone.
func (o *Operation) ProofAt(c Contract) (at time.Time, ok bool) {
	if c.Check != "" {
		return o.checkedAt(c)
	}
	if !c.AbsenceIsProof || c.MaxProcessing == 0 {
		return time.Time{}, false
	}
	for _, a := range o.Attempts {
		if !a.Open {
			continue
		}
		sent := a.ClosedAt
		if sent.IsZero() {
			sent = a.SendBy.Add(c.writeTimeout())
		}
		if sent.After(at) {
			at = sent
		}
	}
	return at.Add(c.MaxProcessing).Add(c.VisibleAfter).Add(c.skew()), true
}

// checkedAt is ProofAt for a program that is asked by a Check: MaxProcessing
// counts from its start, and is needed only where nobody saw it end.
func (o *Operation) checkedAt(c Contract) (at time.Time, ok bool) {
	for _, a := range o.Attempts {
		if !a.Open {
			continue
		}
		over := a.ClosedAt
		if c.MaxProcessing > 0 {
			over = later(over, a.SendBy.Add(c.MaxProcessing).Add(c.skew()))
		}
		if over.IsZero() {
			return time.Time{}, false
		}
		at = later(at, over)
	}
	return at.Add(c.VisibleAfter), true
}

// WindowEnd is when Semel stops resending the current destination key.
func (o *Operation) WindowEnd(c Contract) time.Time {
	return o.KeySince.Add(c.Window).Add(-c.Margin()).Add(-c.processing())
}

// Replay rebuilds an operation from its identity and all of its events, in
// order. It fails when the events cannot have happened.
func Replay(id Identity, events []Event) (Operation, error) {
	o := Operation{Identity: id}
	for _, ev := range events {
		next, err := o.Apply(ev)
		if err != nil {
			return Operation{}, err
		}
		o = next
	}
	return o, nil
}

// generation is that of the key which the attempt sends; evidence about no
// attempt speaks of the current key.
func (o *Operation) generation(attempt int) int {
	if !o.has(attempt) {
		return o.Generation
	}
	return o.Attempts[attempt-1].Generation
}

func (o *Operation) openBesides(number int) bool {
	for _, a := range o.Attempts {
		if a.Open && a.Number != number {
			return true
		}
	}
	return false
}
