package semel

// Evidence is an event that could not reach the store yet. A spool keeps it
// until it can.
type Evidence struct {
	ID    ID    `json:"operation"`
	Scope Scope `json:"scope"`
	Key   Key   `json:"key"`
	// Token is that of the attempt the event speaks of: evidence about a claim
	// that never reached the store finds no attempt and is dropped.
	Token ID    `json:"token"`
	Event Event `json:"event"`
}
