package drill

import "github.com/semel-dev/semel"

// Fault is one thing that a drill breaks.
type Fault string

// The faults. Each is tried at every call of a port that it fits.
const (
	DiesBefore      Fault = "dies-before"
	DiesAfter       Fault = "dies-after"
	StoreLost       Fault = "store-lost"
	AckLost         Fault = "ack-lost"
	CommitLost      Fault = "commit-lost"
	LeaseLapses     Fault = "lease-lapses"
	Frozen          Fault = "frozen"
	SecondTrigger   Fault = "second-trigger"
	SecondRun       Fault = "second-run"
	SlowCode        Fault = "slow-code"
	ClockAhead      Fault = "clock-ahead"
	ClockBack       Fault = "clock-back"
	RequestLost     Fault = "request-lost"
	AnswerLost      Fault = "answer-lost"
	AnswerLate      Fault = "answer-late"
	ErrorAfter      Fault = "error-after"
	Refused         Fault = "refused"
	RefusedLate     Fault = "refused-late"
	ResendRefused   Fault = "resend-refused"
	LandsLate       Fault = "lands-late"
	DiesLandsLate   Fault = "dies-lands-late"
	LookupBlind     Fault = "lookup-blind"
	LookupStale     Fault = "lookup-stale"
	WindowOver      Fault = "window-over"
	WindowCreeps    Fault = "window-creeps"
	ChangedPayload  Fault = "changed-payload"
	RecordExpired   Fault = "record-expired"
	EventEarly      Fault = "event-early"
	CancelBefore    Fault = "cancel-before"
	CancelDuring    Fault = "cancel-during"
	ApprovalRevoked Fault = "approval-revoked"
	ApprovalEnds    Fault = "approval-ends"
	PersonWrong     Fault = "person-wrong"
)

// The promises of a contract, each broken together with another fault.
const (
	IgnoresKeys Fault = "ignores-keys"
	HalfWindow  Fault = "half-window"
	SlowToShow  Fault = "slow-to-show"
	NeverShows  Fault = "never-shows"
	TakesLonger Fault = "takes-longer"
	RefusalLies Fault = "refusal-lies"
)

// promises are what a contract can get wrong, and the fault that shows it.
var promises = []promise{
	{kind{IgnoresKeys, "it does not know keys again", nil}, []Fault{AnswerLost, LandsLate, ErrorAfter, DiesAfter}, protects(semel.Keyed)},
	{kind{HalfWindow, "it forgets keys in half the time", nil}, []Fault{WindowCreeps}, protects(semel.Keyed)},
	{kind{SlowToShow, "a lookup sees an effect later than declared", nil}, []Fault{AnswerLost, DiesAfter}, looksUp},
	{kind{NeverShows, "a lookup never sees an effect", nil}, []Fault{AnswerLost, DiesAfter}, looksUp},
	{kind{TakesLonger, "an effect comes later than declared", nil}, []Fault{LandsLate, DiesLandsLate}, func(c *call) bool { return sends(c) && c.contract.MaxProcessing > 0 }},
	{kind{RefusalLies, "a refusal had an effect all the same", nil}, []Fault{Refused}, ofClaimed},
}

// promise is one that a drill breaks on demand, beside faults that need it.
type promise struct {
	kind
	with  []Fault
	given func(c *call) bool // at calls under a contract that gives it
}

// kind says what a fault is in words, and where it can be placed.
type kind struct {
	fault Fault
	words string
	fits  func(c *call) bool
}

func sends(c *call) bool   { return c.port == "Send" }
func ofStore(c *call) bool { return c.port != "Send" && c.port != "Look" && c.port != codePort }
func writes(c *call) bool  { return c.writes }
func claims(c *call) bool  { return c.claims }
func looksUp(c *call) bool {
	return sends(c) && c.contract.CanLookUp || sends(c) && c.contract.LookupURL != ""
}
func claimsOrSends(c *call) bool { return c.claims || sends(c) }
func portCall(c *call) bool      { return c.port != codePort }
func protects(p semel.Protection) func(*call) bool {
	return func(c *call) bool { return sends(c) && c.contract.Protection == p }
}

func resent(c *call) bool {
	return sends(c) && (c.contract.Protection == semel.Keyed || c.contract.Protection == semel.Absolute)
}
func ofClaimed(c *call) bool { return sends(c) && c.contract.Protection != semel.Commutes }

// kinds are all faults, in the order of the table.
var kinds = []kind{
	{DiesBefore, "worker dies before a call", portCall},
	{DiesAfter, "worker dies after a call", portCall},
	{StoreLost, "store away, nothing written", ofStore},
	{AckLost, "store away, though it wrote", writes},
	{CommitLost, "store away, commit in doubt, not written", writes},
	{LeaseLapses, "two workers, one lease lapsed", portCall},
	{Frozen, "worker frozen beyond its time to send", sends},
	{SlowCode, "slow code after an answer", func(c *call) bool { return c.port == codePort }},
	{SecondTrigger, "triggered twice at once", claimsOrSends},
	{SecondRun, "same work in a second run", ofClaimed},
	{RequestLost, "request lost", sends},
	{AnswerLost, "answer lost", sends},
	{AnswerLate, "answer after the timeout", sends},
	{ErrorAfter, "500 after the effect", sends},
	{Refused, "refused", sends},
	{RefusedLate, "refused late, resend's answer lost", resent},
	{ResendRefused, "answer lost, resend refused", sends},
	{LandsLate, "request takes effect late", sends},
	{DiesLandsLate, "worker dies, request takes effect late", sends},
	{LookupBlind, "lookup cannot see it yet", looksUp},
	{LookupStale, "lookup sees stale data, effect is late", looksUp},
	{WindowOver, "window ends during recovery", protects(semel.Keyed)},
	{WindowCreeps, "every answer lost, past the window", protects(semel.Keyed)},
	{ChangedPayload, "other payload under the same key", ofClaimed},
	{RecordExpired, "asked again after records expired", nil},
	{EventEarly, "event before the wait", nil},
	{CancelBefore, "cancelled before a claim", claims},
	{CancelDuring, "cancelled during the effect", sends},
	{ApprovalRevoked, "approval revoked before a claim", func(c *call) bool { return c.claims && c.approved }},
	{ApprovalEnds, "approval ends before a resend", func(c *call) bool { return sends(c) && c.approved }},
	{PersonWrong, "person says no, late answer says yes", ofClaimed},
	{ClockAhead, "worker's clock steps an hour ahead", claimsOrSends},
	{ClockBack, "worker's clock steps an hour back", claimsOrSends},
}

func kindOf(f Fault) (kind, bool) {
	for _, k := range kinds {
		if k.fault == f {
			return k, true
		}
	}
	for _, p := range promises {
		if p.fault == f {
			return p.kind, true
		}
	}
	return kind{}, false
}
