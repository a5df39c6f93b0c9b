package growth

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// sleeping is what tells one sleeping run from the others: they began one per
// millisecond, the last one now, and wake one per millisecond, the first one
// when the template does.
type sleeping struct {
	id          semel.ID
	key         semel.Key
	fingerprint []byte
	began, due  time.Time
}

func sleeper(like semel.Run, n, i int) sleeping {
	began := like.CreatedAt.Add(time.Duration(i-n) * time.Millisecond)
	s := sleeping{id: semel.NewID(began, tenBytes()), key: semel.MintKey(began, tenBytes()), began: began, due: like.DueAt.Add(time.Duration(i+1) * time.Millisecond)}
	sum := sha256.Sum256([]byte(s.key))
	s.fingerprint = append([]byte{1}, sum[:]...)
	return s
}

// asleep has the store write the run that the others are copied from.
func asleep(ctx context.Context, s semel.Store, d semel.WorkflowDefinition, n semel.NewRun) (semel.Run, error) {
	e, err := engine.New(ctx, s, engine.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return semel.Run{}, err
	}
	w, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: []semel.WorkflowDefinition{d}})
	if err != nil {
		return semel.Run{}, errors.Join(err, e.Close(ctx))
	}
	r, _, err := e.Start(ctx, n)
	if err == nil {
		_, err = w.Pass(ctx)
	}
	if err == nil {
		r, err = s.(semel.Runs).LoadRun(ctx, r.ID)
	}
	if err == nil && r.State != semel.RunWaiting {
		err = fmt.Errorf("the run to copy is %s, not asleep", r.State)
	}
	return r, errors.Join(err, e.Close(ctx))
}

// PostgresSleeping makes a store in the empty database at url with one run that
// sleeps, and n copies, through COPY.
func PostgresSleeping(ctx context.Context, url string, d semel.WorkflowDefinition, run semel.NewRun, n int) (err error) {
	store, err := postgres.Open(ctx, url, postgres.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	like, err := asleep(ctx, store, d, run)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	all := make([]sleeping, n)
	for i := range all {
		all[i] = sleeper(like, n, i)
	}
	err = copyRows(ctx, conn, "run", "id", like.ID, n, func(i int) map[string]any {
		s := &all[i]
		return map[string]any{"id": [16]byte(s.id), "key": string(s.key), "fingerprint": s.fingerprint, "created_at": s.began, "updated_at": s.began, "due_at": s.due}
	})
	if err != nil {
		return err
	}
	err = copyRows(ctx, conn, "wait", "run_id", like.ID, n, func(i int) map[string]any {
		s := &all[i]
		return map[string]any{"run_id": [16]byte(s.id), "until": s.due, "since": s.began}
	})
	if err != nil {
		return err
	}
	for _, tidy := range []string{"vacuum analyze semel.run", "vacuum analyze semel.wait", "checkpoint"} {
		if _, err := conn.Exec(ctx, tidy); err != nil {
			return err
		}
	}
	return verifySleeping(ctx, store, like, all)
}

// copyRows copies the row whose column has an ID, changed for each copy.
func copyRows(ctx context.Context, conn *pgx.Conn, table, column string, id semel.ID, n int, change func(i int) map[string]any) error {
	rows, err := conn.Query(ctx, fmt.Sprintf("select * from semel.%s where %s = $1", table, column), [16]byte(id))
	if err != nil {
		return err
	}
	var columns []string
	for _, field := range rows.FieldDescriptions() {
		columns = append(columns, field.Name)
	}
	row, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return err
	}
	columns, row = withoutSeq(columns, row)
	i := -1
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"semel", table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if i++; i == n {
			return nil, nil
		}
		return replace(columns, row, change(i))
	}))
	if err != nil {
		return fmt.Errorf("copy rows of %s: %w", table, err)
	}
	return nil
}

// SQLiteSleeping makes a database at path with one run that sleeps, and n
// copies, in large transactions.
func SQLiteSleeping(ctx context.Context, path string, d semel.WorkflowDefinition, run semel.NewRun, n int) (err error) {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	like, err := asleep(ctx, store, d, run)
	if err != nil {
		return err
	}
	db, err := openLoading(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all := make([]sleeping, n)
	for i := range all {
		all[i] = sleeper(like, n, i)
	}
	err = copyRowsSQLite(ctx, db, "run", "id", like.ID, n, func(i int) map[string]any {
		s := &all[i]
		return map[string]any{
			"id": s.id[:], "key": string(s.key), "fingerprint": s.fingerprint,
			"created_at": s.began.UnixNano(), "updated_at": s.began.UnixNano(), "due_at": s.due.UnixNano(),
		}
	})
	if err != nil {
		return err
	}
	err = copyRowsSQLite(ctx, db, "wait", "run", like.ID, n, func(i int) map[string]any {
		s := &all[i]
		return map[string]any{"run": s.id[:], "until": s.due.UnixNano(), "since": s.began.UnixNano()}
	})
	if err != nil {
		return err
	}
	return errors.Join(flushSQLite(ctx, db), verifySleeping(ctx, store, like, all))
}

func copyRowsSQLite(ctx context.Context, db *sql.DB, table, column string, id semel.ID, n int, change func(i int) map[string]any) error {
	columns, row, err := templateSQLite(ctx, db, table, column, id)
	if err != nil {
		return err
	}
	for from := 0; from < n; from += perTransaction {
		err := insertSQLite(ctx, db, table, columns, func(insert func([]any) error) error {
			for i := from; i < min(from+perTransaction, n); i++ {
				copied, err := replace(columns, row, change(i))
				if err == nil {
					err = insert(copied)
				}
				if err != nil {
					return fmt.Errorf("insert row %d of %s: %w", i+1, table, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifySleeping reads runs back through the store.
func verifySleeping(ctx context.Context, s semel.Store, like semel.Run, all []sleeping) error {
	runs := s.(semel.Runs)
	for i := range all {
		if !sampled(i, len(all)) {
			continue
		}
		r, err := runs.LoadRun(ctx, all[i].id)
		if err != nil {
			return fmt.Errorf("read back %s: %w", all[i].id, err)
		}
		waits, err := runs.Waits(ctx, r.ID)
		if err != nil {
			return fmt.Errorf("read back what %s waits for: %w", r.ID, err)
		}
		if r.State != like.State || len(waits) != 1 || waits[0].Until.Sub(r.DueAt).Abs() > time.Microsecond {
			return fmt.Errorf("run %s is %s and due at %v, with %d waits, after loading; want it %s with one that ends then", r.ID, r.State, r.DueAt, len(waits), like.State)
		}
	}
	return nil
}
