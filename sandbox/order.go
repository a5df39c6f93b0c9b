package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// order is what a request asks for.
type order struct {
	reference string
	customer  string
	amount    int64
}

// readOrder reads a body. The reference is returned even if the rest of the
// order is refused, so that the request can be counted under it.
func readOrder(resource Resource, body []byte) (order, *answer) {
	given, err := fields(body)
	if err != nil {
		return order{}, invalid("body", err.Error())
	}
	values := make(map[string]json.RawMessage, len(given))
	for _, f := range given {
		values[f.name] = f.value
	}

	var o order
	if o.reference, err = text(values["reference"]); err != nil {
		return o, invalid("reference", err.Error())
	}
	if o.customer, err = text(values["customer"]); err != nil {
		return o, invalid("customer", err.Error())
	}
	kind, _ := resource.trait()
	raw, ok := values["amount"]
	if !ok {
		if kind.amount {
			return o, invalid("amount", "required: an integer in minor units")
		}
		return o, nil
	}
	o.amount, err = strconv.ParseInt(string(raw), 10, 64)
	if err != nil || o.amount <= 0 {
		return o, invalid("amount", "must be a positive integer in minor units")
	}
	return o, nil
}

// text is a JSON string's value or a JSON number's spelling.
func text(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if raw[0] == '"' {
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	}
	if raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' {
		return string(raw), nil
	}
	return "", errors.New("must be a string")
}

// field is one member of a JSON object, its value spelled as it came.
type field struct {
	name  string
	value json.RawMessage
}

// fields reads one JSON object and nothing after it, in order. A member given
// twice is refused: nobody can say which of the two was meant.
func fields(body []byte) ([]field, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("must be UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("must be a JSON object")
	}
	var all []field
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("must be a JSON object: %w", err)
		}
		f := field{name: token.(string)} // a member name, or Token had failed
		if err := dec.Decode(&f.value); err != nil {
			return nil, fmt.Errorf("must be a JSON object: %w", err)
		}
		if seen[f.name] {
			return nil, fmt.Errorf("member %q is given twice", f.name)
		}
		seen[f.name] = true
		all = append(all, f)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("must be a JSON object: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("must be one JSON object and nothing after it")
	}
	return all, nil
}

// join writes an object with the members in the given order.
func join(all []field) string {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(f.name))
		b.WriteByte(':')
		b.Write(f.value)
	}
	b.WriteByte('}')
	return b.String()
}

// encode is json.Marshal that leaves <, > and & alone. Its callers pass only
// values that can be encoded.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("sandbox: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
