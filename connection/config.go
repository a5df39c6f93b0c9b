package connection

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel"
)

// maxFile is the largest configuration file, in bytes.
const maxFile = 1 << 20

// Config is what a semel.yaml says. It opens each connection when it is first
// used; Close it. It is safe for concurrent use. The zero Config has no
// connections, and resolves endpoints given by hand.
type Config struct {
	// Tenant is part of every scope; empty where the file names none.
	Tenant string

	connections map[string]*settings

	mu     sync.Mutex
	opened map[string]destination
	closed bool
}

// destination is what a connection opens.
type destination interface {
	semel.Destination
	Contract() semel.Contract
	Close(ctx context.Context) error
}

var connectionName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// Load reads the file at path. What is wrong with its content is Errors.
func Load(path string) (*Config, error) {
	data, err := readFile(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the content of a file; relative paths in it start at the file's
// directory. The error is Errors.
func Parse(file string, data []byte) (*Config, error) {
	r := &reader{file: file}
	c := &Config{connections: map[string]*settings{}}
	if root := r.document(data); root != nil {
		r.mapping(root, "the file", map[string]field{
			"tenant": func(n *yaml.Node) {
				s, ok := r.text(n, "tenant")
				if ok && len(s) > 63 {
					r.wrong(n, "use a short name", "tenant has %d bytes, the limit is 63", len(s))
				}
				c.Tenant = s
			},
			"connections": func(n *yaml.Node) {
				r.members(n, "connections", func(key, value *yaml.Node) {
					if !connectionName.MatchString(key.Value) {
						r.wrong(key, "use lower-case letters, digits and _, at most 63 of them, beginning with a letter",
							"%s is not a name for a connection", shown(key.Value))
					}
					s := newSettings(key.Value, filepath.Dir(file))
					r.connection(key, value, s)
					c.connections[key.Value] = s
				})
			},
		})
	}
	if len(r.errs) > 0 {
		return nil, r.errs.sorted()
	}
	return c, nil
}

// Names lists the connections.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.connections)) }

// Secrets lists the references that a connection uses, not their values.
func (c *Config) Secrets(name string) []Secret {
	s, ok := c.connections[name]
	if !ok {
		return nil
	}
	var all []Secret
	if db := s.database; db != nil {
		for _, ref := range []*Secret{db.from, db.password} {
			if ref != nil {
				all = append(all, *ref)
			}
		}
	}
	for _, header := range slices.Sorted(maps.Keys(s.secrets)) {
		all = append(all, s.secrets[header].Secret)
	}
	return all
}

// sameHost reports whether a lookup stays where the secrets may go.
func sameHost(base, lookup string) bool {
	b, err1 := url.Parse(base)
	l, err2 := url.Parse(lookup)
	return err1 == nil && err2 == nil && strings.EqualFold(b.Scheme, l.Scheme) && strings.EqualFold(b.Host, l.Host)
}
