package sqlite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

// BenchmarkClaimRun measures starting, claiming and ending one run beside runs
// that sleep, and beside runs that are due and that another worker has: neither
// may slow it down.
func BenchmarkClaimRun(b *testing.B) {
	for _, c := range []struct {
		name          string
		sleeping, due int
	}{{"alone", 0, 0}, {"sleeping=1000000", 1_000_000, 0}, {"due elsewhere=1000000", 0, 1_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			path := newPath(b)
			s := openStore(b, path, sqlite.Options{Create: true})
			fill(b, path, "w", c.sleeping, time.Now().Add(time.Hour))
			fill(b, path, "elsewhere", c.due, time.Now().Add(-time.Hour))
			ctx := context.Background()
			b.ResetTimer()
			for i := range b.N {
				if _, _, err := s.Start(ctx, semel.NewRun{Workflow: "w", Version: 1, Key: semel.Key(fmt.Sprint(i))}, nil); err != nil {
					b.Fatal(err)
				}
				runs, err := s.Claim(ctx, worker, []semel.WorkflowRef{{Name: "w", Version: 1}}, 10)
				if err != nil || len(runs) != 1 {
					b.Fatalf("claimed %d runs, error %v", len(runs), err)
				}
				f := semel.RunFence{Run: runs[0].ID, Attempt: 1}
				if out := s.CommitRun(ctx, semel.RunCommit{RunFence: f, Next: &semel.RunNext{State: semel.RunCompleted}}); out.RunErr != nil {
					b.Fatal(out.RunErr)
				}
			}
		})
	}
}

// fill writes n runs that wait for the same time.
func fill(b *testing.B, path, workflow string, n int, due time.Time) {
	b.Helper()
	execRaw(b, raw(b, path), `
		with recursive i(n) as (select 1 where ?1 > 0 union all select n + 1 from i where n < ?1)
		insert into run (id, workflow, version, definition, key, input, fingerprint, trigger, priority, state, attempt, by, due_at, created_at, updated_at)
		select cast(printf('%s%08d', substr(?2 || '--------', 1, 8), n) as blob), ?2, 1, '', 'sleeper-' || n, '{}', randomblob(33), '{"kind":"person"}', 0, 'waiting', 1, 'worker', ?3 + n, ?3, ?3
		from i`, n, workflow, due.UnixNano())
}

// BenchmarkStep measures a step of a run with an effect: the claim, and the
// outcome with the next claim in one commit.
func BenchmarkStep(b *testing.B) {
	s := openStore(b, newPath(b), sqlite.Options{Create: true})
	r := begin(b, s, "r")
	f := semel.RunFence{Run: r.ID, Attempt: 1}
	var last semel.Operation
	ctx := context.Background()
	b.ResetTimer()
	for i := range b.N {
		c := semel.RunCommit{RunFence: f}
		if i > 0 {
			outcome := change(b, last, semel.Event{Kind: semel.EvConfirmed, Attempt: 1})
			c.Outcome = &outcome
		}
		o := newOperation(fmt.Sprint("k", i))
		o.Run, o.Step = r.ID, fmt.Sprint("s", i)
		next := change(b, o, claimEvent())
		next.Token = o.ID
		c.Claim = &next
		out := s.CommitRun(ctx, c)
		if out.OutcomeErr != nil || out.ClaimErr != nil || out.RunErr != nil {
			b.Fatal(out.OutcomeErr, out.ClaimErr, out.RunErr)
		}
		last = out.Claim
	}
}
