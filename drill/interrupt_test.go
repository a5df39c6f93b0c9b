package drill_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
	"github.com/semel-dev/semel/store/sqlite"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// counter is a destination that counts effects by key. With keyed it knows a
// key again.
type counter struct {
	mu      sync.Mutex
	effects map[string]int
	keyed   bool
}

func (c *counter) Send(_ context.Context, s *semel.Send) semel.Event {
	if err := s.Begin(); err != nil {
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := string(s.Operation.Key)
	if !c.keyed || c.effects[key] == 0 {
		c.effects[key]++
	}
	return semel.Event{Kind: semel.EvConfirmed, Result: &semel.Result{Body: []byte(`{"id":"x"}`)}}
}

type order struct {
	ID    string   `json:"id"`
	Items []string `json:"items"`
}

type answer struct {
	ID string `json:"id"`
}

func action[In any](name string, c *counter, key func(In) string) semel.Action[In, answer] {
	contract := semel.Contract{Protection: semel.Unprotected}
	if c.keyed {
		contract = semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, MaxProcessing: time.Second}
	}
	return semel.Action[In, answer]{Name: name, Key: key, Send: semel.Effect[In, answer]{Connection: "c", Contract: contract, Destination: c}}
}

// orders is a workflow with every kind of step.
func orders(c *counter) semel.Workflow[order] {
	charge := action("charge", c, func(o order) string { return o.ID + " charge" })
	pack := action("pack", c, func(item string) string { return item + " pack" })
	publish := action("publish", c, func(o order) string { return o.ID + " publish" })
	child := semel.Workflow[order]{Name: "child", Func: func(ctx semel.Context, o order) error {
		_, err := semel.Do(ctx, action("note", c, func(o order) string { return o.ID + " note" }), o)
		return err
	}}
	return semel.Workflow[order]{
		Name: "orders", Key: func(o order) string { return o.ID },
		Actions: []semel.Definition{charge.Definition(), pack.Definition(), publish.Definition()},
		Func: func(ctx semel.Context, o order) error {
			if _, err := semel.Do(ctx, charge, o); err != nil {
				return err
			}
			if _, err := semel.Random(ctx, "luck"); err != nil {
				return err
			}
			err := semel.Each(ctx, "items", o.Items, func(i string) string { return i }, 2, func(ctx semel.Context, i string) error {
				if _, err := semel.Do(ctx, pack, i); err != nil {
					return err
				}
				return semel.Sleep(ctx, "dry", time.Hour)
			})
			if err != nil {
				return err
			}
			if _, err := semel.Wait[any](ctx, "picked-up", o.ID, 0); err != nil {
				return err
			}
			if err := semel.Approve(ctx, publish, o, semel.Ask{Of: "anybody"}); err != nil {
				return err
			}
			if _, err := semel.Do(ctx, publish, o); err != nil {
				return err
			}
			_, err = semel.Child(ctx, child, semel.Key(o.ID), o)
			return err
		},
	}
}

func outside(ctx context.Context, s drill.Store) error {
	if _, err := s.Send(ctx, semel.InboxEvent{ID: "e1", Name: "picked-up", Match: "o1"}); err != nil {
		return err
	}
	for a, err := range s.Approvals(ctx, semel.ID{}, semel.ApprovalPending) {
		if err != nil {
			return err
		}
		if _, err := s.Decide(ctx, a.ID, semel.Decision{State: semel.ApprovalGiven, By: "ann", Digest: a.Digest}); err != nil {
			return err
		}
	}
	return nil
}

// fresh empties a store and returns what opens it.
type fresh func() (func() (drill.Store, error), error)

// empty removes what an earlier world left.
func empty(t *testing.T, url string) error {
	const truncate = `
do $$
declare name text;
begin
  for name in select tablename from pg_tables where schemaname = 'semel' and tablename not in ('store', 'schema_version') loop
    execute format('truncate semel.%I', name);
  end loop;
end $$`
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), truncate)
	return err
}

func subject(keyed bool, open fresh) drill.Subject {
	return drill.Subject{World: func() (drill.World, error) {
		c := &counter{effects: map[string]int{}, keyed: keyed}
		wf := orders(c)
		note := action("note", c, func(o order) string { return o.ID + " note" })
		child := semel.Workflow[order]{Name: "child", Actions: []semel.Definition{note.Definition()}, Func: func(ctx semel.Context, o order) error {
			_, err := semel.Do(ctx, note, o)
			return err
		}}
		opened, err := open()
		if err != nil {
			return drill.World{}, err
		}
		start, err := wf.New("", order{ID: "o1", Items: []string{"a", "b"}})
		return drill.World{
			Open: opened, Workflows: []semel.WorkflowDefinition{wf.Definition(), child.Definition()},
			Start: []semel.NewRun{start}, Outside: outside,
			Effects: func() (map[string]int, error) { return c.effects, nil },
			Want:    []string{"o1 charge", "a pack", "b pack", "o1 publish", "o1 note"},
			Close:   func() {},
		}, err
	}}
}

func TestEveryKindOfStepSurvivesEveryDeath(t *testing.T) {
	stores := map[string]func(t *testing.T) fresh{
		"sqlite": func(t *testing.T) fresh {
			return func() (func() (drill.Store, error), error) {
				path := filepath.Join(t.TempDir(), "semel.db")
				return func() (drill.Store, error) {
					return sqlite.Open(t.Context(), path, sqlite.Options{Create: true})
				}, nil
			}
		},
		"postgres": func(t *testing.T) fresh {
			url := postgrestest.Shared(t).Database(t)
			open := func() (drill.Store, error) {
				return postgres.Open(t.Context(), url, postgres.Options{Create: true})
			}
			return func() (func() (drill.Store, error), error) { return open, empty(t, url) }
		},
	}
	for name, open := range stores {
		for _, keyed := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " unprotected", true: " keyed"}[keyed], func(t *testing.T) {
				r, err := drill.Interrupt(t.Context(), subject(keyed, open(t)))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Findings {
					t.Error(f)
				}
				t.Logf("%d interruption points, %d ended unknown", len(r.Points), r.Unknown)
				if len(r.Points) < 60 {
					t.Errorf("%d interruption points: %v", len(r.Points), r.Calls)
				}
				if keyed && r.Unknown > 0 {
					t.Errorf("%d executions ended unknown, though the destination knows keys", r.Unknown)
				}
			})
		}
	}
}
