package workflowfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Load reads a workflow file, with the texts that its steps name: they are in
// its directory or below. It sets checks.File, and is [Parse] otherwise. The
// error says that the workflow file itself cannot be read.
func Load(path string, checks Checks) (*Definition, []Problem, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = root.Close() }()
	checks.File = func(name string) ([]byte, error) { return readBelow(root, name) }
	d, problems := Parse(path, data, checks)
	return d, problems, nil
}

// readBelow reads a file, of which one byte more than MaxFile is enough.
func readBelow(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a plain file")}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
