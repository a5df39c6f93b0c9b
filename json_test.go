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
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// sameAsSlow compares the parser with the one it replaced, which read the
// tokens of encoding/json: the same bodies are accepted, in the same canonical
// form and with the same differences, and the others refused in the same words.
func sameAsSlow(t *testing.T, a, b, volatile string) {
	t.Helper()
	drop := func(path string) bool { return path == volatile }
	va, erra := parseJSON([]byte(a))
	vb, errb := parseJSON([]byte(b))
	sa, slowErr := slowParseJSON([]byte(a))
	if diff := cmp.Diff(slowErr, erra); diff != "" {
		t.Fatalf("%q: %s", a, diff)
	}
	if erra != nil {
		return
	}
	for _, drop := range []func(string) bool{drop, nil} {
		slowDrop := drop
		if drop == nil {
			slowDrop = func(string) bool { return false }
		}
		got, want := appendCanonical(nil, va, "", drop), slowAppendCanonical(nil, sa, "", slowDrop)
		if !bytes.Equal(got, want) {
			t.Errorf("%q without %q: got %s, want %s", a, volatile, got, want)
		}
	}
	sb, slowErr := slowParseJSON([]byte(b))
	if errb != nil || slowErr != nil {
		return
	}
	if diff := cmp.Diff(slowDiff(sa, sb, "", drop), diff(va, vb, "", drop)); diff != "" {
		t.Errorf("%q, %q without %q: %s", a, b, volatile, diff)
	}
}

// pieces of JSON, right and wrong, of which a test makes bodies.
func pieces() []string {
	deep := strings.Repeat("[", maxDepth)
	closed := strings.Repeat("]", maxDepth)
	return []string{
		"{", "}", "[", "]", ",", ":", `"`, `\`, " ", "\n", "\t\r", "\v", "\x00", "\x7f", "a", `"a"`, `"a":1`, `"b":`, `"a":{"b":[2]}`, `""`,
		`"\u0061"`, `"\ud83d\ude00"`, `"\ud800"`, `"\udc00"`, `"\u12"`, `"\x"`, `"\n\/\\\""`, "\"\n\"", "\"\x7f\"", `"<&>"`, "\"\u2028é\"", `"a.b"`, `"[]"`, "\"\xff\"", "é",
		"true", "false", "null", "tru", "nul", "NaN", "0", "-0", "01", "-", "+1", "1", "12900", "1.50", "1.", ".5", "1e5", "1E+05", "1e", "1e-", "0.000e+9", "1e99999999999", "-9007199254740993",
		deep, closed, deep + closed, deep + "1" + closed, deep + "{}" + closed, deep + `{"a"`, deep + "[,", deep + "[}", deep + "[1",
	}
}

func TestParserReadsLikeTheStandardLibrary(t *testing.T) {
	all := pieces()
	for _, a := range all {
		for _, b := range all {
			for _, c := range all {
				if len(c) < 3 {
					sameAsSlow(t, a+b+c, c+b+a, "a")
				}
			}
			for _, form := range []string{`[%s,%s]`, `{"x":%s,"a":[%s]}`, `{%s,"c":{%s}}`, `{%s:1,%s:2}`, `{"a":{"a":%s,"b":%s},"c":[]}`, `[{"a":%s},%s`} {
				sameAsSlow(t, fmt.Sprintf(form, a, b), fmt.Sprintf(form, b, a), "a.b")
			}
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, p := range pieces() {
		f.Add(p, `{"a":`+p+`,"b":[`+p+`]}`, "a")
		f.Add(`{"z":[{"a":1,"b":`+p+`}],"b":"x","a":`+p+`}`, p, "z[].a")
	}
	f.Fuzz(sameAsSlow)
}

// slowMember is one member of a JSON object.
type slowMember struct {
	name  string
	value any // nil, bool, string, slowNumber, []any or []slowMember
}

// slowNumber is the canonical text of a JSON number.
type slowNumber string

// slowParseJSON reads exactly one JSON value, keeping numbers exact. It refuses
// what two readers could read differently: duplicate members, invalid UTF-8,
// lone surrogates.
func slowParseJSON(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, &InputError{Field: "body", Problem: "is JSON but not valid UTF-8", Hint: "encode it as UTF-8"}
	}
	if err := refuseLoneSurrogates(b); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err := slowParseValue(dec, "body", 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &InputError{Field: "body", Problem: "has more after its JSON value", Hint: "send one value"}
	}
	return v, nil
}

func slowParseValue(dec *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, &InputError{Field: "body", Problem: fmt.Sprintf("is nested deeper than %d", maxDepth), Hint: "flatten it"}
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, &InputError{Field: "body", Problem: "is not valid JSON: " + err.Error(), Hint: "mend it at the named place"}
	}
	switch t := tok.(type) {
	case json.Number:
		return slowCanonicalNumber(string(t), path)
	case json.Delim:
		if t == '[' {
			return slowParseArray(dec, path, depth)
		}
		return slowParseObject(dec, path, depth)
	default:
		return t, nil // string, bool, nil
	}
}

func slowParseArray(dec *json.Decoder, path string, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := slowParseValue(dec, path+"["+strconv.Itoa(len(list))+"]", depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.Token()
	return list, slowError(err)
}

func slowParseObject(dec *json.Decoder, path string, depth int) (any, error) {
	object := []slowMember{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, slowError(err)
		}
		name := tok.(string) // the decoder accepts only strings here
		v, err := slowParseValue(dec, slowMemberPath(path, name), depth+1)
		if err != nil {
			return nil, err
		}
		object = append(object, slowMember{name, v})
	}
	if _, err := dec.Token(); err != nil {
		return nil, slowError(err)
	}
	slices.SortFunc(object, func(a, b slowMember) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(object); i++ {
		if object[i].name == object[i-1].name {
			return nil, &InputError{
				Field: slowMemberPath(path, object[i].name), Problem: "appears twice",
				Hint: "readers disagree on which one counts: send it once",
			}
		}
	}
	return object, nil
}

func slowError(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{Field: "body", Problem: "is not valid JSON: " + err.Error(), Hint: "mend it at the named place"}
}

// slowCanonicalNumber spells a number so that equal numbers are equal text: 1, 1.0
// and 1e0 are one number, and 2^53+1 stays itself. RFC 8785 would round it.
func slowCanonicalNumber(s, path string) (slowNumber, error) {
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
		return slowNumber(sign + trimmed), nil
	}
	return slowNumber(sign + trimmed + "e" + strconv.FormatInt(exp, 10)), nil
}

// slowAppendCanonical writes v in canonical form: members sorted, no white space,
// strings as the standard encoder writes them, numbers exact. drop says which
// paths to leave out.
func slowAppendCanonical(dst []byte, v any, path string, drop func(string) bool) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case slowNumber:
		return append(dst, v...)
	case string:
		return slowAppendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = slowAppendCanonical(dst, e, path+"[]", drop)
		}
		return append(dst, ']')
	case []slowMember:
		dst = append(dst, '{')
		first := true
		for _, m := range v {
			at := slowMemberPath(path, m.name)
			if drop(at) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(slowAppendString(dst, m.name), ':')
			dst = slowAppendCanonical(dst, m.value, at, drop)
		}
		return append(dst, '}')
	default:
		panic(fmt.Sprintf("canonical form of a %T", v))
	}
}

func slowAppendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a valid UTF-8 string always marshals
	}
	return append(dst, b...)
}

// slowMemberPath is the dotted path of a member. A name that would read as a path
// is quoted, so that no two members have one path.
func slowMemberPath(path, name string) string {
	if name == "" || strings.ContainsAny(name, `.[]"`) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// slowDiff lists the paths at which two JSON values differ.
func slowDiff(a, b any, path string, drop func(string) bool) []string {
	ma, oka := a.([]slowMember)
	mb, okb := b.([]slowMember)
	if !oka || !okb {
		if bytes.Equal(slowAppendCanonical(nil, a, path, drop), slowAppendCanonical(nil, b, path, drop)) {
			return nil
		}
		if path == "" {
			return []string{"body"}
		}
		return []string{"body." + path}
	}
	var out []string
	at := func(name string) string { return slowMemberPath(path, name) }
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
				out = append(out, slowDiff(ma[i].value, mb[j].value, at(ma[i].name), drop)...)
			}
			i, j = i+1, j+1
		}
	}
	return out
}
