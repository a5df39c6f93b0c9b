package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-dev/semel"
)

// SQLSTATEs that the store acts on.
const (
	stateReadOnly       = "25006"
	stateDiskFull       = "53100"
	stateTooMany        = "53300"
	stateShutdown       = "57P01"
	stateCrash          = "57P02"
	stateStarting       = "57P03"
	stateLockTimeout    = "55P03"
	stateDeadlock       = "40P01"
	stateSerialization  = "40001"
	stateStalePlan      = "0A000"
	stateLostStatement  = "26000"
	stateNoTable        = "42P01"
	stateNoSchema       = "3F000"
	stateNoDatabase     = "3D000"
	stateDuplicateKey   = "23505"
	stateDenied         = "42501"
	stateProtocol       = "08P01"
	stateUnknownSetting = "42704"
)

// hints says what to do about an error of the server.
var hints = map[string]string{
	stateReadOnly:    "the database is read-only: connect to the primary, or end its read-only mode",
	stateDiskFull:    "the database's disk is full: free space there",
	stateTooMany:     "the database has no connection left: raise max_connections, or open the store with fewer committers and readers",
	stateShutdown:    "the database is shutting down: ask again when it is up",
	stateCrash:       "the database is restarting after a crash: ask again when it is up",
	stateStarting:    "the database is starting up or shutting down: ask again when it is up",
	stateLockTimeout: "another session holds a lock on what this changes: end it (pg_stat_activity names it)",
	stateNoTable:     "the schema is gone: run semel migrate up",
	stateNoSchema:    "the schema is gone: run semel migrate up",
	stateNoDatabase:  "create the database first, for example with createdb",
	stateDenied:      "grant this role the use of schema semel and its tables",
}

func stateOf(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// unavailable says that nothing was written, and what to do.
func unavailable(doing string, err error) error { return describe(semel.ErrUnavailable, doing, err) }

// unconfirmed says that the change may have been written.
func unconfirmed(doing string, err error) error { return describe(semel.ErrUnconfirmed, doing, err) }

func describe(kind error, doing string, err error) error {
	if hint, ok := hints[stateOf(err)]; ok {
		return fmt.Errorf("%w: %s: %s: %w", kind, doing, hint, err)
	}
	return fmt.Errorf("%w: %s: %w", kind, doing, err)
}

// fate is what an error says about a batch.
type fate int

const (
	// refused: the server rolled the batch back and said so.
	refused fate = iota
	// unsent: not one byte left.
	unsent
	// doubtful: the connection ended before the answer; the server may have
	// committed.
	doubtful
)

// refusal marks an error after which nothing was committed.
type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }

// connectError is a failure before a session began.
type connectError struct{ error }

func (e *connectError) Unwrap() error { return e.error }

// commitError is a failure of a COMMIT by itself. The driver may say that it
// was not sent where its answer was lost.
type commitError struct{ error }

func (e *commitError) Unwrap() error { return e.error }

// fateOf trusts only an error of the statement: one that ends the session can
// follow a commit whose acknowledgement it replaced.
func fateOf(err error) fate {
	if _, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	_, connecting := errors.AsType[*connectError](err)
	_, committing := errors.AsType[*commitError](err)
	if connecting || !committing && pgconn.SafeToRetry(err) {
		return unsent
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if ok && pg.SeverityUnlocalized == "ERROR" && pg.Code[:2] != "08" && pg.Code[:2] != "57" || ok && pg.Code == "57014" {
		return refused
	}
	return doubtful
}

// passing reports whether the same statements may well succeed at once.
func passing(err error) bool {
	switch stateOf(err) {
	case stateDeadlock, stateSerialization, stateStalePlan, stateLostStatement:
		return true
	}
	return false
}

// everyones reports whether err would meet every change, not only the one
// whose statement it answered.
func everyones(err error) bool {
	switch stateOf(err) {
	case stateReadOnly, stateDiskFull, stateTooMany, stateNoTable, stateNoSchema, stateDenied:
		return true
	}
	return false
}
