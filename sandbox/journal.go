package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// journal puts entries on disk. Entries written at the same time share one
// fsync and succeed or fail together.
type journal struct {
	mu    sync.Mutex // guards queue
	queue []*writing

	turn   sync.Mutex // held by the one that writes; guards what follows
	file   storage    // nil: in memory
	size   int64      // up to here every line is whole and on disk
	broken error      // why nothing can be written any more
}

// storage is the part of *os.File that a journal writes with.
type storage interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

type writing struct {
	entry entry
	done  bool // guarded by journal.turn, as is err
	err   error
}

// open reads the entries of a ledger file and returns the journal that
// continues it. A last line without its end was never answered for: it is the
// trace of a process killed while writing, and is cut off.
func open(path string, apply func(entry)) (*journal, error) {
	if path == "" {
		return &journal{}, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	size, err := load(file, apply)
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ledger %s: %w", path, err), file.Close())
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // makes a new file's name durable; not every system can
		_ = dir.Close()
	}
	return &journal{file: file, size: size}, nil
}

// load returns the length of the whole lines.
func load(file io.Reader, apply func(entry)) (int64, error) {
	content, err := io.ReadAll(file)
	if err != nil {
		return 0, err
	}
	whole := content[:bytes.LastIndexByte(content, '\n')+1]
	number := 0
	for line := range bytes.Lines(whole) {
		number++
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, fmt.Errorf("line %d is not an entry (%w): mend it, or move the file away to start with an empty ledger", number, err)
		}
		apply(e)
	}
	return int64(len(whole)), nil
}

// append puts e on disk and then applies it, in the order of the file. After an
// error e is neither on disk nor applied.
func (j *journal) append(e entry, apply func(entry)) error {
	w := &writing{entry: e}
	j.mu.Lock()
	j.queue = append(j.queue, w)
	j.mu.Unlock()

	j.turn.Lock()
	defer j.turn.Unlock()
	if w.done {
		return w.err
	}
	j.mu.Lock()
	batch := j.queue
	j.queue = nil
	j.mu.Unlock()

	err := j.write(batch)
	for _, one := range batch {
		one.done, one.err = true, err
		if err == nil {
			apply(one.entry)
		}
	}
	return err
}

func (j *journal) write(batch []*writing) error {
	if j.file == nil {
		return nil
	}
	if j.broken != nil {
		return j.broken
	}
	var lines bytes.Buffer
	for _, w := range batch {
		lines.Write(encode(w.entry))
		lines.WriteByte('\n')
	}
	_, err := j.file.Write(lines.Bytes())
	if err == nil {
		if err = j.file.Sync(); err == nil {
			j.size += int64(lines.Len())
			return nil
		}
		// After a failed fsync nobody knows what the disk holds.
		j.broken = fmt.Errorf("an earlier write did not reach the disk; check it and restart: %w", err)
	}
	if undo := j.file.Truncate(j.size); undo != nil && j.broken == nil {
		j.broken = fmt.Errorf("an earlier half-written line could not be removed; restart: %w", undo)
	}
	return err
}

func (j *journal) close() error {
	j.turn.Lock()
	defer j.turn.Unlock()
	if j.file == nil {
		return nil
	}
	j.broken = errors.New("the ledger is closed")
	return j.file.Close()
}
