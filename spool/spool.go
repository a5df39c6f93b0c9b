package spool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/semel-dev/semel"
)

// MaxSize is how much a spool holds, in bytes. It is there for a store that
// stays away for days, not to be filled.
const MaxSize = 256 << 20

// abandoned is the age at which a file that is still being written belongs to
// a process that died.
const abandoned = time.Minute

// ErrFull says that the evidence was not kept, since there is no room for it.
// The operation it speaks of stays unknown.
var ErrFull = errors.New("no room for more evidence")

// SetAsideError names a file that is not evidence, or no longer. It was renamed
// and stays for a person to look at.
type SetAsideError struct {
	Path    string // its new name
	Problem string
}

func (e *SetAsideError) Error() string {
	return fmt.Sprintf("%s: %s; it was set aside, look at it and remove it", e.Path, e.Problem)
}

// Spool is a directory of evidence. It is safe for concurrent use, also by
// several processes.
type Spool struct {
	dir  *os.Root
	mu   sync.Mutex // orders the puts of this process
	last int64      // the newest number given
}

// Open opens the spool in dir, which is made if it is missing. Its parent must
// exist.
func Open(dir string) (*Spool, error) {
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		if err := syncParent(dir); err != nil {
			return nil, fmt.Errorf("open spool: %w", err)
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("open spool: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("open spool: %s is a symbolic link: name the directory itself", dir)
	case !info.IsDir():
		return nil, fmt.Errorf("open spool: %s is not a directory", dir)
	case isStrange(info):
		return nil, fmt.Errorf("open spool: %s belongs to another user: use a directory of your own", dir)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("open spool: others may write to %s, so they could forge evidence: chmod go-w %s", dir, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	opened, err := root.Stat(".")
	if err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(fmt.Errorf("open spool: %s changed meanwhile", dir), err, root.Close())
	}
	return &Spool{dir: root}, nil
}

// Close releases the directory.
func (s *Spool) Close() error { return s.dir.Close() }

// Put keeps e. When it returns nil, e is durable. After an error e may or may
// not have been kept; ErrFull says that it was not.
func (s *Spool) Put(e semel.Evidence) error {
	content, err := encode(e)
	if err != nil {
		return fmt.Errorf("keep evidence about operation %s: %w", e.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.put(content); err != nil {
		return fmt.Errorf("keep evidence about operation %s: %w", e.ID, err)
	}
	return nil
}

func (s *Spool) put(content []byte) error {
	files, err := s.list()
	if err != nil {
		return err
	}
	size, newest := int64(len(content)), s.last
	for _, f := range files {
		if f.stage != foreign {
			size += f.size
			newest = max(newest, f.number)
		}
	}
	if size > MaxSize {
		return fmt.Errorf("%w: %s holds %d MiB that the store never took: run semel do or semel op retry, which takes it in once the database answers",
			ErrFull, s.dir.Name(), MaxSize>>20)
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	s.last = max(time.Now().UnixNano(), newest+1)
	f := file{number: s.last, random: hex.EncodeToString(random[:])}
	if err := s.write(f.name(writing), content); err != nil {
		_ = s.dir.Remove(f.name(writing)) // or Each sets it aside
		return s.explain(err)
	}
	if err := s.dir.Rename(f.name(writing), f.name(kept)); err != nil {
		_ = s.dir.Remove(f.name(writing))
		return s.explain(err)
	}
	return s.sync()
}

func (s *Spool) write(name string, content []byte) error {
	f, err := s.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// explain says what to do about a disk without room.
func (s *Spool) explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || isQuota(err) {
		return fmt.Errorf("%w: the disk of %s is full: free some space there (%w)", ErrFull, s.dir.Name(), err)
	}
	return err
}

// sync makes the names in the directory durable.
func (s *Spool) sync() error {
	d, err := s.dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func syncParent(dir string) error {
	d, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Len counts the evidence that waits.
func (s *Spool) Len() (int, error) {
	files, err := s.list()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, f := range files {
		if f.stage == kept {
			n++
		}
	}
	return n, nil
}

// Each hands the evidence to fn, oldest first, and forgets a piece only after
// fn returned nil. Evidence that another call or process is handing on at this
// moment is left to it. After an error of fn the next piece follows, unless the
// error wraps semel.ErrUnavailable or ctx has ended.
//
// The error joins those of fn and one *SetAsideError for each file that is not
// evidence; what could be handed on was handed on all the same.
func (s *Spool) Each(ctx context.Context, fn func(semel.Evidence) error) error {
	files, err := s.list()
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	var problems []error
	for _, f := range files {
		if ctx.Err() != nil {
			problems = append(problems, context.Cause(ctx))
			break
		}
		err := s.handOn(f, fn)
		if err != nil {
			problems = append(problems, err)
		}
		if errors.Is(err, semel.ErrUnavailable) {
			break
		}
	}
	return errors.Join(problems...)
}

func (s *Spool) handOn(f file, fn func(semel.Evidence) error) error {
	switch {
	case f.stage == foreign:
		return s.setAside(f, "is not a file of the spool")
	case f.stage == writing && time.Since(f.written) < abandoned:
		return nil // somebody is writing it
	}
	name := f.name(f.stage)
	h, ok, err := s.hold(name)
	if err != nil || !ok {
		return err
	}
	defer h.Close() // which ends the lock
	content, err := io.ReadAll(io.LimitReader(h, maxFile+1))
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	e, err := decode(content)
	var newer *newerError
	switch {
	case errors.As(err, &newer):
		return fmt.Errorf("read spool: %s: %w", filepath.Join(s.dir.Name(), name), err)
	case err != nil:
		return s.setAside(f, err.Error())
	}
	if err := fn(e); err != nil {
		return fmt.Errorf("hand on evidence about operation %s: %w", e.ID, err)
	}
	if err := s.dir.Remove(name); err != nil {
		return fmt.Errorf("forget evidence about operation %s: %w", e.ID, err)
	}
	return s.sync()
}

// hold opens and locks a file; ok is false if it is gone or held by another.
func (s *Spool) hold(name string) (h *os.File, ok bool, err error) {
	h, err = s.dir.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, false, fmt.Errorf("read spool: %w: run this as the user who wrote it", err)
	case err != nil:
		return nil, false, fmt.Errorf("read spool: %w", err)
	}
	if locked, err := lock(h); err != nil || !locked {
		return nil, false, errors.Join(err, h.Close())
	}
	// Whoever held it before may have removed it meanwhile.
	held, err := h.Stat()
	if err != nil {
		return nil, false, errors.Join(err, h.Close())
	}
	named, err := s.dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(held, named):
		return nil, false, h.Close()
	case err != nil:
		return nil, false, errors.Join(err, h.Close())
	}
	return h, true, nil
}

// setAside renames what is not evidence so that it is reported once, and kept.
func (s *Spool) setAside(f file, problem string) error {
	from := f.name(f.stage)
	to := from + aside
	for n := 2; ; n++ {
		if _, err := s.dir.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = fmt.Sprintf("%s-%d%s", from, n, aside)
	}
	switch err := s.dir.Rename(from, to); {
	case errors.Is(err, fs.ErrNotExist):
		return nil // another process did
	case err != nil:
		return fmt.Errorf("set aside: %w", err)
	}
	return &SetAsideError{Path: filepath.Join(s.dir.Name(), to), Problem: strings.TrimSpace(problem)}
}
