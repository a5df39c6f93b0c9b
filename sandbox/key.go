package sandbox

import (
	"net/http"
	"strings"
	"time"
)

// keyLimit is the longest key, in bytes.
const keyLimit = 255

// binding is what one key stands for.
type binding struct {
	Key       string    `json:"key"`
	FirstSeen time.Time `json:"first_seen"`
	Identity  string    `json:"identity"` // of the request that saw it first
	// Answer is nil while that request is running.
	Answer *answer `json:"answer,omitempty"`
}

// readKey returns the request's key, empty if it has none. The bare and the
// quoted spelling are one key.
func readKey(h http.Header) (string, *answer) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", invalid("Idempotency-Key", "given twice")
	}
	key := unquote(values[0])
	if key == "" {
		return "", invalid("Idempotency-Key", "empty")
	}
	if len(key) > keyLimit {
		return "", invalid("Idempotency-Key", "at most 255 bytes")
	}
	return key, nil
}

// unquote reads a structured-field string; anything else stands for itself.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	var b strings.Builder
	for inner := s[1 : len(s)-1]; inner != ""; inner = inner[1:] {
		if inner[0] == '"' {
			return s
		}
		if inner[0] == '\\' {
			if inner = inner[1:]; inner == "" || inner[0] != '"' && inner[0] != '\\' {
				return s
			}
		}
		b.WriteByte(inner[0])
	}
	return b.String()
}

// keyring holds the keys that charges honour. Its owner serialises access.
type keyring map[string]binding

// claim gives the key to the caller (nil), or returns the answer that the key
// already has. A running request keeps its key however long it runs.
func (ring keyring) claim(want binding, window time.Duration) *answer {
	known, ok := ring[want.Key]
	if ok && known.Answer != nil && want.FirstSeen.Sub(known.FirstSeen) >= window {
		ok = false
	}
	if !ok {
		ring[want.Key] = want
		return nil
	}
	if known.Identity != want.Identity {
		a := failure(http.StatusBadRequest, errorDetail{
			Type:    "idempotency_error",
			Message: "this key was first used with another request; nothing was done now, use the first request again or a new key",
		})
		return &a
	}
	if known.Answer == nil {
		a := failure(http.StatusConflict, errorDetail{
			Type:    "invalid_request_error",
			Code:    "idempotency_key_in_use",
			Message: "the first request with this key is still running",
		})
		return &a
	}
	replay := *known.Answer
	replay.replayed = true
	return &replay
}
