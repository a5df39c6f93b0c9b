package connection

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// settings are one connection as the file describes it.
type settings struct {
	name, dir string
	kind      string
	base      string
	profile   *httpdest.Profile
	given     map[string]string      // headers that every request holds
	secrets   map[string]placedValue // headers whose value is a secret
	ca        *x509.CertPool
	contract  semel.Contract
	inferred  bool // the file names no protection
	actions   map[string]*action
	atOnce    int
	perSecond float64
	database  *database // for kind sql, which uses none of the above
}

// placedValue is a secret with what stands before it.
type placedValue struct {
	before string
	Secret
}

func newSettings(name, dir string) *settings {
	return &settings{name: name, dir: dir, given: map[string]string{}, secrets: map[string]placedValue{}, actions: map[string]*action{}}
}

const howToRefer = "keep the value out of the file: write env:NAME or file:PATH"

// declared is what the file says about the contract, before the profile's part
// is known.
type declared struct {
	contract     semel.Contract
	protection   *yaml.Node
	window       *yaml.Node
	keyHeader    *yaml.Node
	lookup       *yaml.Node
	effect       *yaml.Node
	secret       *Secret
	secretHeader string
	secretAt     *yaml.Node
}

// connection reads one connection.
func (r *reader) connection(key, value *yaml.Node, s *settings) {
	if isDatabase(value) {
		r.database(key, value, s)
		return
	}
	var d declared
	c := &d.contract
	var actions *yaml.Node
	baseAt := value
	fields := r.contractFields(&d)
	maps.Copy(fields, map[string]field{
		"kind": func(n *yaml.Node) {
			if s.kind, _ = r.text(n, "kind"); s.kind != "" && s.kind != httpdest.Kind {
				r.wrong(n, "use http or sql", "kind %s is unknown", shown(s.kind))
			}
		},
		"base":    func(n *yaml.Node) { baseAt = n; s.base, _ = r.text(n, "base") },
		"profile": func(n *yaml.Node) { s.profile = r.profile(n, s.dir) },
		"secret": func(n *yaml.Node) {
			if ref, ok := r.secret(n, "secret", s.dir); ok {
				d.secret = &ref
			}
		},
		"secret_header": func(n *yaml.Node) { d.secretAt = n; d.secretHeader, _ = r.text(n, "secret_header") },
		"headers":       func(n *yaml.Node) { r.headers(n, s) },
		"ca":            func(n *yaml.Node) { s.ca = r.roots(n, s.dir) },
		"key_header":    func(n *yaml.Node) { d.keyHeader = n; c.KeyHeader, _ = r.text(n, "key_header") },
		"key_quoted":    r.truth(&c.KeyQuoted, "key_quoted"),
		"write_timeout": r.duration(&c.WriteTimeout, "write_timeout"),
		"actions":       func(n *yaml.Node) { actions = n },
		"limits": func(n *yaml.Node) {
			r.mapping(n, "limits", map[string]field{
				"at_once":    r.count(&s.atOnce, "at_once"),
				"per_second": r.rate(&s.perSecond, "per_second"),
			})
		},
	})
	r.mapping(value, "connection "+s.name, fields)
	if value.Kind != yaml.MappingNode {
		return
	}
	switch {
	case s.kind == "":
		r.missing(key, value, "kind", "add kind: http or kind: sql")
	case s.base == "" && baseAt == value:
		r.missing(key, value, "base", "add base: https://... where it lives")
	}
	r.place(s, &d)
	r.complete(key, s, &d, baseAt)
	if actions != nil {
		r.actions(actions, s)
	}
}

// contractFields read the parts of a contract that an action may say for
// itself.
func (r *reader) contractFields(d *declared) map[string]field {
	c := &d.contract
	return map[string]field{
		"protection": func(n *yaml.Node) {
			d.protection = n
			r.words((*string)(&c.Protection), "protection")(n)
		},
		"effect": func(n *yaml.Node) {
			d.effect = n
			r.words((*string)(&c.Effect), "effect")(n)
		},
		"window":           func(n *yaml.Node) { d.window = n; r.duration(&c.Window, "window")(n) },
		"timeout":          r.duration(&c.Timeout, "timeout"),
		"max_processing":   r.duration(&c.MaxProcessing, "max_processing"),
		"visible_after":    r.duration(&c.VisibleAfter, "visible_after"),
		"absence_is_proof": r.truth(&c.AbsenceIsProof, "absence_is_proof"),
		"lookup":           func(n *yaml.Node) { d.lookup = n; r.words(&c.LookupURL, "lookup")(n) },
		"found_in":         r.words(&c.FoundIn, "found_in"),
		"owner":            r.words(&c.Owner, "owner"),
		"metered":          r.truth(&c.Metered, "metered"),
		"on_failed":        r.words((*string)(&c.OnFailed), "on_failed"),
		"attempts":         r.count(&c.Attempts, "attempts"),
		"backoff":          r.duration(&c.Backoff, "backoff"),
	}
}

// isDatabase reports whether a connection is of kind sql, whose members differ.
func isDatabase(value *yaml.Node) bool {
	for i := 0; value.Kind == yaml.MappingNode && i+1 < len(value.Content); i += 2 {
		if value.Content[i].Value == "kind" && value.Content[i+1].Value == sqldest.Kind {
			return true
		}
	}
	return false
}

func (r *reader) missing(key, value *yaml.Node, name, fix string) {
	for i := 0; i+1 < len(value.Content); i += 2 {
		if value.Content[i].Value == name {
			return // it is there, and something else is wrong with it
		}
	}
	r.wrong(key, fix, "connection %s has no %s", shown(key.Value), name)
}

// place decides which header carries the secret.
func (r *reader) place(s *settings, d *declared) {
	if d.secret == nil {
		if d.secretAt != nil {
			r.wrong(d.secretAt, "add secret: env:NAME", "secret_header has no secret to carry")
		}
		return
	}
	name, before := "Authorization", "Bearer "
	if d.secretHeader != "" {
		name, before = http.CanonicalHeaderKey(d.secretHeader), ""
	}
	if d.secretAt != nil && !r.headerName(d.secretAt, d.secretHeader) {
		return
	}
	s.secrets[name] = placedValue{before: before, Secret: *d.secret}
}

// complete joins what the file says with what the profile knows.
func (r *reader) complete(key *yaml.Node, s *settings, d *declared, baseAt *yaml.Node) {
	if s.profile == nil {
		generic, err := httpdest.BuiltIn("generic")
		if err != nil {
			r.wrong(key, "", "%v", err)
			return
		}
		s.profile = generic
	}
	known := s.profile.Contract()
	c := &d.contract
	c.Profile = known.Profile
	if c.KeyHeader != "" && (known.KeyHeader == "" || !strings.EqualFold(c.KeyHeader, known.KeyHeader)) && !r.headerName(d.keyHeader, c.KeyHeader) {
		return
	}
	if c.KeyHeader == "" {
		c.KeyHeader, c.KeyQuoted = known.KeyHeader, known.KeyQuoted || c.KeyQuoted
	} else {
		c.KeyHeader = http.CanonicalHeaderKey(c.KeyHeader)
	}
	if c.Window == 0 {
		c.Window = known.Window
	}
	s.inferred = d.protection == nil
	if !r.promise(key, s, d) {
		return
	}
	s.contract = *c
	if s.base != "" {
		probe := httpdest.Options{Name: s.name, Base: s.base, Profile: s.profile, Contract: *c}
		if _, err := httpdest.New(probe); err != nil {
			r.input(baseAt, err)
		}
	}
}

// promise checks what d says against what the profile knows, and completes it.
func (r *reader) promise(key *yaml.Node, s *settings, d *declared) bool {
	c, before := &d.contract, len(r.errs)
	at := key
	for _, n := range []*yaml.Node{d.lookup, d.window, d.protection} {
		if n != nil {
			at = n
		}
	}
	if known := s.profile.Contract(); d.window != nil && known.Window > 0 && c.Window > known.Window {
		r.wrong(d.window, "use "+known.Window.String()+" or less", "window is longer than profile %s can rely on", s.profile.ID())
		return false
	}
	if d.protection == nil && s.inferred {
		c.Protection = inferred(*c)
	}
	if c.Protection == semel.Keyed && c.KeyHeader == "" {
		r.wrong(at, "name it with key_header, for example Idempotency-Key", "keyed protection needs the header that carries the key")
		return false
	}
	if c.Protection == semel.Transactional {
		r.wrong(at, "use keyed, lookup, absolute, commutes or none", "transactional protection is not to be had over HTTP")
		return false
	}
	if d.lookup != nil && c.LookupURL != "" {
		if strings.HasPrefix(c.LookupURL, "/") {
			c.LookupURL = strings.TrimSuffix(s.base, "/") + c.LookupURL
		}
		if !sameHost(s.base, c.LookupURL) {
			r.wrong(d.lookup, "begin it with /", "lookup leads elsewhere than base, where the secret must not go")
			return false
		}
		if err := httpdest.CheckTemplate(c.LookupURL); err != nil {
			r.wrong(d.lookup, "use {key}, {destination_key} or {body.FIELD}", "lookup cannot be used: %v", err)
			return false
		}
	}
	if err := c.Validate(); err != nil {
		r.input(at, err)
	}
	return len(r.errs) == before
}

// inferred is the protection that the declared facts add up to.
func inferred(c semel.Contract) semel.Protection {
	switch {
	case c.KeyHeader != "" && c.Window > 0:
		return semel.Keyed
	case c.LookupURL != "":
		return semel.Lookup
	}
	return semel.Unprotected
}

func (r *reader) input(n *yaml.Node, err error) {
	if e, ok := errors.AsType[*semel.InputError](err); ok {
		r.wrong(n, e.Hint, "%s %s", e.Field, e.Problem)
		return
	}
	r.wrong(n, "", "%v", err)
}

// profile reads a built-in profile's name, or the path of a file.
func (r *reader) profile(n *yaml.Node, dir string) *httpdest.Profile {
	name, ok := r.text(n, "profile")
	if !ok {
		return nil
	}
	path, isFile := strings.CutPrefix(name, "file:")
	if !isFile {
		p, err := httpdest.BuiltIn(name)
		if err != nil {
			r.input(n, err)
		}
		return p
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	data, err := readFile(path, maxFile)
	if err != nil {
		r.wrong(n, "name a readable file, or a built-in profile", "profile cannot be read: %v", err)
		return nil
	}
	p, err := httpdest.ParseProfile(data)
	if err != nil {
		r.wrong(n, "mend "+path, "%v", err)
		return nil
	}
	if _, err := httpdest.BuiltIn(p.Name); err == nil {
		r.wrong(n, "give your profile a name of its own", "profile %s is the name of a built-in one", shown(p.Name))
		return nil
	}
	return p
}

// secret reads a reference; a message never repeats what was written.
func (r *reader) secret(n *yaml.Node, what, dir string) (Secret, bool) {
	if n.Kind != yaml.ScalarNode {
		r.wrong(n, howToRefer, "%s is not a reference", what)
		return Secret{}, false
	}
	s, err := parseSecret(n.Value, dir)
	if err != nil {
		r.wrong(n, howToRefer, "%s %v", what, err)
		return Secret{}, false
	}
	return s, true
}

func (r *reader) headers(n *yaml.Node, s *settings) {
	r.members(n, "headers", func(key, value *yaml.Node) {
		if !r.headerName(key, key.Value) {
			return
		}
		name := http.CanonicalHeaderKey(key.Value)
		if value.Kind == yaml.ScalarNode {
			if ref, err := parseSecret(value.Value, s.dir); err == nil {
				s.secrets[name] = placedValue{Secret: ref}
				return
			}
		}
		if semel.IsCredential(name) {
			r.wrong(value, howToRefer, "header %s is a credential", name)
			return
		}
		if text, ok := r.text(value, "header "+name); ok {
			s.given[name] = text
		}
	})
}

// headerName checks a name by the rules for requests.
func (r *reader) headerName(n *yaml.Node, name string) bool {
	_, _, err := httpdest.NewRequest(http.MethodPost, "https://localhost/", []string{name + ": x"}, nil)
	if err != nil {
		r.input(n, err)
	}
	return err == nil
}

func (r *reader) roots(n *yaml.Node, dir string) *x509.CertPool {
	path, ok := r.text(n, "ca")
	if !ok {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	data, err := readFile(path, maxFile)
	if err != nil {
		r.wrong(n, "name a readable PEM file", "ca cannot be read: %v", err)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		r.wrong(n, "name a PEM file with CERTIFICATE blocks", "ca holds no certificate")
		return nil
	}
	return pool
}

// kindOf is the kind of the connection.
func (s *settings) kindOf() string {
	if s.database != nil {
		return sqldest.Kind
	}
	return httpdest.Kind
}

// options are how the connection is opened.
func (s *settings) options() httpdest.Options {
	return httpdest.Options{
		Name: s.name, Base: s.base, Profile: s.profile, Contract: s.contract, Given: s.given,
		Header: s.header, AtOnce: s.atOnce, PerSecond: s.perSecond, RootCAs: s.ca,
	}
}

// header resolves the secrets for one attempt.
func (s *settings) header(ctx context.Context) (map[string]string, error) {
	out := make(map[string]string, len(s.secrets))
	for name, p := range s.secrets {
		value, err := p.Resolve(ctx)
		if err != nil {
			return nil, err
		}
		out[name] = p.before + value
	}
	return out, nil
}
