package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-dev/semel"
)

// uuid, text and instant turn a zero value into null.

func uuid(id semel.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != semel.ID{}} }

func text(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

func instant(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// timeOf is the reverse of instant.
func timeOf(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// interval is a duration in a form that every driver passes on.
func interval(d time.Duration) string {
	return fmt.Sprintf("%d microseconds", micros(d)/time.Microsecond)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
