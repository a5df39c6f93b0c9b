package semel

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Now is the store's time when the step was first reached; resumes return the
// same.
func Now(ctx Context, name string) (time.Time, error) {
	return recorded(ctx, name, func(now time.Time, _ [16]byte) (time.Time, error) { return now, nil })
}

// Random is a number from 0 up to but not including 1, the same on every
// resume. Never make a key of it.
func Random(ctx Context, name string) (float64, error) {
	return recorded(ctx, name, func(_ time.Time, random [16]byte) (float64, error) {
		return float64(binary.BigEndian.Uint64(random[:8])>>11) / math.Exp2(53), nil
	})
}

// Compute records what fn returns, encoded as JSON, so that resumes see the
// same value. Fn must have no effect in the world: it runs again if the worker
// dies before the record is durable. An error of fn is returned, and is not
// recorded.
func Compute[T any](ctx Context, name string, fn func() (T, error)) (T, error) {
	return recorded(ctx, name, func(time.Time, [16]byte) (T, error) { return fn() })
}

func recorded[T any](ctx Context, name string, fn func(time.Time, [16]byte) (T, error)) (T, error) {
	var out T
	rec, err := ctx.step(name, &ValueStep{Compute: func(now time.Time, random [16]byte) ([]byte, error) {
		v, err := fn(now, random)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		return data, nil
	}})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(rec.Result, &out); err != nil {
		return out, &UnreadableError{Path: rec.Path, Err: err}
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
