package semel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Fingerprint identifies what a request asks for: a version byte and a SHA-256
// over its canonical form. Requests that differ only in representation have
// one fingerprint.
type Fingerprint [33]byte

// fingerprintVersion is the current canonical form. A stored fingerprint is
// compared in the version it was stored in.
const fingerprintVersion = 1

// String is the version and the digest, for people.
func (f Fingerprint) String() string { return fmt.Sprintf("%d:%s", f[0], hex.EncodeToString(f[1:])) }

// Validate reports what is wrong with r as a request that can be claimed.
func (r *Request) Validate() error {
	_, err := r.Fingerprint()
	return err
}

// check reports what is wrong with r before anything is computed from it.
func (r *Request) check() error {
	if r.Kind == "" {
		return &InputError{Field: "request", Problem: "names no kind of destination"}
	}
	if len(r.Body) > MaxBody {
		return &InputError{
			Field: "body", Problem: fmt.Sprintf("has %d bytes, the limit is %d", len(r.Body), MaxBody),
			Hint: "send a reference to the data instead",
		}
	}
	for _, a := range r.Args {
		if strings.IndexByte(a, 0) >= 0 {
			return &InputError{Field: "argument", Problem: "contains a NUL byte", Hint: "remove it"}
		}
		if !utf8.ValidString(a) {
			return &InputError{Field: "argument", Problem: "is not valid UTF-8", Hint: "pass the bytes on standard input instead"}
		}
	}
	for name := range r.Header {
		if IsCredential(name) {
			return &InputError{Field: "header " + name, Problem: "is a credential, which is never stored", Hint: "name it in Withheld"}
		}
	}
	return nil
}

// Fingerprint computes the identity of the request. It fails with *InputError
// when two readers could read the request differently, for example when a JSON
// member appears twice.
func (r *Request) Fingerprint() (Fingerprint, error) {
	if err := r.check(); err != nil {
		return Fingerprint{}, err
	}
	parts, err := r.parts()
	if err != nil {
		return Fingerprint{}, err
	}
	body, err := r.canonicalBody()
	if err != nil {
		return Fingerprint{}, err
	}
	b := appendPrefixed(make([]byte, 0, 512+len(body)), "semel-fingerprint-1")
	for _, p := range parts {
		b = appendPrefixed(appendPrefixed(b, p.name), p.value)
	}
	b = appendPrefixed(appendPrefixed(b, "body"), body)
	sum := sha256.Sum256(b)
	f := Fingerprint{fingerprintVersion}
	copy(f[1:], sum[:])
	return f, nil
}

// part is one named piece of a request's identity, body apart.
type part struct{ name, value string }

func (r *Request) parts() ([]part, error) {
	parts := make([]part, 0, 8+len(r.Header)+len(r.Args))
	parts = append(parts, part{"kind", r.Kind}, part{"method", r.Method})
	if r.URL != "" {
		u, err := url.Parse(r.URL)
		if err != nil {
			return nil, &InputError{Field: "url", Problem: "cannot be read: " + err.Error(), Hint: "write it as https://host/path"}
		}
		if u.Host == "" || u.Scheme == "" {
			return nil, &InputError{Field: "url", Problem: fmt.Sprintf("%q has no scheme or host", r.URL), Hint: "write it as https://host/path"}
		}
		if u.User != nil {
			return nil, &InputError{
				Field: "url", Problem: "contains a user name or a password, which would be stored",
				Hint: "give it as a header, or as a secret of a connection",
			}
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
		}
		path := u.EscapedPath()
		if path == "" {
			path = "/"
		}
		parts = append(parts, part{"url.scheme", strings.ToLower(u.Scheme)}, part{"url.host", strings.ToLower(u.Hostname())},
			part{"url.port", port}, part{"url.path", path}, part{"url.query", u.RawQuery})
	}
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, part{"header." + strings.ToLower(name), r.Header[name]})
	}
	for i, a := range r.Args {
		parts = append(parts, part{"argument " + strconv.Itoa(i), a})
	}
	mediaType := strings.ToLower(strings.TrimSpace(r.MediaType))
	return append(parts, part{"media type", mediaType}), nil
}

func (r *Request) canonicalBody() ([]byte, error) {
	if len(r.Body) == 0 || !isJSON(r.MediaType) {
		return r.Body, nil
	}
	v, err := parseJSON(r.Body)
	if err != nil {
		return nil, err
	}
	var drop func(string) bool
	if len(r.Volatile) > 0 {
		drop = r.isVolatile
	}
	return appendCanonical(make([]byte, 0, len(r.Body)), v, "", drop), nil
}

func (r *Request) isVolatile(path string) bool { return slices.Contains(r.Volatile, path) }

// Diff names the fields in which two requests differ, for a conflict.
func (r *Request) Diff(other *Request) []string {
	var out []string
	a, _ := r.parts()
	b, _ := other.parts()
	values := map[string][2]string{}
	names := []string{}
	for i, ps := range [][]part{a, b} {
		for _, p := range ps {
			v, seen := values[p.name]
			if !seen {
				names = append(names, p.name)
			}
			v[i] = "=" + p.value
			values[p.name] = v
		}
	}
	for _, n := range names {
		if v := values[n]; v[0] != v[1] {
			out = append(out, n)
		}
	}
	return append(out, r.diffBody(other)...)
}

func (r *Request) diffBody(other *Request) []string {
	va, erra := parseJSON(r.Body)
	vb, errb := parseJSON(other.Body)
	if erra != nil || errb != nil || !isJSON(r.MediaType) || !isJSON(other.MediaType) {
		if bytes.Equal(r.Body, other.Body) {
			return nil
		}
		return []string{"body"}
	}
	both := func(path string) bool { return r.isVolatile(path) && other.isVolatile(path) }
	out := diff(va, vb, "", both)
	if len(out) == 0 && !bytes.Equal(appendCanonical(nil, va, "", r.isVolatile), appendCanonical(nil, vb, "", other.isVolatile)) {
		return []string{"volatile"} // equal but for what each leaves out
	}
	return out
}
