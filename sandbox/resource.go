package sandbox

// Resource is something the sandbox can create; each stands for one kind of
// provider.
type Resource string

// The resources, as they appear in the path and in JSON.
const (
	// Charges honours Idempotency-Key for [Options.Window].
	Charges Resource = "charges"
	// Transfers ignores keys and can be looked up by reference once
	// [Options.VisibleAfter] has passed.
	Transfers Resource = "transfers"
	// Messages knows neither keys nor lookup.
	Messages Resource = "messages"
)

// trait is what one resource looks like on the wire.
type trait struct {
	object string // the "object" field of an answer
	prefix string // of an id
	status string // the "status" field of a success
	code   int    // the HTTP status of a success
	amount bool   // whether an amount is required
}

func (r Resource) trait() (trait, bool) {
	switch r {
	case Charges:
		return trait{object: "charge", prefix: "ch_", status: "succeeded", code: 201, amount: true}, true
	case Transfers:
		return trait{object: "transfer", prefix: "tr_", status: "paid", code: 201, amount: true}, true
	case Messages:
		return trait{object: "message", prefix: "msg_", status: "sent", code: 200}, true
	default:
		return trait{}, false
	}
}
