package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/semel-dev/semel"
)

// coded is an error of SQLite.
type coded interface {
	error
	Code() int // with what SQLite adds to its primary code
}

var _ coded = (*sqlite.Error)(nil)

// code is the primary SQLite result code in err, 0 for another error.
func code(err error) int {
	if e, ok := errors.AsType[coded](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// lacksShared: there was no space for the memory that processes share, a file
// beside the database. SQLite calls that an I/O error, and it can come after
// the commit record is in the log.
func lacksShared(err error) bool {
	e, ok := errors.AsType[coded](err)
	return ok && e.Code() == lib.SQLITE_IOERR_SHMSIZE
}

// isBusy: another connection holds what this one needs; try again.
func isBusy(err error) bool {
	c := code(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED || c == lib.SQLITE_PROTOCOL
}

// isStorage: the trouble is with the file or the machine, not with one row.
func isStorage(err error) bool {
	switch code(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB,
		lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_NOMEM, lib.SQLITE_NOLFS:
		return true
	}
	return false
}

const diskFull = "the disk is full: free some space, then repeat the request"

// explain says what is wrong with the file at path and what to do about it.
func explain(path string, err error) error {
	hint := ""
	switch code(err) {
	case lib.SQLITE_FULL:
		hint = diskFull
	case lib.SQLITE_READONLY:
		hint = "it cannot be written: check the owner and mode of the file and of its directory"
	case lib.SQLITE_CORRUPT:
		hint = "it is damaged: stop using it and restore a backup"
	case lib.SQLITE_NOTADB:
		hint = "it is not an SQLite database: check the path"
	case lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		hint = "it cannot be opened: check the path and the permissions of the file and of its directory"
	case lib.SQLITE_IOERR:
		hint = "the disk reported an error: check the disk and the system log"
		if lacksShared(err) {
			hint = diskFull
		}
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		hint = "another process holds it: find out which (fuser " + path + ")"
	default:
		return fmt.Errorf("database %s: %w", path, err)
	}
	return fmt.Errorf("database %s: %s: %w", path, hint, err)
}

// unavailable: nothing was written.
func unavailable(path string, err error) error {
	return fmt.Errorf("%w: %w", semel.ErrUnavailable, explain(path, err))
}

// unconfirmed: it may have been written.
func unconfirmed(path string, err error) error {
	return fmt.Errorf("%w: %w", semel.ErrUnconfirmed, explain(path, err))
}
