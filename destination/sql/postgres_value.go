package sqldest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// binaryResults are the types whose text depends on settings of the session;
// all others are asked for as the text that the server would show.
func binaryResults() pgx.QueryResultFormatsByOID {
	return pgx.QueryResultFormatsByOID{
		pgtype.ByteaOID:       pgx.BinaryFormatCode,
		pgtype.DateOID:        pgx.BinaryFormatCode,
		pgtype.TimestampOID:   pgx.BinaryFormatCode,
		pgtype.TimestamptzOID: pgx.BinaryFormatCode,
	}
}

// writePostgres writes one value as JSON: numbers in the server's own digits,
// and what JSON has no type for as the server's text.
func writePostgres(dst *bytes.Buffer, field *pgconn.FieldDescription, raw []byte) error {
	if raw == nil {
		dst.WriteString("null")
		return nil
	}
	switch field.DataTypeOID {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		return writeNumber(dst, string(raw))
	case pgtype.BoolOID:
		fmt.Fprint(dst, string(raw) == "t")
		return nil
	case pgtype.JSONOID, pgtype.JSONBOID:
		return writeJSON(dst, raw)
	case pgtype.ByteaOID:
		return writeBytes(dst, raw)
	case pgtype.DateOID:
		var v pgtype.Date
		err := pgtype.NewMap().Scan(field.DataTypeOID, field.Format, raw, &v)
		return writeInstant(dst, v.Time, v.InfinityModifier, time.DateOnly, err)
	case pgtype.TimestampOID:
		var v pgtype.Timestamp
		err := pgtype.NewMap().Scan(field.DataTypeOID, field.Format, raw, &v)
		return writeInstant(dst, v.Time, v.InfinityModifier, "2006-01-02T15:04:05.999999999", err) // it has no zone
	case pgtype.TimestamptzOID:
		var v pgtype.Timestamptz
		err := pgtype.NewMap().Scan(field.DataTypeOID, field.Format, raw, &v)
		return writeInstant(dst, v.Time.UTC(), v.InfinityModifier, time.RFC3339Nano, err)
	}
	return writeText(dst, string(raw))
}

func writeInstant(dst *bytes.Buffer, at time.Time, infinity pgtype.InfinityModifier, layout string, err error) error {
	if err != nil {
		return err
	}
	if infinity != pgtype.Finite {
		return writeText(dst, infinity.String())
	}
	return writeText(dst, at.Format(layout))
}
