package httpdest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/semel-dev/semel"
)

// fill replaces the placeholders of a URL, each value escaped for the place
// where it stands. A value that is missing, or that would change the path, is
// an error.
func fill(template string, value func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	rest := template
	for {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf("%q has a { without a }", template)
		}
		if !placeable(b.String()) {
			return "", fmt.Errorf("{%s} stands in the scheme or host of %q, where no value may", name, template)
		}
		v, ok := value(name)
		switch {
		case !ok:
			return "", fmt.Errorf("{%s} in %q has no value", name, template)
		case strings.Contains(b.String(), "?"):
			b.WriteString(url.QueryEscape(v))
		case v == "" || v == "." || v == "..":
			return "", fmt.Errorf("{%s} in %q is %q, which would change the path", name, template, v)
		default:
			b.WriteString(url.PathEscape(v))
		}
		rest = tail
	}
}

// placeable reports whether the URL has got as far as its path.
func placeable(before string) bool {
	_, rest, absolute := strings.Cut(before, "://")
	if !absolute {
		return strings.HasPrefix(before, "/")
	}
	return strings.Contains(rest, "/") || strings.Contains(rest, "?")
}

// values are what a lookup can say about an operation.
func values(s *semel.Send) func(string) (string, bool) {
	var body any
	parsed := false
	return func(name string) (string, bool) {
		switch name {
		case "key":
			return string(s.Operation.Key), true
		case "destination_key":
			return s.DestinationKey, true
		}
		field, ok := strings.CutPrefix(name, "body.")
		if !ok {
			return "", false
		}
		if !parsed {
			body, _ = parse(s.Operation.Request.Body)
			parsed = true
		}
		return scalarAt(body, field)
	}
}

// placeholders lists the names in a template.
func placeholders(template string) []string {
	var names []string
	for _, piece := range strings.Split(template, "{")[1:] {
		if name, _, ok := strings.Cut(piece, "}"); ok {
			names = append(names, name)
		}
	}
	return names
}

// CheckLookup reports, as *semel.InputError, why lookupURL cannot be filled in
// for the request: a placeholder is unknown, or the body has no such field.
func CheckLookup(r *semel.Request, lookupURL string) error {
	o := semel.Operation{Identity: semel.Identity{Key: "k", Request: *r}}
	filled, err := fill(lookupURL, values(&semel.Send{Operation: &o, DestinationKey: "k"}))
	if err != nil {
		return &semel.InputError{Field: "lookup", Problem: "cannot be filled in: " + err.Error(), Hint: "use {key}, {destination_key} or {body.FIELD} with a field of the body"}
	}
	_, err = parseURL("lookup", filled)
	return err
}

// CheckTemplate reports what is wrong with a lookup URL, whatever its values.
func CheckTemplate(template string) error {
	_, err := members(template, "key", "destination_key")
	return err
}

// CheckPath reports what is wrong with a path that Fill takes, whatever its
// values, and lists the members of the input that it names.
func CheckPath(path string) ([]string, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%q does not begin with /", path)
	}
	return members("http://localhost" + path)
}

// members lists the members of the body that a URL names. It fails where the
// URL names something else than these and the others.
func members(template string, others ...string) (fields []string, err error) {
	filled, err := fill(template, func(name string) (string, bool) {
		field, ofBody := strings.CutPrefix(name, "body.")
		if ofBody && field != "" {
			fields = append(fields, field)
		}
		return "x", ofBody && field != "" || slices.Contains(others, name)
	})
	if err != nil {
		return nil, err
	}
	_, err = parseURL("url", filled)
	return fields, err
}
