package sqldest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// receiptTable is where receipts are. It is made in the first schema of the
// connection's search path.
const receiptTable = "semel_receipt"

const postgresTable = `create table if not exists semel_receipt (
	destination_key text primary key,
	scope           text not null,
	operation_key   text not null,
	operation       text not null,
	attempt         integer not null,
	fingerprint     bytea not null,
	happened        boolean not null,
	rows_affected   bigint not null,
	result          text not null,
	created_at      timestamptz not null default clock_timestamp()
)`

// goodbye is how long ending a transaction that failed may take.
const goodbye = 2 * time.Second

type postgres struct {
	pool *pgxpool.Pool

	mu    sync.Mutex
	known bool   // the table exists
	table string // of the receipts, with its schema where that is known
}

func newPostgres(address string, o Options) (backend, string, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, "", urlError("cannot be used for PostgreSQL") // the cause may repeat it
	}
	config.MaxConns, config.MinConns = int32(min(o.AtOnce, 1000)), 0
	if o.Password != nil {
		config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
			password, err := o.Password(ctx)
			c.Password = password
			return err
		}
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, "", urlError("cannot be used for PostgreSQL")
	}
	c := config.ConnConfig
	host := c.Host
	if strings.HasPrefix(host, "/") {
		host = "localhost" // a socket
	}
	at := url.URL{Scheme: "postgres", Host: net.JoinHostPort(host, strconv.Itoa(int(c.Port))), Path: "/" + c.Database}
	return &postgres{pool: pool, table: receiptTable}, at.String(), nil
}

func (p *postgres) close() { p.pool.Close() }

func (p *postgres) ready(ctx context.Context) error {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known {
		return nil
	}
	name, err := p.findTable(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		_, denied := p.pool.Exec(ctx, postgresTable)
		if name, err = p.findTable(ctx); errors.Is(err, pgx.ErrNoRows) { // somebody else may have made it meanwhile
			return missingTable(denied, postgresTable)
		}
	}
	if err != nil {
		return explainPostgres(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.table, p.known = name, true
	return nil
}

// missingTable says how to make the table by hand.
func missingTable(denied error, ddl string) error {
	if denied == nil {
		denied = errors.New("it is made, and not found in the search path")
	}
	return fmt.Errorf("table %s, which holds the receipts, cannot be made (%w): let somebody who may make it run: %s; and grant select, insert and update on it",
		receiptTable, denied, strings.Join(strings.Fields(ddl), " "))
}

func (p *postgres) findTable(ctx context.Context) (name string, err error) {
	err = p.pool.QueryRow(ctx, `
		select format('%I.%I', n.nspname, c.relname)
		from pg_catalog.pg_class c
		join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where c.oid = to_regclass($1)`, pgx.QueryExecModeDescribeExec, receiptTable).Scan(&name)
	return name, err
}

// begin opens the transaction and lets the server bound it, so that it ends
// even if this process is frozen: a statement by its time, and the pause
// between two by the same time.
func (p *postgres) begin(ctx context.Context, a access, limit time.Duration) (transaction, error) {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("the database was not reached: %w", explainPostgres(err))
	}
	p.mu.Lock()
	tx := &postgresTx{conn: conn, table: p.table, access: a}
	p.mu.Unlock()
	mode := map[access]string{reading: "repeatable read read only", writing: "read committed read write"}[a]
	ms := max(limit.Milliseconds(), 1)
	_, err = conn.Exec(ctx, fmt.Sprintf(`begin isolation level %s;
		set local statement_timeout = %d;
		set local idle_in_transaction_session_timeout = %d;
		select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'`, mode, ms, ms))
	if err != nil {
		tx.abandon()
		return nil, explainPostgres(err)
	}
	return tx, nil
}

// postgresTx is one transaction. The server takes one statement at a time from
// it, and none of those a user may give ends it.
type postgresTx struct {
	conn   *pgxpool.Conn
	table  string
	access access
}

func (tx *postgresTx) take(ctx context.Context, r *receipt) (bool, error) {
	tag, err := tx.conn.Exec(ctx, `
		insert into `+tx.table+`
			(destination_key, scope, operation_key, operation, attempt, fingerprint, happened, rows_affected, result)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		on conflict (destination_key) do nothing`,
		pgx.QueryExecModeDescribeExec, r.key, r.scope, r.name, r.operation, r.attempt, r.fingerprint, r.happened, r.affected, string(r.result))
	return tag.RowsAffected() == 1, explainPostgres(err)
}

func (tx *postgresTx) find(ctx context.Context, key string) (*receipt, error) {
	query := `
		select scope, operation_key, operation, attempt, fingerprint, happened, rows_affected, result
		from ` + tx.table + `
		where destination_key = $1`
	if tx.access == writing {
		query += ` for update`
	}
	r, result := receipt{key: key}, ""
	err := tx.conn.QueryRow(ctx, query, pgx.QueryExecModeDescribeExec, key).
		Scan(&r.scope, &r.name, &r.operation, &r.attempt, &r.fingerprint, &r.happened, &r.affected, &result)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	r.result = []byte(result)
	return &r, explainPostgres(err)
}

func (tx *postgresTx) replace(ctx context.Context, r *receipt) error {
	tag, err := tx.conn.Exec(ctx, `
		update `+tx.table+`
		set scope = $2,
			operation_key = $3,
			operation = $4,
			attempt = $5,
			fingerprint = $6,
			happened = $7,
			rows_affected = $8,
			result = $9
		where destination_key = $1`,
		pgx.QueryExecModeDescribeExec, r.key, r.scope, r.name, r.operation, r.attempt, r.fingerprint, r.happened, r.affected, string(r.result))
	if err == nil && tag.RowsAffected() != 1 {
		return errReceiptGone
	}
	return explainPostgres(err)
}

var errReceiptGone = errors.New("the statement removed its own receipt")

func (tx *postgresTx) run(ctx context.Context, st *statement, t *table) error {
	args, err := texts(st.Args, argument.text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows, err := tx.conn.Query(ctx, st.Statement, append([]any{pgx.QueryExecModeDescribeExec, binaryResults()}, args...)...)
	if err != nil {
		return explainPostgres(err)
	}
	defer rows.Close()
	if err := readPostgres(rows, t); err != nil {
		cancel() // the rest is not read
		return err
	}
	rows.Close()
	t.affected = rows.CommandTag().RowsAffected()
	return explainPostgres(rows.Err())
}

func readPostgres(rows pgx.Rows, t *table) error {
	fields := rows.FieldDescriptions()
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	if err := t.head(names); err != nil {
		return err
	}
	for rows.Next() {
		raw := rows.RawValues()
		err := t.add(func(dst *bytes.Buffer, i int) error { return writePostgres(dst, &fields[i], raw[i]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// commit trusts an error of the commit itself; one that ends the session can
// follow a commit whose acknowledgement it replaced. pgconn.SafeToRetry is no
// help: for a connection that is cut after a commit it says that nothing was
// sent.
func (tx *postgresTx) commit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if tx.conn.Conn().IsClosed() {
		return errors.New("the connection ended before the commit")
	}
	tag, err := tx.conn.Exec(ctx, "commit")
	if err == nil {
		if tag.String() != "COMMIT" {
			return errors.New("the server rolled it back")
		}
		return nil
	}
	if rolledBack(err) {
		return explainPostgres(err)
	}
	return &lostCommit{explainPostgres(err)}
}

// rolledBack reports whether a commit that ended with err can never take effect.
// An error that says that the outcome is unknown (08007, and 40003, which
// databases that speak PostgreSQL's protocol answer) is none of these.
func rolledBack(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.SeverityUnlocalized == "ERROR" && !strings.HasPrefix(pg.Code, "08") &&
		(!strings.HasPrefix(pg.Code, "57") || pg.Code == stateCanceled) && pg.Code != stateUnknown
}

// abandon leaves no transaction behind: what is not rolled back is closed, and
// the server then rolls it back.
func (tx *postgresTx) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	conn := tx.conn.Conn()
	if status := conn.PgConn().TxStatus(); !conn.IsClosed() && status != 'I' {
		if _, err := tx.conn.Exec(ctx, "rollback"); err != nil {
			_ = conn.Close(ctx)
		}
	}
	tx.conn.Release()
}

// SQLSTATEs after which the next move is known.
const (
	stateCanceled = "57014"
	stateUnknown  = "40003" // statement_completion_unknown
)

var postgresHints = map[string]string{
	"40001":       "another transaction was in the way; try again",
	"40P01":       "another transaction was in the way; try again",
	"55P03":       "another session holds a lock; try again",
	stateCanceled: "it took longer than the connection's timeout; try again, or raise it",
	"53300":       "the database has no connection left; try again, or let fewer work at once",
	"53100":       "the database's disk is full; free space there",
	"25006":       "the database or the transaction is read-only; a query may not write",
	"42501":       "grant this role what the statement needs",
}

// explainPostgres adds the server's details, and what to do.
func explainPostgres(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	if pg.Detail != "" {
		err = fmt.Errorf("%w: %s", err, pg.Detail)
	}
	if hint, ok := postgresHints[pg.Code]; ok {
		err = fmt.Errorf("%w: %s", err, hint)
	}
	return err
}
