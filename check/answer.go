package check

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// madeUp are answers for steps that were given none, tried one after the other
// until one can be read. %q is something that tells steps apart.
var madeUp = []string{`{"id":%[1]q,"reference":%[1]q,"status":"ok"}`, `%q`, `1`, `null`, `[]`, `true`}

// answer is what a step brings.
func (p *plan) answer(how dry, path string, names ...string) []byte {
	for _, name := range append([]string{path}, names...) {
		if given, ok := p.answers[name]; ok {
			if how.varied {
				given = vary(given)
			}
			return given
		}
	}
	text := madeUp[p.tries[path]]
	if bytes.ContainsRune([]byte(text), '%') {
		text = fmt.Sprintf(text, path+"-1")
	}
	if how.varied {
		return vary([]byte(text))
	}
	return []byte(text)
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
