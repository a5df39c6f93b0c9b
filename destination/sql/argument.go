package sqldest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// encodeArg writes an argument as JSON, exactly.
func encodeArg(arg any) (json.RawMessage, error) {
	switch v := arg.(type) {
	case []byte:
		return nil, errors.New("is bytes, which JSON cannot hold")
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("is not valid UTF-8")
		}
		if strings.IndexByte(v, 0) >= 0 {
			return nil, errors.New("contains a NUL byte")
		}
	case time.Time:
		return encodeJSON(v.Format(time.RFC3339Nano))
	case *big.Int:
		if v == nil {
			return json.RawMessage("null"), nil
		}
		return json.RawMessage(v.String()), nil
	}
	raw, err := encodeJSON(arg)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return raw, nil
}

// argument is an argument as it was stored.
type argument json.RawMessage

// kind is the first byte of its JSON, a digit for every number.
func (a argument) kind() byte {
	switch a := bytes.TrimSpace(a); {
	case len(a) == 0:
		return 'n'
	case a[0] == '-' || a[0] >= '0' && a[0] <= '9':
		return '0'
	default:
		return a[0]
	}
}

// text is the argument as text for a server that reads it by the parameter's
// own type, so that no number is rounded on the way; nil is null.
func (a argument) text() (any, error) {
	switch a.kind() {
	case 'n':
		return nil, nil
	case '"':
		var s string
		err := json.Unmarshal(a, &s)
		return s, err
	}
	return string(a), nil // a number, true, false, and JSON itself
}

// native is the argument in one of the types that SQLite knows.
func (a argument) native() (any, error) {
	switch a.kind() {
	case 't':
		return int64(1), nil
	case 'f':
		return int64(0), nil
	case '0':
		return nativeNumber(string(a))
	}
	return a.text()
}

// nativeNumber refuses to round an integer, which SQLite would do.
func nativeNumber(s string) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		i, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s does not fit an integer of SQLite: pass it as text", s)
		}
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("%s does not fit a number of SQLite: pass it as text", s)
	}
	return f, nil
}
