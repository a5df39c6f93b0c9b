package sqlite_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// BenchmarkOperation measures claim and outcome, both durable, by so many
// callers at once. Group commit should make 64 callers at least 8 times as
// fast as one.
func BenchmarkOperation(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "semel.db"), sqlite.Options{Create: true})
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := operate(s); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

func operate(s *sqlite.Store) error {
	var random [10]byte
	_, _ = rand.Read(random[:])
	id := semel.NewID(time.Now(), random)
	r := semel.Request{
		Kind: "http", Method: "POST", URL: "https://api.example.com/charges",
		MediaType: "application/json", Body: []byte(`{"amount":4200,"currency":"eur","customer":"cus_1234567890","description":"Invoice 4417"}`),
	}
	o := semel.Operation{Identity: semel.Identity{
		ID: id, Scope: "7:default/6:stripe/6:charge", Key: semel.Key("invoice-" + id.String()), Request: r,
		Contract: semel.Contract{Effect: semel.External, Protection: semel.Keyed, Window: 24 * time.Hour, KeyHeader: "Idempotency-Key", Timeout: 10 * time.Second},
	}}
	for _, ev := range []semel.Event{
		{Kind: semel.EvClaimed, At: time.Now(), Attempt: 1, By: "worker-1", Lease: time.Minute, SendWithin: 30 * time.Second},
		{Kind: semel.EvConfirmed, At: time.Now(), Attempt: 1, By: "worker-1", Result: &semel.Result{Reference: "ch_1", Status: 201, MediaType: "application/json", Body: []byte(`{"id":"ch_1"}`)}},
	} {
		c, err := o.Change(ev, id)
		if err != nil {
			return err
		}
		if o, err = s.Commit(context.Background(), c); err != nil {
			return err
		}
	}
	return nil
}
