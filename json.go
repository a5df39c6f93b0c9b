package semel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a JSON body.
const maxDepth = 200

// value is a JSON value.
type value struct {
	kind kind
	text string   // of a text, and of a scalar as it is written
	list []member // of an object, sorted by name, and of an array, without names
}

type member struct {
	name  string
	value value
}

type kind byte

const (
	scalar kind = iota // a canonical number, true, false or null
	text
	array
	object
)

// parseJSON reads exactly one JSON value, keeping numbers exact. It refuses
// what two readers could read differently: duplicate members, invalid UTF-8,
// lone surrogates.
func parseJSON(b []byte) (value, error) {
	if !utf8.Valid(b) {
		return value{}, &InputError{Field: "body", Problem: "is JSON but not valid UTF-8", Hint: "encode it as UTF-8"}
	}
	if err := refuseLoneSurrogates(b); err != nil {
		return value{}, err
	}
	p := parser{s: string(b)}
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	if p.peek(); p.i < len(p.s) {
		return value{}, &InputError{Field: "body", Problem: "has more after its JSON value", Hint: "send one value"}
	}
	return v, nil
}

// parser reads JSON as encoding/json does, without a token for each piece.
// TestParserReadsLikeTheStandardLibrary holds it to that.
type parser struct {
	s    string
	i    int    // how much of s is read
	path []byte // of the value being read, below the body
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	for ; p.i < len(p.s); p.i++ {
		if c := p.s[p.i]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// take skips white space and reads c, if it is next.
func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

// more reports whether a list goes on: it does, or fails, with anything but a
// closing bracket.
func (p *parser) more() bool {
	c := p.peek()
	return p.i < len(p.s) && c != ']' && c != '}'
}

func (p *parser) value(depth int) (value, error) {
	switch p.peek() {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		s, err := p.text()
		return value{kind: text, text: s}, err
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(p.s[p.i:], word) {
			p.i += len(word)
			return value{text: word}, nil
		}
	}
	return value{}, p.notJSON()
}

func (p *parser) array(depth int) (value, error) {
	p.take('[')
	v := value{kind: array}
	for at := len(p.path); p.more(); p.path = p.path[:at] {
		if len(v.list) > 0 && !p.take(',') {
			return v, p.notJSON()
		}
		if depth == maxDepth {
			return v, errTooDeep()
		}
		p.path = append(strconv.AppendInt(append(p.path, '['), int64(len(v.list)), 10), ']')
		element, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, member{value: element})
	}
	if !p.take(']') {
		return v, p.notJSON()
	}
	return v, nil
}

func (p *parser) object(depth int) (value, error) {
	p.take('{')
	v := value{kind: object}
	for at := len(p.path); p.more(); p.path = p.path[:at] {
		if len(v.list) > 0 && !p.take(',') || p.peek() != '"' {
			return v, p.notJSON()
		}
		name, err := p.text()
		if err != nil {
			return v, err
		}
		if depth == maxDepth {
			return v, errTooDeep()
		}
		if !p.take(':') {
			return v, p.notJSON()
		}
		p.path = append(append(p.path, '.'), pathName(name)...)
		of, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, member{name, of})
	}
	if !p.take('}') {
		return v, p.notJSON()
	}
	slices.SortFunc(v.list, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(v.list); i++ {
		if v.list[i].name == v.list[i-1].name {
			return v, &InputError{
				Field: memberPath("body"+string(p.path), v.list[i].name), Problem: "appears twice",
				Hint: "readers disagree on which one counts: send it once",
			}
		}
	}
	return v, nil
}

func (p *parser) text() (string, error) {
	start, escaped := p.i, false
	for p.i++; p.i < len(p.s) && p.s[p.i] >= ' '; p.i++ {
		switch p.s[p.i] {
		case '\\':
			escaped = true
			p.i++
		case '"':
			p.i++
			quoted := p.s[start:p.i]
			if !escaped {
				return quoted[1 : len(quoted)-1], nil
			}
			var s string
			if err := json.Unmarshal([]byte(quoted), &s); err != nil {
				return "", p.notJSON()
			}
			return s, nil
		}
	}
	return "", p.notJSON()
}

func (p *parser) number() (value, error) {
	start := p.i
	p.skip("-")
	ok := p.skip("0") || p.digits()
	if p.skip(".") {
		ok = ok && p.digits()
	}
	if p.skip("eE") {
		p.skip("+-")
		ok = ok && p.digits()
	}
	if !ok {
		return value{}, p.notJSON()
	}
	n, err := canonicalNumber(p.s[start:p.i], p.path)
	return value{text: n}, err
}

// skip reads one byte if it is one of those.
func (p *parser) skip(those string) bool {
	if p.i == len(p.s) || strings.IndexByte(those, p.s[p.i]) < 0 {
		return false
	}
	p.i++
	return true
}

func (p *parser) digits() bool {
	start := p.i
	for p.skip("0123456789") {
	}
	return p.i > start
}

// notJSON says what is wrong in the words of encoding/json.
func (p *parser) notJSON() error {
	dec := json.NewDecoder(strings.NewReader(p.s))
	dec.UseNumber()
	for {
		if _, err := dec.Token(); err != nil {
			return &InputError{Field: "body", Problem: "is not valid JSON: " + err.Error(), Hint: "mend it at the named place"}
		}
	}
}

func errTooDeep() error {
	return &InputError{Field: "body", Problem: fmt.Sprintf("is nested deeper than %d", maxDepth), Hint: "flatten it"}
}

// canonicalNumber spells a number so that equal numbers are equal text: 1, 1.0
// and 1e0 are one number, and 2^53+1 stays itself. RFC 8785 would round it.
func canonicalNumber(s string, path []byte) (string, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	exp := int64(0)
	if exponent != "" {
		n, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return "", &InputError{Field: "body" + string(path), Problem: "has an exponent out of range", Hint: "write the number without it"}
		}
		exp = n
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	exp -= int64(len(frac))
	trimmed := strings.TrimRight(digits, "0")
	exp += int64(len(digits) - len(trimmed))
	if trimmed == "" {
		return "0", nil
	}
	if exp == 0 {
		return sign + trimmed, nil
	}
	return sign + trimmed + "e" + strconv.FormatInt(exp, 10), nil
}

// refuseLoneSurrogates finds \uD800-style escapes without their other half,
// which the standard decoder replaces silently.
func refuseLoneSurrogates(b []byte) error {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if b[i+1] != 'u' {
			i++
			continue
		}
		r, ok := hex4(b, i+2)
		if !ok {
			continue // the decoder will say so
		}
		i += 5
		if r < 0xd800 || r > 0xdfff {
			continue
		}
		if low, ok := hex4(b, i+3); r < 0xdc00 && ok && b[i+1] == '\\' && b[i+2] == 'u' && low >= 0xdc00 && low <= 0xdfff {
			i += 6
			continue
		}
		return &InputError{Field: "body", Problem: fmt.Sprintf("has a lone surrogate \\u%04x", r), Hint: "send the whole character"}
	}
	return nil
}

func hex4(b []byte, at int) (uint64, bool) {
	if at+4 > len(b) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[at:at+4]), 16, 32)
	return n, err == nil
}
