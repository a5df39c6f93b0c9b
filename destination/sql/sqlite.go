package sqldest

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

const sqliteTable = `create table if not exists main.semel_receipt (
	destination_key text primary key,
	scope           text not null,
	operation_key   text not null,
	operation       text not null,
	attempt         integer not null,
	fingerprint     blob not null,
	happened        integer not null,
	rows_affected   integer not null,
	result          text not null,
	created_at      text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) without rowid`

type sqliteFile struct {
	db     *sql.DB
	at     string        // its location
	writer chan struct{} // holds the one who writes; SQLite lets others wait unfairly

	mu    sync.Mutex
	known bool // the table exists
}

// newSQLite reads sqlite:///path, or sqlite:path for a relative one.
func newSQLite(u *url.URL, o Options) (backend, string, error) {
	name := u.Path
	if u.Opaque != "" {
		unescaped, err := url.PathUnescape(u.Opaque)
		if err != nil {
			return nil, "", urlError("holds a path that cannot be read")
		}
		name = unescaped
	}
	query := u.Query()
	for key := range query {
		if key != "_pragma" {
			return nil, "", urlError(fmt.Sprintf("holds the parameter %q; SQLite takes _pragma only", key))
		}
	}
	if name == "" || u.Host != "" {
		return nil, "", urlError("names no file")
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, "", urlError("names a file that cannot be found from here")
	}
	at := url.URL{Scheme: "sqlite", Host: "localhost", Path: filepath.ToSlash(path)}
	query["_pragma"] = append([]string{"busy_timeout(10000)", "synchronous(full)"}, query["_pragma"]...)
	query.Set("mode", "rw")
	db, err := sql.Open("sqlite", "file:"+at.EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, "", urlError("cannot be used for SQLite")
	}
	db.SetMaxOpenConns(o.AtOnce)
	return &sqliteFile{db: db, at: at.String(), writer: make(chan struct{}, 1)}, at.String(), nil
}

func (f *sqliteFile) close() { _ = f.db.Close() } // no transaction is open any more

func (f *sqliteFile) ready(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		return nil
	}
	there := 0
	err := f.db.QueryRowContext(ctx, `select count(*) from main.sqlite_schema where type = 'table' and name = ?`, receiptTable).Scan(&there)
	if err != nil {
		return fmt.Errorf("the database was not reached: %s: %w", f.at, explainSQLite(err))
	}
	if there == 0 {
		if _, err := f.db.ExecContext(ctx, sqliteTable); err != nil {
			return missingTable(explainSQLite(err), sqliteTable)
		}
	}
	f.known = true
	return nil
}

// begin takes the place of the only writer, for a transaction that writes.
func (f *sqliteFile) begin(ctx context.Context, a access, _ time.Duration) (transaction, error) {
	begin, leave := "begin deferred", func() {}
	if a == writing {
		select {
		case f.writer <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		begin, leave = "begin immediate", func() { <-f.writer }
	}
	conn, err := f.db.Conn(ctx)
	if err != nil {
		leave()
		return nil, fmt.Errorf("the database was not reached: %s: %w", f.at, explainSQLite(err))
	}
	tx := &sqliteTx{conn: conn, leave: leave}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		tx.abandon()
		return nil, explainSQLite(err)
	}
	return tx, nil
}

type sqliteTx struct {
	conn  *sql.Conn
	leave func() // lets the next one write
	over  bool
}

func (tx *sqliteTx) take(ctx context.Context, r *receipt) (bool, error) {
	done, err := tx.conn.ExecContext(ctx, `
		insert into main.semel_receipt
			(destination_key, scope, operation_key, operation, attempt, fingerprint, happened, rows_affected, result)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict (destination_key) do nothing`,
		r.key, r.scope, r.name, r.operation, r.attempt, r.fingerprint, r.happened, r.affected, string(r.result))
	if err != nil {
		return false, explainSQLite(err)
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

func (tx *sqliteTx) find(ctx context.Context, key string) (*receipt, error) {
	r, result := receipt{key: key}, ""
	err := tx.conn.QueryRowContext(ctx, `
		select scope, operation_key, operation, attempt, fingerprint, happened, rows_affected, result
		from main.semel_receipt
		where destination_key = ?`, key).
		Scan(&r.scope, &r.name, &r.operation, &r.attempt, &r.fingerprint, &r.happened, &r.affected, &result)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	r.result = []byte(result)
	return &r, explainSQLite(err)
}

func (tx *sqliteTx) replace(ctx context.Context, r *receipt) error {
	done, err := tx.conn.ExecContext(ctx, `
		update main.semel_receipt
		set scope = ?,
			operation_key = ?,
			operation = ?,
			attempt = ?,
			fingerprint = ?,
			happened = ?,
			rows_affected = ?,
			result = ?
		where destination_key = ?`,
		r.scope, r.name, r.operation, r.attempt, r.fingerprint, r.happened, r.affected, string(r.result), r.key)
	if err != nil {
		return explainSQLite(err)
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errReceiptGone
	}
	return nil
}

func (tx *sqliteTx) run(ctx context.Context, st *statement, t *table) error {
	if !single(st.Statement) {
		return errors.New("more than one statement is given: make each an action of its own")
	}
	args, err := texts(st.Args, argument.native)
	if err != nil {
		return err
	}
	before, _, err := tx.changes(ctx)
	if err != nil {
		return err
	}
	permit := staysInside
	if st.Verb == VerbQuery {
		permit = onlyReads
	}
	if err := tx.watch(permit); err != nil {
		return err
	}
	if err := tx.read(ctx, st.Statement, args, t); err != nil {
		return err
	}
	if err := tx.watch(nil); err != nil {
		return err
	}
	after, last, err := tx.changes(ctx)
	if after != before {
		t.affected = last
	}
	return err
}

// changes returns how many rows this connection has changed so far, and how
// many its last insert, update or delete did.
func (tx *sqliteTx) changes(ctx context.Context) (all, last int64, err error) {
	err = tx.conn.QueryRowContext(ctx, `select total_changes(), changes()`).Scan(&all, &last)
	return all, last, err
}

// watch lets SQLite refuse what a statement may not do; nil lets it do all.
func (tx *sqliteTx) watch(permit sqlite.AuthorizerFn) error {
	return tx.conn.Raw(func(conn any) error {
		return conn.(sqlite.AuthorizerRegisterer).RegisterAuthorizer(permit)
	})
}

// onlyReads permits a query what reads.
func onlyReads(action sqlite.AuthorizerActionCode, _, _, _, _ string) sqlite.AuthorizerReturnCode {
	if slices.Contains([]sqlite.AuthorizerActionCode{sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthFunction, sqlite.AuthRecursive}, action) {
		return sqlite.AuthorizerOK
	}
	return sqlite.AuthorizerDeny
}

// staysInside permits all that neither ends the transaction nor leaves the
// database.
func staysInside(action sqlite.AuthorizerActionCode, _, _, _, _ string) sqlite.AuthorizerReturnCode {
	if slices.Contains([]sqlite.AuthorizerActionCode{
		sqlite.AuthTransaction, sqlite.AuthSavepoint, sqlite.AuthAttach, sqlite.AuthDetach, sqlite.AuthPragma,
	}, action) {
		return sqlite.AuthorizerDeny
	}
	return sqlite.AuthorizerOK
}

func (tx *sqliteTx) read(ctx context.Context, text string, args []any, t *table) error {
	rows, err := tx.conn.QueryContext(ctx, text, args...)
	if err != nil {
		return explainSQLite(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	names, types := make([]string, len(columns)), make([]string, len(columns))
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i, c := range columns {
		names[i], types[i], into[i] = c.Name(), c.DatabaseTypeName(), &values[i]
	}
	if err := t.head(names); err != nil {
		return err
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := t.add(func(dst *bytes.Buffer, i int) error { return writeSQLite(dst, types[i], values[i]) }); err != nil {
			return err
		}
	}
	return explainSQLite(rows.Err())
}

// writeSQLite writes one value as JSON, by the type it is declared with.
func writeSQLite(dst *bytes.Buffer, declared string, value any) error {
	switch v := value.(type) {
	case nil:
		dst.WriteString("null")
		return nil
	case int64:
		if strings.HasPrefix(declared, "BOOL") && (v == 0 || v == 1) {
			fmt.Fprint(dst, v == 1)
			return nil
		}
		fmt.Fprint(dst, v)
		return nil
	case float64:
		return writeFloat(dst, v)
	case []byte:
		return writeBytes(dst, v)
	case time.Time:
		return writeTime(dst, v)
	case string:
		if declared == "JSON" {
			return writeJSON(dst, []byte(v))
		}
		return writeText(dst, v)
	}
	return fmt.Errorf("has a value of type %T", value)
}

// commit is not broken off: SQLite answers as fast as the disk does. What it
// then refuses is rolled back, and only trouble with the disk leaves it open
// whether the commit is in the file.
func (tx *sqliteTx) commit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := tx.conn.ExecContext(context.WithoutCancel(ctx), "commit")
	if err == nil {
		tx.over = true
		return nil
	}
	switch sqliteCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_CONSTRAINT:
		return explainSQLite(err)
	}
	return &lostCommit{explainSQLite(err)}
}

// abandon leaves no transaction behind: a connection that does not roll back
// is closed, which does.
func (tx *sqliteTx) abandon() {
	defer tx.leave()
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	err := tx.watch(nil)
	if err == nil && !tx.over {
		_, err = tx.conn.ExecContext(ctx, "rollback")
	}
	if err != nil {
		_ = tx.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = tx.conn.Close()
}

// sqliteCode is the primary result code in err, 0 for another error.
func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explainSQLite adds what to do.
func explainSQLite(err error) error {
	hint := ""
	switch sqliteCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		hint = "another process holds the database; try again"
	case lib.SQLITE_CANTOPEN:
		hint = "check that the file exists, and its permissions"
	case lib.SQLITE_READONLY:
		hint = "the file or its directory cannot be written"
	case lib.SQLITE_FULL:
		hint = "the disk is full; free some space"
	case lib.SQLITE_AUTH:
		hint = "a statement may not end its transaction, attach files or set pragmas, and a query may not write"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
