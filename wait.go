package semel

import (
	"encoding/json"
	"fmt"
	"time"
)

// Sleep waits for d, which a restart does not shorten or lengthen. The name
// tells this wait from others of the run.
func Sleep(ctx Context, name string, d time.Duration) error {
	if d < 0 || d > MaxSleep {
		return &InputError{Field: "sleep " + name, Problem: fmt.Sprintf("is %v", d), Hint: "give a duration from 0 to 100 years"}
	}
	_, err := ctx.step(name, &SleepStep{For: d})
	return err
}

// SleepUntil waits until t by the store's clock; a past time is over at once.
func SleepUntil(ctx Context, name string, t time.Time) error {
	_, err := ctx.step(name, &SleepStep{Until: t.UTC()})
	return err
}

// Wait waits for an event with this name whose match is the given one, for at
// most timeout; 0 waits for ever. An event that arrived before the wait counts,
// for as long as the store keeps it. Each event serves one wait of a workflow.
// ErrTimedOut: none came in time.
func Wait[T any](ctx Context, event, match string, timeout time.Duration) (T, error) {
	var out T
	if timeout < 0 || timeout > MaxSleep {
		return out, &InputError{Field: "timeout of " + event, Problem: fmt.Sprintf("is %v", timeout), Hint: "give a duration up to 100 years, or 0 to wait for ever"}
	}
	rec, err := ctx.step(event, &EventStep{Name: event, Match: match, Timeout: timeout})
	if err != nil {
		return out, err
	}
	if rec.Outcome == StepTimedOut {
		return out, fmt.Errorf("event %s %q: %w", event, match, ErrTimedOut)
	}
	var got InboxEvent
	if err := json.Unmarshal(rec.Result, &got); err != nil {
		return out, &UnreadableError{Path: rec.Path, Err: err}
	}
	if len(got.Data) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(got.Data, &out); err != nil {
		return out, &UnreadableError{Path: rec.Path, Err: err}
	}
	return out, nil
}

// InboxEvent is something that happened elsewhere and that runs wait for or
// start with.
type InboxEvent struct {
	// ID tells the event from others of its name: sending it twice is one
	// event.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Match says what it is about, for example an order number. A wait gets
	// only events with its own match.
	Match string          `json:"match,omitzero"`
	Data  json.RawMessage `json:"data,omitzero"`
	By    string          `json:"by,omitzero"`
	At    time.Time       `json:"at"` // by the store's clock
}

// Validate reports what is wrong with the event.
func (e *InboxEvent) Validate() error {
	if err := ValidateStepName(e.Name); err != nil {
		return &InputError{Field: "event", Problem: "has no usable name: " + err.Error(), Hint: "use letters, digits, dots and dashes"}
	}
	if err := validName("event id", e.ID); err != nil {
		return err
	}
	if e.Match != "" {
		if err := validName("match", e.Match); err != nil {
			return err
		}
	}
	if len(e.Data) > MaxInput {
		return &InputError{Field: "data", Problem: fmt.Sprintf("has %d bytes, the limit is %d", len(e.Data), MaxInput), Hint: "pass a reference to the data"}
	}
	if len(e.Data) > 0 {
		r := Request{Kind: "event", Body: e.Data, MediaType: "application/json"}
		if _, err := r.Fingerprint(); err != nil {
			return err
		}
	}
	return nil
}
