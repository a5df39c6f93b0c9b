// Package growth fills stores with completed operations, and with runs that
// sleep, by the fastest way into each database. Every row is a copy of one that the store itself wrote,
// with its own identity, body and times; the store reads some back afterwards.
package growth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// Call makes the request of an operation from its key.
type Call func(semel.Key) semel.Call

// variation is what tells one row from the others.
type variation struct {
	id, token   semel.ID
	key         semel.Key
	fingerprint []byte
	body        []byte
	claimed     time.Time
}

// Each operation takes so long, and holds its claim for so long.
const (
	took  = 2 * time.Millisecond
	lease = 10 * time.Second
)

// vary makes the i-th of n operations: one per millisecond, the last one now.
func vary(call Call, begin time.Time, i int) variation {
	at := begin.Add(time.Duration(i) * time.Millisecond)
	v := variation{id: semel.NewID(at, tenBytes()), token: semel.NewID(at.Add(took), tenBytes()), key: semel.MintKey(at, tenBytes()), claimed: at}
	v.body = call(v.key).Request.Body
	sum := sha256.Sum256(v.body)
	v.fingerprint = append([]byte{1}, sum[:]...)
	return v
}

func begin(n int) time.Time {
	return time.Now().Add(-time.Duration(n) * time.Millisecond).UTC().Truncate(time.Millisecond)
}

func tenBytes() (b [10]byte) {
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return b
}

// write has the store write the operation that the others are copied from.
func write(ctx context.Context, s semel.Store, call Call) (semel.Operation, error) {
	e, err := engine.New(ctx, s, engine.Options{})
	if err != nil {
		return semel.Operation{}, err
	}
	out, err := e.Do(ctx, call(semel.MintKey(time.Now(), tenBytes())))
	if err == nil && out.Status != semel.StatusCompleted {
		err = fmt.Errorf("the operation to copy is %s", out.Status)
	}
	return out.Operation, errors.Join(err, e.Close(ctx))
}

// verify reads operations back through the store.
func verify(ctx context.Context, s semel.Store, like semel.Operation, sample []semel.Key) error {
	for _, key := range sample {
		o, err := s.Load(ctx, like.Scope, key)
		if err != nil {
			return fmt.Errorf("read back %s: %w", key, err)
		}
		if o.State != semel.Completed || o.Version != like.Version || o.Result == nil {
			return fmt.Errorf("operation %s is %s in version %d after loading, want %s in version %d", key, o.State, o.Version, like.State, like.Version)
		}
	}
	return nil
}

// sampled reports whether the i-th of n is among the few that are read back.
func sampled(i, n int) bool { return i == 0 || i == n/2 || i == n-1 }

// replace puts values into the row of a template. A column that the table does
// not have means that the schema has moved on and this package has not.
func replace(columns []string, row []any, values map[string]any) ([]any, error) {
	made := make([]any, len(row))
	found := 0
	for i, column := range columns {
		made[i] = row[i]
		if v, ok := values[column]; ok {
			made[i] = v
			found++
		}
	}
	if found != len(values) {
		return nil, fmt.Errorf("the table has columns %q, but not all that an operation's identity needs: bring bench/growth up to date", columns)
	}
	return made, nil
}
