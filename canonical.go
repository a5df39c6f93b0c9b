package semel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a JSON body.
const maxDepth = 200

// member is one member of a JSON object.
type member struct {
	name  string
	value any // nil, bool, string, number, []any or []member
}

// number is the canonical text of a JSON number.
type number string

// parseJSON reads exactly one JSON value, keeping numbers exact. It refuses
// what two readers could read differently: duplicate members, invalid UTF-8,
// lone surrogates.
func parseJSON(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, &InputError{Field: "body", Problem: "is JSON but not valid UTF-8", Hint: "encode it as UTF-8"}
	}
	if err := refuseLoneSurrogates(b); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err := parseValue(dec, "body", 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &InputError{Field: "body", Problem: "has more after its JSON value", Hint: "send one value"}
	}
	return v, nil
}

func parseValue(dec *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, &InputError{Field: "body", Problem: fmt.Sprintf("is nested deeper than %d", maxDepth), Hint: "flatten it"}
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, &InputError{Field: "body", Problem: "is not valid JSON: " + err.Error(), Hint: "mend it at the named place"}
	}
	switch t := tok.(type) {
	case json.Number:
		return canonicalNumber(string(t), path)
	case json.Delim:
		if t == '[' {
			return parseArray(dec, path, depth)
		}
		return parseObject(dec, path, depth)
	default:
		return t, nil // string, bool, nil
	}
}

func parseArray(dec *json.Decoder, path string, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := parseValue(dec, path+"["+strconv.Itoa(len(list))+"]", depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, jsonError(err)
}

func parseObject(dec *json.Decoder, path string, depth int) (any, error) {
	object := []member{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		name := tok.(string) // the decoder accepts only strings here
		v, err := parseValue(dec, memberPath(path, name), depth+1)
		if err != nil {
			return nil, err
		}
		object = append(object, member{name, v})
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(err)
	}
	slices.SortFunc(object, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(object); i++ {
		if object[i].name == object[i-1].name {
			return nil, &InputError{
				Field: memberPath(path, object[i].name), Problem: "appears twice",
				Hint: "readers disagree on which one counts: send it once",
			}
		}
	}
	return object, nil
}

func jsonError(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{Field: "body", Problem: "is not valid JSON: " + err.Error(), Hint: "mend it at the named place"}
}

// canonicalNumber spells a number so that equal numbers are equal text: 1, 1.0
// and 1e0 are one number, and 2^53+1 stays itself. RFC 8785 would round it.
func canonicalNumber(s, path string) (number, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	exp := int64(0)
	if exponent != "" {
		n, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return "", &InputError{Field: path, Problem: "has an exponent out of range", Hint: "write the number without it"}
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
		return number(sign + trimmed), nil
	}
	return number(sign + trimmed + "e" + strconv.FormatInt(exp, 10)), nil
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

// appendCanonical writes v in canonical form: members sorted, no white space,
// strings as the standard encoder writes them, numbers exact. drop says which
// paths to leave out.
func appendCanonical(dst []byte, v any, path string, drop func(string) bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case number:
		return append(dst, v...)
	case string:
		return appendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, e, path+"[]", drop)
		}
		return append(dst, ']')
	case []member:
		dst = append(dst, '{')
		first := true
		for _, m := range v {
			at := memberPath(path, m.name)
			if drop(at) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(appendString(dst, m.name), ':')
			dst = appendCanonical(dst, m.value, at, drop)
		}
		return append(dst, '}')
	default:
		panic(fmt.Sprintf("canonical form of a %T", v))
	}
}

func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a valid UTF-8 string always marshals
	}
	return append(dst, b...)
}

// memberPath is the dotted path of a member. A name that would read as a path
// is quoted, so that no two members have one path.
func memberPath(path, name string) string {
	if name == "" || strings.ContainsAny(name, `.[]"`) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// diff lists the paths at which two JSON values differ.
func diff(a, b any, path string, drop func(string) bool) []string {
	ma, oka := a.([]member)
	mb, okb := b.([]member)
	if !oka || !okb {
		if bytes.Equal(appendCanonical(nil, a, path, drop), appendCanonical(nil, b, path, drop)) {
			return nil
		}
		if path == "" {
			return []string{"body"}
		}
		return []string{"body." + path}
	}
	var out []string
	at := func(name string) string { return memberPath(path, name) }
	for i, j := 0, 0; i < len(ma) || j < len(mb); {
		switch {
		case j == len(mb) || i < len(ma) && ma[i].name < mb[j].name:
			if !drop(at(ma[i].name)) {
				out = append(out, "body."+at(ma[i].name))
			}
			i++
		case i == len(ma) || mb[j].name < ma[i].name:
			if !drop(at(mb[j].name)) {
				out = append(out, "body."+at(mb[j].name))
			}
			j++
		default:
			if !drop(at(ma[i].name)) {
				out = append(out, diff(ma[i].value, mb[j].value, at(ma[i].name), drop)...)
			}
			i, j = i+1, j+1
		}
	}
	return out
}
