package growth

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
)

// Postgres fills the empty database at url with n operations through COPY.
func Postgres(ctx context.Context, url string, call Call, n int) (err error) {
	store, err := postgres.Open(ctx, url, postgres.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	like, err := write(ctx, store, call)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	sample, err := copyPostgres(ctx, conn, like, call, n)
	if err != nil {
		return err
	}
	for _, tidy := range []string{"vacuum analyze semel.operation", "checkpoint"} {
		if _, err := conn.Exec(ctx, tidy); err != nil {
			return err
		}
	}
	return verify(ctx, store, like, sample)
}

func copyPostgres(ctx context.Context, conn *pgx.Conn, like semel.Operation, call Call, n int) (sample []semel.Key, err error) {
	rows, err := conn.Query(ctx, "select * from semel.operation where id = $1", [16]byte(like.ID))
	if err != nil {
		return nil, err
	}
	var columns []string
	for _, field := range rows.FieldDescriptions() {
		columns = append(columns, field.Name)
	}
	template, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return nil, err
	}
	begin, i := begin(n), 0
	loaded, err := conn.CopyFrom(ctx, pgx.Identifier{"semel", "operation"}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == n {
			return nil, nil
		}
		v := vary(call, begin, i)
		if sampled(i, n) {
			sample = append(sample, v.key)
		}
		i++
		done := v.claimed.Add(took)
		return replace(columns, template, map[string]any{
			"id": [16]byte(v.id), "key": string(v.key), "fingerprint": v.fingerprint, "body": v.body, "created_at": v.claimed,
			"lease_until": v.claimed.Add(lease), "updated_at": done, "second_at": done, "second_token": [16]byte(v.token),
		})
	}))
	if err == nil && loaded != int64(n) {
		err = fmt.Errorf("%d rows, want %d", loaded, n)
	}
	if err != nil {
		return nil, fmt.Errorf("copy operations: %w", err)
	}
	return sample, nil
}
