package semel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxKeyLen is the longest Key and the longest Scope, in bytes. Most providers
// accept keys of at most 255 bytes, so a longer one could never be passed on.
const MaxKeyLen = 255

// Key names one intended effect within a Scope. Keys compare byte by byte:
// case and spaces matter.
type Key string

// Validate reports what is wrong with k: a key has 1 to 255 bytes of UTF-8
// without NUL, and is not white space only.
func (k Key) Validate() error { return validName("key", string(k)) }

// Scope is the space in which a Key is unique: tenant, connection and
// operation type. The same key in two scopes is two operations.
type Scope string

// Validate reports what is wrong with s; the rules are those of Key.
func (s Scope) Validate() error { return validName("scope", string(s)) }

// ActionScope is the scope of an Action: its parts are length-prefixed, so
// that no two different triples are the same scope.
func ActionScope(tenant, connection, action string) Scope {
	return Scope(prefixed(tenant, connection, action))
}

func prefixed(parts ...string) string {
	b := make([]byte, 0, 256) // most are shorter, and never reach the heap
	for i, p := range parts {
		if i > 0 {
			b = append(b, '/')
		}
		b = appendPrefixed(b, p)
	}
	return string(b)
}

func appendPrefixed[T string | []byte](dst []byte, s T) []byte {
	return append(append(strconv.AppendInt(dst, int64(len(s)), 10), ':'), s...)
}

func validName(what, s string) error {
	switch {
	case s == "":
		return &InputError{Field: what, Problem: "is empty", Hint: "give 1 to 255 bytes"}
	case len(s) > MaxKeyLen:
		return &InputError{
			Field: what, Problem: fmt.Sprintf("has %d bytes, the limit is %d", len(s), MaxKeyLen),
			Hint: "use a shorter name for the same work, never a cut one",
		}
	case strings.IndexByte(s, 0) >= 0:
		return &InputError{Field: what, Problem: "contains a NUL byte", Hint: "remove it"}
	case !utf8.ValidString(s):
		return &InputError{Field: what, Problem: "is not valid UTF-8", Hint: "encode it as UTF-8, or as hex"}
	case strings.TrimSpace(s) == "":
		return &InputError{Field: what, Problem: "is white space only", Hint: "give a name that describes the work"}
	}
	return nil
}

// DestinationKey is the key that reaches the destination: a pure function of
// scope, key and generation, so it survives the loss of all local state, and
// one key in two scopes never meets at one account. It is written as a UUID of
// version 8 (RFC 9562, section 5.8), 36 characters that every provider's
// alphabet accepts.
func DestinationKey(scope Scope, key Key, generation int) string {
	sum := sha256.Sum256([]byte(prefixed("semel-destination-key-1", string(scope), string(key), strconv.Itoa(generation))))
	id := ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// ID identifies an operation: a UUID of version 7, which carries the time it
// was minted and sorts by it.
type ID [16]byte

// NewID mints an ID from the time t and ten random bytes.
func NewID(t time.Time, random [10]byte) ID {
	var id ID
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16)
	copy(id[6:], random[:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// MintKey makes a synthetic key: a UUID of version 7 in text form. Mint it
// once, when the work is created, and persist it with the work.
func MintKey(t time.Time, random [10]byte) Key { return Key(NewID(t, random).String()) }

// MintedAt returns the time at which a synthetic key was minted, to the
// millisecond; ok is false for a natural key, which carries no time.
func (k Key) MintedAt() (t time.Time, ok bool) {
	id, err := ParseID(string(k))
	if err != nil || id[6]>>4 != 7 || id[8]>>6 != 2 || string(k) != id.String() {
		return time.Time{}, false
	}
	return id.Time(), true
}

// ParseID reads the text form of an ID, in either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, &InputError{
			Field: "operation id", Problem: fmt.Sprintf("%q is not a UUID", s),
			Hint: "copy it from semel op list",
		}
	}
	b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	if err != nil {
		return id, &InputError{
			Field: "operation id", Problem: fmt.Sprintf("%q is not a UUID", s),
			Hint: "copy it from semel op list",
		}
	}
	copy(id[:], b)
	return id, nil
}

// String is the lower-case text form of a UUID.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:], id[10:])
	return string(b[:])
}

// Time is when the ID was minted, to the millisecond.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(append([]byte{0, 0}, id[:6]...)))).UTC()
}

// MarshalText and UnmarshalText use the text form.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the text form.
func (id *ID) UnmarshalText(b []byte) error {
	got, err := ParseID(string(b))
	*id = got
	return err
}
