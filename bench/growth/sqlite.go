package growth

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// perTransaction is how many rows one transaction loads.
const perTransaction = 100_000

// SQLite makes a database at path with n operations, in large transactions
// that are flushed once, at the end.
func SQLite(ctx context.Context, path string, call Call, n int) (err error) {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	like, err := write(ctx, store, call)
	if err != nil {
		return err
	}
	sample, err := fillSQLite(ctx, path, like, call, n)
	if err != nil {
		return err
	}
	return verify(ctx, store, like, sample)
}

func fillSQLite(ctx context.Context, path string, like semel.Operation, call Call, n int) (sample []semel.Key, err error) {
	db, err := openLoading(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	columns, template, err := templateSQLite(ctx, db, "operation", "id", like.ID)
	if err != nil {
		return nil, err
	}
	begin := begin(n)
	for from := 0; from < n; from += perTransaction {
		err := insertSQLite(ctx, db, "operation", columns, func(insert func([]any) error) error {
			for i := from; i < min(from+perTransaction, n); i++ {
				v := vary(call, begin, i)
				if sampled(i, n) {
					sample = append(sample, v.key)
				}
				done := v.claimed.Add(took).UnixNano()
				row, err := replace(columns, template, map[string]any{
					"id": v.id[:], "key": string(v.key), "fingerprint": v.fingerprint, "body": v.body, "created_at": v.claimed.UnixNano(),
					"lease_until": v.claimed.Add(lease).UnixNano(), "updated_at": done, "second_at": done, "second_token": v.token[:],
				})
				if err == nil {
					err = insert(row)
				}
				if err != nil {
					return fmt.Errorf("insert operation %d: %w", i+1, err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sample, flushSQLite(ctx, db)
}

// openLoading opens a database to load it, without flushing.
func openLoading(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=synchronous(off)&_pragma=cache_size(-262144)&_txlock=immediate")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func flushSQLite(ctx context.Context, db *sql.DB) error {
	for _, flush := range []string{"pragma synchronous = full", "pragma wal_checkpoint(truncate)"} {
		if _, err := db.ExecContext(ctx, flush); err != nil {
			return err
		}
	}
	return nil
}

// insertSQLite inserts what fill makes, in one transaction.
func insertSQLite(ctx context.Context, db *sql.DB, table string, columns []string, fill func(insert func(row []any) error) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	text := fmt.Sprintf("insert into %s (%s) values (?%s)", table, strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1))
	stmt, err := tx.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }() // it was only run
	err = fill(func(row []any) error {
		_, err := stmt.ExecContext(ctx, row...)
		return err
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

// templateSQLite reads the row that the store wrote, without the number that
// SQLite gives each row.
func templateSQLite(ctx context.Context, db *sql.DB, table, column string, id semel.ID) (columns []string, row []any, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("select * from %s where %s = ?", table, column), id[:])
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	if columns, err = rows.Columns(); err != nil {
		return nil, nil, err
	}
	row = make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	if !rows.Next() {
		return nil, nil, errors.Join(fmt.Errorf("the row to copy is not in table %s", table), rows.Err())
	}
	if err := rows.Scan(into...); err != nil {
		return nil, nil, err
	}
	columns, row = withoutSeq(columns, row)
	return columns, row, rows.Err()
}

// withoutSeq leaves out the number that the database gives each row.
func withoutSeq(columns []string, row []any) ([]string, []any) {
	if seq := slices.Index(columns, "seq"); seq >= 0 {
		return slices.Delete(columns, seq, seq+1), slices.Delete(row, seq, seq+1)
	}
	return columns, row
}
