package httpdest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/semel-dev/semel"
)

// Post is an effect that posts the action's input as JSON to a path of d and
// reads the answer as JSON. It is a value: change its Contract where this
// action promises more or less than the destination.
func Post[In, Out any](d *Destination, path string) semel.Effect[In, Out] {
	return Call[In, Out](d, http.MethodPost, path)
}

// Call is Post with another method. The path may name members of the input, as
// in /tickets/{body.id}/status; they are escaped.
func Call[In, Out any](d *Destination, method, path string) semel.Effect[In, Out] {
	return semel.Effect[In, Out]{
		Connection:  d.options.Name,
		Contract:    d.options.Contract,
		Destination: d,
		Request: func(in In) (semel.Request, error) {
			body, err := json.Marshal(in)
			if err != nil {
				return semel.Request{}, fmt.Errorf("encode input: %w", err)
			}
			filled, err := d.Fill(path, body)
			if err != nil {
				return semel.Request{}, err
			}
			r, _, err := d.NewRequest(method, filled, []string{"Content-Type: application/json"}, body)
			return r, err
		},
	}
}

// Fill is the address of a path that names members of a JSON input, as in
// /tickets/{body.id}/status. Each value is escaped for the place where it
// stands, and numbers keep their digits. The error is *semel.InputError.
func (d *Destination) Fill(path string, input []byte) (string, error) {
	target, err := d.URL(path)
	if err != nil {
		return "", err
	}
	v, _ := parse(input)
	filled, err := fill(target, func(name string) (string, bool) {
		field, ok := strings.CutPrefix(name, "body.")
		if !ok {
			return "", false
		}
		return scalarAt(v, field)
	})
	if err != nil {
		return "", &semel.InputError{Field: "path", Problem: err.Error(), Hint: "name members of the input, as in {body.id}"}
	}
	return filled, nil
}

// NewRequest is the function NewRequest for a path of d: it adds d's name and
// its given headers, unless they are given here.
func (d *Destination) NewRequest(method, path string, headers []string, body []byte) (semel.Request, map[string]string, error) {
	target, err := d.URL(path)
	if err != nil {
		return semel.Request{}, nil, err
	}
	r, secret, err := NewRequest(method, target, headers, body)
	if err != nil {
		return semel.Request{}, nil, err
	}
	u, err := parseURL("url", target)
	if err != nil {
		return semel.Request{}, nil, err
	}
	if err := d.within(u); err != nil {
		return semel.Request{}, nil, &semel.InputError{Field: "url", Problem: err.Error(), Hint: "give a path of the connection"}
	}
	r.Connection = d.options.Name
	for name, value := range d.options.Given {
		name = http.CanonicalHeaderKey(name)
		if _, ok := r.Header[name]; !ok {
			if r.Header == nil {
				r.Header = map[string]string{}
			}
			r.Header[name] = value
		}
	}
	return r, secret, nil
}

// URL is the address of a path of the destination. A whole URL stands for
// itself.
func (d *Destination) URL(path string) (string, error) {
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return path, nil
	}
	if d.base == nil || !strings.HasPrefix(path, "/") {
		return "", &semel.InputError{
			Field: "path", Problem: fmt.Sprintf("%q does not lead anywhere", path),
			Hint: "give the connection a base, and let the path begin with /",
		}
	}
	return strings.TrimSuffix(d.options.Base, "/") + path, nil
}
