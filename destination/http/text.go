package httpdest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the longest text kept from outside, in bytes.
const maxText = 300

// plain makes outside text fit to store and to show: valid UTF-8 on one line,
// without control characters, cut to maxText bytes.
func plain(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+n]
		switch {
		case r == utf8.RuneError && n == 1:
			piece = `\x` + hex2(s[i])
		case !unicode.IsPrint(r):
			piece = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		}
		if b.Len()+len(piece) > maxText {
			b.WriteString("...")
			break
		}
		b.WriteString(piece)
		i += n
	}
	return b.String()
}

func hex2(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}

// parse reads one JSON value with exact numbers. What two readers could read
// differently, a member that appears twice, is not readable.
func parse(b []byte) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, ok := parseValue(dec, 0)
	if !ok {
		return nil, false
	}
	_, err := dec.Token()
	return v, errors.Is(err, io.EOF)
}

// maxDepth bounds the nesting of JSON that is read.
const maxDepth = 200

func parseValue(dec *json.Decoder, depth int) (any, bool) {
	token, err := dec.Token()
	if err != nil || depth > maxDepth {
		return nil, false
	}
	open, ok := token.(json.Delim)
	if !ok {
		return token, true
	}
	list, object := []any{}, map[string]any{}
	for dec.More() {
		name := ""
		if open == '{' {
			token, err := dec.Token()
			if err != nil {
				return nil, false
			}
			name = token.(string) // the decoder accepts nothing else here
			if _, twice := object[name]; twice {
				return nil, false
			}
		}
		v, ok := parseValue(dec, depth+1)
		if !ok {
			return nil, false
		}
		if open == '{' {
			object[name] = v
		} else {
			list = append(list, v)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	if open == '{' {
		return object, true
	}
	return list, true
}

// at follows a dotted path into a JSON value.
func at(v any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// scalar is the text of a string, number or boolean, numbers to the digit.
func scalar(v any) (string, bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case json.Number:
		return t.String(), true
	case bool:
		return strconv.FormatBool(t), true
	}
	return "", false
}

func scalarAt(v any, path string) (string, bool) {
	found, ok := at(v, path)
	if !ok {
		return "", false
	}
	return scalar(found)
}

// streamed finds a top-level scalar of a JSON object of which only the
// beginning may be at hand, unless it appears twice in it.
func streamed(b []byte, name string) (string, bool) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return "", false
	}
	found, ok := "", false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			break
		}
		var v any
		if dec.Decode(&v) != nil {
			break
		}
		if key != name {
			continue
		}
		if ok {
			return "", false
		}
		if found, ok = scalar(v); !ok {
			return "", false
		}
	}
	return found, ok
}
