package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// transact runs do in a transaction of its own. It repeats one that met a
// deadlock or a dead connection, and one whose commit was not acknowledged:
// then doubt is set, and do must recognise what it did before.
func (s *Store) transact(ctx context.Context, doing string, do func(tx pgx.Tx, doubt bool) error) error {
	deadline := time.Now().Add(s.group.patience)
	doubt := false
	for tries, pause := 1, 5*time.Millisecond; ; tries++ {
		err := s.transaction(ctx, func(tx pgx.Tx) error { return do(tx, doubt) })
		if err == nil {
			return nil
		}
		if v, ok := errors.AsType[*verdict](err); ok {
			return v.error
		}
		fate := fateOf(err)
		doubt = doubt || fate == doubtful
		switch {
		case fate == refused && passing(err) && tries <= 10:
		case stateOf(err) == stateLockTimeout && tries <= 5:
		case (doubt || tries <= 5 && again(err)) && ctx.Err() == nil && time.Now().Before(deadline) && !everyones(err):
		case doubt:
			return unconfirmed(doing, err)
		default:
			return unavailable(doing, err)
		}
		time.Sleep(pause)
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// verdict is an error that do decided on, not one of the database.
type verdict struct{ error }

func (v *verdict) Unwrap() error { return v.error }

// transaction is one try.
func (s *Store) transaction(ctx context.Context, do func(tx pgx.Tx) error) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return &connectError{err}
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // does nothing after a commit
	if s.group.server.pooled.Load() {
		if _, err := tx.Exec(ctx, `select set_config('synchronous_commit', 'on', true)`); err != nil {
			return &refusal{err}
		}
	}
	if err := do(tx); err != nil {
		return &refusal{err} // nothing is committed
	}
	if err := tx.Commit(ctx); err != nil {
		return &commitError{err}
	}
	return nil
}
