package sqldest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestOnlyARolledBackCommitIsRefused: an answer that does not say that the
// transaction was rolled back leaves its outcome unknown.
func TestOnlyARolledBackCommitIsRefused(t *testing.T) {
	server := func(severity, code string) error {
		return fmt.Errorf("commit: %w", &pgconn.PgError{SeverityUnlocalized: severity, Code: code})
	}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"serialization failure":           {server("ERROR", "40001"), true},
		"deadlock":                        {server("ERROR", "40P01"), true},
		"a deferred constraint":           {server("ERROR", "23503"), true},
		"cancelled before it committed":   {server("ERROR", "57014"), true},
		"statement completion unknown":    {server("ERROR", "40003"), false},
		"transaction resolution unknown":  {server("ERROR", "08007"), false},
		"ended by the administrator":      {server("FATAL", "57P01"), false},
		"the server crashed":              {server("FATAL", "57P02"), false},
		"the connection broke":            {errors.New("unexpected EOF"), false},
		"nobody waited for the answer":    {context.DeadlineExceeded, false},
		"an error that ended the session": {server("FATAL", "40001"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rolledBack(tt.err); got != tt.want {
				t.Errorf("it says rolled back: %t, want %t", got, tt.want)
			}
		})
	}
}
