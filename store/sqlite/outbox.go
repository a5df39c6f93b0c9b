package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

// StartTx is Start inside a transaction of the caller, on the caller's own
// connection to the file: the run is there if and when the caller commits. The
// ID of the run is known before.
func StartTx(ctx context.Context, tx *sql.Tx, n semel.NewRun) (semel.Run, bool, error) {
	if n.Trigger.Kind == "" {
		n.Trigger.Kind = semel.ByTransaction
	}
	b, err := newBirth(n, time.Now().UnixNano())
	if err != nil {
		return semel.Run{}, false, err
	}
	at, err := stampTx(ctx, tx)
	if err != nil {
		return semel.Run{}, false, err
	}
	if err := b.insert(ctx, tx, at); err != nil {
		return semel.Run{}, false, fmt.Errorf("start a run of %s: %w", n.Workflow, err)
	}
	return b.run, b.existing, nil
}

// SendTx is Send inside a transaction of the caller, on the caller's own
// connection to the file. A worker that calls Deliver wakes and starts runs
// after the caller has committed.
func SendTx(ctx context.Context, tx *sql.Tx, e semel.InboxEvent) error {
	if err := e.Validate(); err != nil {
		return err
	}
	at, err := stampTx(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := insertInto(ctx, tx, e, at, false); err != nil {
		return fmt.Errorf("send event %s: %w", e.Name, err)
	}
	return nil
}

// stampTx takes the time of a caller's transaction, and the lock that writing
// needs.
func stampTx(ctx context.Context, tx *sql.Tx) (int64, error) {
	var st stamp
	err := tx.QueryRowContext(ctx, stampStore, time.Now().UnixNano()).Scan(&st.clock, &st.suspect, &st.schema, &st.awaited)
	switch latest := len(migrations()); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, errors.New("this database is not Semel's: it has no row in the table store")
	case err != nil:
		return 0, fmt.Errorf("the transaction's database must be the one that Semel uses, and not be locked: %w", err)
	case st.schema < latest:
		return 0, fmt.Errorf("schema %d is older than this binary (%d): run semel migrate up", st.schema, latest)
	case st.schema > latest:
		return 0, fmt.Errorf("schema %d is newer than this binary (%d): upgrade semel", st.schema, latest)
	}
	return st.clock, nil
}
