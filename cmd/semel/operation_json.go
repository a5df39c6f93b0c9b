package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/semel-dev/semel"
)

// operationJSON is an operation as a program reads it. Its first members are
// promised to scripts.
type operationJSON struct {
	Operation      string      `json:"operation"`
	Scope          string      `json:"scope"`
	Key            string      `json:"key"`
	DestinationKey string      `json:"destination_key"`
	State          semel.State `json:"state"`
	Attempt        int         `json:"attempt"`
	Replayed       bool        `json:"replayed"`
	Result         *resultJSON `json:"result"`
	Reason         string      `json:"reason"`
	Next           nextJSON    `json:"next"`

	// Status is State, or why this request was refused.
	Status      semel.Status `json:"status,omitempty"`
	Differs     []string     `json:"differs,omitempty"`
	Incident    string       `json:"incident,omitempty"`
	Warnings    []string     `json:"warnings,omitempty"`
	NeedsPerson bool         `json:"needs_person"`
	Joined      int          `json:"joined"`
	Version     int          `json:"version"`
	CreatedAt   *time.Time   `json:"created_at"`
	UpdatedAt   *time.Time   `json:"updated_at"`
	LeaseUntil  *time.Time   `json:"lease_until,omitempty"`
}

// nextJSON is what happens next, and why.
type nextJSON struct {
	Move     semel.MoveKind `json:"move"`
	At       *time.Time     `json:"at,omitempty"`
	Reason   string         `json:"reason"`
	Headline string         `json:"headline"`
	Needs    []string       `json:"needs_headers,omitempty"` // never stored: only a caller who gives them can send
}

// resultJSON is what the destination answered. JSON bodies appear as they
// came, other text as a string, bytes as base64.
type resultJSON struct {
	Reference string          `json:"reference,omitempty"`
	Status    int             `json:"status"`
	MediaType string          `json:"media_type,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
	Encoding  string          `json:"body_encoding,omitempty"` // base64, or absent
	Truncated bool            `json:"truncated,omitempty"`
	Size      int64           `json:"size,omitempty"`
	SHA256    string          `json:"sha256,omitempty"`
}

// describe makes the JSON form of an operation as of now.
func (sh *shell) describe(o *semel.Operation, m semel.Move, now time.Time) operationJSON {
	out := operationJSON{
		Operation: o.ID.String(), Scope: string(o.Scope), Key: string(o.Key), DestinationKey: o.DestinationKey(),
		State: o.StateAt(now), Attempt: o.Attempt, Result: describeResult(o.Result, o.Request.Kind == commandKind), Reason: reasonAt(o, now),
		Next:     nextJSON{Move: m.Kind, At: instant(m.At), Reason: m.Reason, Headline: sh.advise(o, m, now).headline},
		Incident: o.Incident, NeedsPerson: needsPerson(o, now), Joined: o.Joined, Version: o.Version,
		CreatedAt: instant(o.CreatedAt), UpdatedAt: instant(o.UpdatedAt),
	}
	if m.Caller || m.Kind == semel.MoveSend {
		out.Next.Needs = o.Request.Withheld
	}
	if out.State == semel.InProgress {
		out.LeaseUntil = instant(o.LeaseUntil)
	}
	return out
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func describeResult(r *semel.Result, printed bool) *resultJSON {
	if r == nil {
		return nil
	}
	out := &resultJSON{Reference: r.Reference, Status: r.Status, MediaType: r.MediaType, Truncated: r.Truncated(), Size: r.Size, SHA256: r.SHA256}
	out.Body, out.Encoding = embed(r.Body, printed)
	return out
}

// embed puts bytes into JSON without changing them: JSON as it is, to the last
// digit; other text as a string; the rest as base64. What a program printed is
// JSON only if it is an object or an array: 42 is a line of text.
func embed(body []byte, printed bool) (value json.RawMessage, encoding string) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
		return nil, ""
	case !utf8.Valid(body):
		return encode(base64.StdEncoding.EncodeToString(body)), "base64"
	case json.Valid(trimmed) && (!printed || trimmed[0] == '{' || trimmed[0] == '['):
		return trimmed, ""
	}
	return encode(string(body)), ""
}

// encode is v as JSON on one line, for a reader that is no browser.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only our own types come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// print writes one JSON object, or says that it could not.
func (sh *shell) print(v any) error { return sh.write(append(encode(v), '\n')) }
