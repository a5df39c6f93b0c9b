package probe

import (
	"strings"
	"time"

	httpdest "github.com/semel-dev/semel/destination/http"
)

// Observation is what a probe saw of one question.
type Observation struct {
	Question Question `json:"question"`
	Finding  Finding  `json:"finding"`
	// Words say it for people, with the reason where it is unknown or was not
	// tested.
	Words string `json:"words"`
	// Conflict is the answer by which a request was refused.
	Conflict *Conflict `json:"conflict,omitempty"`
	// Marker is the header that marked an answer from memory.
	Marker *Marker `json:"marker,omitempty"`
	// Waited is how long after the first request a key was seen to hold, or to be
	// forgotten.
	Waited Duration `json:"waited,omitzero"`
	// FoundAfter is when a lookup found the effect, counted from the request's
	// first byte, and MissedAt when one last missed it, counted from the answer.
	FoundAfter Duration `json:"found_after,omitzero"`
	MissedAt   Duration `json:"missed_at,omitzero"`
	// Exchanges are the requests and answers behind it.
	Exchanges []Exchange `json:"exchanges,omitempty"`
}

// Conflict is an answer that refuses a request because of its key.
type Conflict struct {
	Status int `json:"status"`
	// At and Code are where the body names the reason, and the name.
	At   string `json:"at,omitempty"`
	Code string `json:"code,omitempty"`
	// Read is what the declared profile makes of it.
	Read httpdest.Meaning `json:"read"`
}

// Marker is a header by which a destination tells that it answers from memory.
type Marker struct {
	Header string `json:"header"`
	Is     string `json:"is"`
}

// Exchange is one request and what came back. Secrets in it are replaced.
type Exchange struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	URL    string    `json:"url"`
	// Key is the key's header as it was sent, empty without a key.
	Key  string `json:"key,omitempty"`
	Body string `json:"body,omitempty"`
	// Took is the time from the first byte to the end of the answer.
	Took Duration `json:"took"`
	// Status is that of the answer, 0 where none came.
	Status int `json:"status"`
	// Answer is the beginning of its body.
	Answer string `json:"answer,omitempty"`
	// Reference is the effect that it names.
	Reference string `json:"reference,omitempty"`
	// Marked is the replay marker that it bears.
	Marked string `json:"marked,omitempty"`
	// Read is what the declared profile makes of it.
	Read httpdest.Meaning `json:"read,omitempty"`
	// Says is what Semel would record of it, in words.
	Says string `json:"says"`
	// Unsent says that nothing left.
	Unsent bool `json:"unsent,omitempty"`

	lookup bool
	begun  time.Time // the first byte
	header map[string][]string
	whole  string // the body as far as it was kept
	cut    bool   // it is not all
	fresh  bool   // its key was not used before
	learnt bool   // no one but this probe takes Marked for a marker
}

// Duration is a time.Duration that is written with its unit.
type Duration time.Duration

// String is the duration without needless zeros, and not finer than a
// millisecond unless it is shorter.
func (d Duration) String() string {
	unit := time.Millisecond
	if time.Duration(d) < unit {
		unit = time.Microsecond
	}
	text := time.Duration(d).Round(unit).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText is String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// tells is how far an answer speaks of the effect.
type tells int

const (
	silent  tells = iota // no answer, or one that does not tell
	made                 // it happened
	refused              // this request was refused
)

// tells reads the status: only the destination's clear word counts. An error in
// an answer of success is one if the profile knows it. 409 and 423 refuse a
// request under a key that is in use; under a key that nobody used, they tell
// nothing.
func (e *Exchange) tells() tells {
	refuses := e.Read == httpdest.MeansRefused || e.Read == httpdest.MeansRetained
	switch s := e.Status; {
	case s == 408, s == 425:
		return silent
	case e.fresh && !refuses && (s == 409 || s == 423):
		return silent
	case e.Read == httpdest.MeansRunning, e.Read == httpdest.MeansMismatch, refuses && s < 300:
		return refused
	case s >= 200 && s < 300:
		return made
	case s == 429:
		return silent
	case s >= 400 && s < 500:
		return refused
	}
	return silent
}
