package connection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxSecret is the largest secret, in bytes.
const maxSecret = 64 << 10

// Secret is a reference to a value that Semel does not keep: env:NAME or
// file:PATH. It holds no value, so that showing it shows none.
type Secret struct {
	kind string // env or file
	name string
	dir  string // where a relative file path starts
}

// parseSecret reads a reference. The error does not repeat s, which may be the
// secret itself.
func parseSecret(s, dir string) (Secret, error) {
	kind, name, ok := strings.Cut(s, ":")
	if !ok || name == "" || kind != "env" && kind != "file" {
		return Secret{}, errors.New("is not a reference")
	}
	if kind == "env" && strings.ContainsAny(name, "= \x00") || strings.ContainsRune(name, 0) {
		return Secret{}, errors.New("names no variable or file")
	}
	return Secret{kind: kind, name: name, dir: dir}, nil
}

// String is the reference.
func (s Secret) String() string {
	if s.kind == "" {
		return ""
	}
	return s.kind + ":" + s.name
}

// MarshalText is the reference.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Resolve reads the value, as it is now. Line ends at the end of a file are
// not part of it.
func (s Secret) Resolve(context.Context) (string, error) {
	var value string
	switch s.kind {
	case "env":
		value = os.Getenv(s.name)
	case "file":
		path := s.name
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.dir, path)
		}
		data, err := readFile(path, maxSecret)
		if err != nil {
			return "", fmt.Errorf("secret %s: %w", s, err)
		}
		value = strings.TrimRight(string(data), "\r\n")
	}
	if value == "" {
		return "", fmt.Errorf("secret %s is empty", s)
	}
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return "", fmt.Errorf("secret %s holds a line break or another control character", s)
		}
	}
	return value, nil
}

// readFile reads a regular file of at most limit bytes: a pipe or a device
// could hold an attempt up for ever.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", path, info.Size(), limit)
	}
	return os.ReadFile(path)
}
