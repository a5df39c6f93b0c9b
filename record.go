package semel

import (
	"encoding/json"
	"fmt"
	"time"
)

// Record is an operation in the form in which a store keeps it.
type Record struct {
	ID          ID
	Scope       Scope
	Key         Key
	Fingerprint []byte
	Request     []byte // JSON, without the body
	Body        []byte
	Contract    []byte // JSON
	Run         ID
	Step        string
	LeaseUntil  time.Time
	Events      []StoredEvent // all of them, in order
}

// StoredEvent is one event in the form in which a store keeps it.
type StoredEvent struct {
	At   time.Time
	Data []byte // JSON
}

// Record returns the immutable part of the operation for a store.
func (id Identity) Record() (Record, error) {
	req, err := json.Marshal(&id.Request)
	if err != nil {
		return Record{}, fmt.Errorf("encode request: %w", err)
	}
	con, err := json.Marshal(&id.Contract)
	if err != nil {
		return Record{}, fmt.Errorf("encode contract: %w", err)
	}
	return Record{ID: id.ID, Scope: id.Scope, Key: id.Key, Fingerprint: id.Fingerprint[:], Request: req, Body: id.Request.Body, Contract: con, Run: id.Run, Step: id.Step}, nil
}

// Encode returns the event for a store; its time is the store's own.
func (ev Event) Encode() ([]byte, error) {
	b, err := json.Marshal(ev)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return b, nil
}

// Operation rebuilds the operation from its record.
func (r Record) Operation() (Operation, error) {
	id := Identity{ID: r.ID, Scope: r.Scope, Key: r.Key, Run: r.Run, Step: r.Step}
	if len(r.Fingerprint) != len(id.Fingerprint) {
		return Operation{}, fmt.Errorf("operation %s: fingerprint of %d bytes", r.ID, len(r.Fingerprint))
	}
	copy(id.Fingerprint[:], r.Fingerprint)
	if err := json.Unmarshal(r.Request, &id.Request); err != nil {
		return Operation{}, fmt.Errorf("operation %s: read request: %w", r.ID, err)
	}
	if err := json.Unmarshal(r.Contract, &id.Contract); err != nil {
		return Operation{}, fmt.Errorf("operation %s: read contract: %w", r.ID, err)
	}
	id.Request.Body = r.Body
	events, err := r.History()
	if err != nil {
		return Operation{}, err
	}
	o, err := Replay(id, events)
	if err != nil {
		return Operation{}, fmt.Errorf("operation %s: %w", r.ID, err)
	}
	if o.State == InProgress && r.LeaseUntil.After(o.LeaseUntil) {
		o.LeaseUntil = r.LeaseUntil // renewed
	}
	return o, nil
}

// History decodes the events.
func (r Record) History() ([]Event, error) {
	events := make([]Event, len(r.Events))
	for i, s := range r.Events {
		if err := json.Unmarshal(s.Data, &events[i]); err != nil {
			return nil, fmt.Errorf("operation %s: read event %d: %w", r.ID, i+1, err)
		}
		events[i].At = s.At.UTC()
	}
	return events, nil
}
