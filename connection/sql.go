package connection

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// database is a connection of kind sql as the file describes it.
type database struct {
	name, dir string
	url       string  // as it is written, without a password
	from      *Secret // or where it is kept, with or without one
	password  *Secret
	options   sqldest.Options
}

// database reads one connection of kind sql.
func (r *reader) database(key, value *yaml.Node, s *settings) {
	before := len(r.errs)
	db := &database{name: s.name, dir: s.dir}
	c := &db.options.Contract
	var effect, onFailed string
	urlAt, secretAt, contractAt := key, key, key
	r.mapping(value, "connection "+s.name, map[string]field{
		"kind": func(*yaml.Node) {}, // read already
		"url":  func(n *yaml.Node) { urlAt = n; r.databaseURL(n, db) },
		"secret": func(n *yaml.Node) {
			secretAt = n
			if ref, ok := r.secret(n, "secret", s.dir); ok {
				db.password = &ref
			}
		},
		"timeout":  r.duration(&db.options.Timeout, "timeout"),
		"max_rows": r.count(&db.options.MaxRows, "max_rows"),
		"limits": func(n *yaml.Node) {
			r.mapping(n, "limits", map[string]field{"at_once": r.count(&db.options.AtOnce, "at_once")})
		},
		"owner":     r.words(&c.Owner, "owner"),
		"effect":    func(n *yaml.Node) { contractAt = n; effect, _ = r.text(n, "effect") },
		"on_failed": func(n *yaml.Node) { contractAt = n; onFailed, _ = r.text(n, "on_failed") },
		"attempts":  r.count(&c.Attempts, "attempts"),
		"backoff":   r.duration(&c.Backoff, "backoff"),
	})
	if urlAt == key {
		r.missing(key, value, "url", "add url: postgres://user@host/name, sqlite:file.db or env:NAME")
	}
	c.Effect, c.OnFailed = semel.EffectKind(effect), semel.OnFailed(onFailed)
	s.database = db
	if len(r.errs) > before {
		return
	}
	whole := *c
	whole.Protection = semel.Transactional
	if err := whole.Validate(); err != nil {
		r.input(contractAt, err)
		return
	}
	if db.from != nil {
		return // what it holds is known when it is used
	}
	if u, err := url.Parse(db.url); err == nil && u.Scheme == "sqlite" && db.password != nil {
		r.wrong(secretAt, "leave it out", "an SQLite database takes no secret")
		return
	}
	probe, err := db.open(context.Background())
	if err != nil {
		r.input(urlAt, err)
		return
	}
	_ = probe.Close(context.Background()) // it is connected to nothing
}

// databaseURL reads a URL, or the reference to one; a message never repeats it.
func (r *reader) databaseURL(n *yaml.Node, db *database) {
	if n.Kind == yaml.ScalarNode {
		if ref, err := parseSecret(n.Value, db.dir); err == nil {
			db.from = &ref
			return
		}
	}
	text, ok := r.text(n, "url")
	if !ok {
		return
	}
	if u, err := url.Parse(text); err == nil {
		_, inUser := u.User.Password()
		if inUser || u.Query().Has("password") || u.Query().Has("sslpassword") {
			r.wrong(n, "give it as secret: env:NAME, or the whole url as env:NAME or file:PATH", "url holds a password")
			return
		}
	}
	db.url = text
}

// open makes the destination; nothing is connected yet.
func (db *database) open(ctx context.Context) (*sqldest.Database, error) {
	address := db.url
	if db.from != nil {
		kept, err := db.from.Resolve(ctx)
		if err != nil {
			return nil, fmt.Errorf("connection %s: %w", db.name, err)
		}
		address = kept
	}
	if u, err := url.Parse(address); err == nil && u.Scheme == "sqlite" && u.Opaque != "" && !filepath.IsAbs(u.Opaque) {
		u.Opaque = filepath.ToSlash(filepath.Join(db.dir, u.Opaque))
		address = u.String()
	}
	o := db.options
	o.Name = db.name
	if db.password != nil {
		o.Password = db.password.Resolve
	}
	return sqldest.New(address, o)
}
