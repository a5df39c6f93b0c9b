package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// madeUp are answers for steps that were given none, tried one after the other
// until one can be read. %q is something that tells steps apart.
var madeUp = []string{`{"id":%[1]q,"reference":%[1]q,"status":"ok"}`, `%q`, `1`, `null`, `[]`, `true`}

// answer is what the step at a path brings; it may also be called by the names.
func (r *recorder) answer(path string, names ...string) []byte {
	r.names[path] = names[0]
	for _, name := range append([]string{plain(path)}, names...) {
		if given, ok := r.plan.answers[name]; ok {
			return r.varying(given)
		}
	}
	text := madeUp[r.plan.tries[names[0]]]
	if strings.Contains(text, "%") {
		text = fmt.Sprintf(text, plain(path)+"-1")
	}
	return r.varying([]byte(text))
}

// varying is an answer as this dry run has it.
func (r *recorder) varying(data []byte) []byte {
	if r.varied {
		return vary(data)
	}
	return data
}

// failure is how a step fails; nil if it does not.
func (p *plan) failure(path string, names ...string) error {
	for _, name := range append([]string{path}, names...) {
		if err, ok := p.fails[name]; ok {
			return err
		}
	}
	return nil
}

// vary is other JSON of the same shape: every text is another, and every number
// is greater by one.
func vary(data []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return data
	}
	varied, err := json.Marshal(variant(v))
	if err != nil {
		return data
	}
	return varied
}

func variant(v any) any {
	switch v := v.(type) {
	case string:
		return v + "2"
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n + 1
		}
	case []any:
		for i := range v {
			v[i] = variant(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = variant(v[name])
		}
	}
	return v
}
