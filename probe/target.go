package probe

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// DefaultKeyHeader carries the key where nothing is declared.
const DefaultKeyHeader = "Idempotency-Key"

// Target is what is probed.
type Target struct {
	// Destination sends, with its secrets, and its profile reads the answers. The
	// caller closes it.
	Destination *httpdest.Destination
	// Request is one that the destination accepts.
	Request semel.Request
	// Withheld are the values of its headers that are never shown.
	Withheld map[string]string
	// Contract is what is declared.
	Contract semel.Contract
	// Label is the member of the body, as a dotted path, that takes the label of
	// a request. Without it requests are told apart by their keys only.
	Label string
	// Changed is the body that ChangedBody sends. Nil is the request's own with
	// another label, so that without Label the question is not asked.
	Changed []byte
	// Refused is a body that the destination refuses, for AfterError. Nil is an
	// empty object with the label.
	Refused []byte
	// Reference is where an answer names its effect. Empty is what the profile
	// says.
	Reference string
	// Secrets are values that no report may show, besides those of Withheld.
	Secrets []string
}

// Options bound a probe. The zero Options ask everything but AfterDelay, with at
// most DefaultMaxEffects requests.
type Options struct {
	// MaxEffects is the most requests that may have an effect; 0 means
	// DefaultMaxEffects.
	MaxEffects int
	// Delay is how long after its first request a key is tried again. Without it
	// AfterDelay is not asked.
	Delay time.Duration
	// LookFor is how long a lookup is repeated until it finds a new effect; 0
	// means DefaultLookFor.
	LookFor time.Duration
	// ID tells the labels and keys of this probe from another's; 1 to 12
	// lower-case letters and digits. Empty draws one.
	ID string
	// Name is that of the profile; empty means "probed".
	Name string
}

// What a probe does where Options say nothing.
const (
	DefaultMaxEffects = 12
	DefaultLookFor    = 10 * time.Second
	defaultTimeout    = 10 * time.Second
)

var (
	idForm   = regexp.MustCompile(`^[a-z0-9]{1,12}$`)
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// Probe is ready to run, once.
type Probe struct {
	target  Target
	options Options
	spare   string // key header to try where none is declared
	secret  *regexp.Regexp
}

// New checks what is to be probed. Nothing is sent. The error is
// *semel.InputError.
func New(t Target, o Options) (*Probe, error) {
	if o.MaxEffects == 0 {
		o.MaxEffects = DefaultMaxEffects
	}
	if o.LookFor == 0 {
		o.LookFor = DefaultLookFor
	}
	if o.ID == "" {
		var random [6]byte
		_, _ = rand.Read(random[:]) // it never fails
		o.ID = hex.EncodeToString(random[:])
	}
	if o.Name == "" {
		o.Name = "probed"
	}
	if t.Reference == "" {
		t.Reference = t.Destination.Profile().Reference.At
	}
	if t.Contract.Timeout == 0 {
		t.Contract.Timeout = defaultTimeout
	}
	p := &Probe{target: t, options: o, secret: t.spellings()}
	if t.Contract.KeyHeader == "" {
		p.spare = DefaultKeyHeader
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Probe) validate() error {
	t, o := &p.target, &p.options
	switch {
	case o.MaxEffects < 1:
		return &semel.InputError{Field: "max-effects", Problem: "leaves nothing to send", Hint: "allow at least 1"}
	case o.Delay < 0 || o.LookFor < 0:
		return &semel.InputError{Field: "delay", Problem: "is negative", Hint: "give a time such as 5s"}
	case !idForm.MatchString(o.ID):
		return &semel.InputError{Field: "id", Problem: fmt.Sprintf("%q is no id", o.ID), Hint: "use 1 to 12 lower-case letters and digits"}
	case !nameForm.MatchString(o.Name):
		return &semel.InputError{Field: "name", Problem: fmt.Sprintf("%q is no name for a profile", o.Name), Hint: "use lower-case letters, digits and dashes"}
	case t.Request.Kind != httpdest.Kind:
		return &semel.InputError{Field: "request", Problem: fmt.Sprintf("is of kind %q", t.Request.Kind), Hint: "only HTTP destinations can be probed"}
	}
	if _, err := httpdest.BuiltIn(o.Name); err == nil {
		return &semel.InputError{Field: "name", Problem: o.Name + " is the name of a built-in profile", Hint: "give yours a name of its own"}
	}
	name := p.keyHeader()
	if err := httpdest.CheckKeyHeader(name); err != nil {
		return err
	}
	if _, given := t.Request.Header[name]; given || t.Withheld[name] != "" {
		return &semel.InputError{Field: "header " + name, Problem: "carries the key and cannot be given", Hint: "leave it out; the probe sends keys of its own"}
	}
	if t.Label != "" {
		if _, err := labelled(t.Request.Body, t.Label, "x"); err != nil {
			return err
		}
	}
	if t.Contract.LookupURL != "" {
		r := p.request("x")
		return httpdest.CheckLookup(&r, t.Contract.LookupURL)
	}
	return nil
}

// keyHeader is the header that carries keys.
func (p *Probe) keyHeader() string {
	if p.spare != "" {
		return p.spare
	}
	return http.CanonicalHeaderKey(p.target.Contract.KeyHeader)
}

// label is the text that marks what a request made.
func (p *Probe) label(of string) string { return "semel-probe-" + p.options.ID + "-" + of }

// key is a key of this probe: 36 bytes, as long as those that Semel sends.
func (p *Probe) key(of string) string {
	k := "semel-probe-" + p.options.ID + "-" + of + "-"
	return k + strings.Repeat("0", max(36-len(k), 0))
}

// request is the target's request with a label.
func (p *Probe) request(label string) semel.Request {
	r := p.target.Request
	r.Header = maps.Clone(r.Header)
	if r.Header == nil {
		r.Header = map[string]string{}
	}
	r.Header["User-Agent"] = "semel-probe"
	if p.target.Label != "" {
		if body, err := labelled(r.Body, p.target.Label, label); err == nil { // New has tried it
			r.Body = body
		}
	}
	return r
}

// changed is the request of another intention, for a key that is used; false
// where there is none.
func (p *Probe) changed(label string) (semel.Request, bool) {
	r := p.request(label)
	if p.target.Changed != nil {
		r.Body = p.body(p.target.Changed, label)
	}
	return r, p.target.Changed != nil || p.target.Label != ""
}

// wrong is a request that the destination should refuse.
func (p *Probe) wrong(label string) semel.Request {
	r := p.request(label)
	body := p.target.Refused
	if body == nil {
		body = []byte("{}")
	}
	r.Body = p.body(body, label)
	r.MediaType = semel.MediaTypeOf(r.Body)
	return r
}

// body puts the label into a body where it fits.
func (p *Probe) body(body []byte, label string) []byte {
	if p.target.Label == "" {
		return body
	}
	if with, err := labelled(body, p.target.Label, label); err == nil {
		return with
	}
	return body
}

// labelled is a JSON object with text at a dotted path, every number to its
// digit.
func labelled(body []byte, path, text string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil || root == nil {
		return nil, &semel.InputError{Field: "label", Problem: "needs a JSON object to stand in", Hint: "give a body such as {\"amount\": 100}, or leave out the label"}
	}
	object := root
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := object[name].(map[string]any)
		if _, taken := object[name]; taken && !ok {
			return nil, &semel.InputError{Field: "label", Problem: fmt.Sprintf("%q leads through %s, which is no object", path, name), Hint: "name a member that may hold text"}
		}
		if !ok {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	object[names[len(names)-1]] = text
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// specific reports whether a lookup asks for one request of this probe, and not
// for anything that was there before.
func (p *Probe) specific() bool {
	url := p.target.Contract.LookupURL
	return strings.Contains(url, "{key}") || strings.Contains(url, "{destination_key}") ||
		p.target.Label != "" && strings.Contains(url, "{body."+p.target.Label+"}")
}
