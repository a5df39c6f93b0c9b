package drill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/drill"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

type order struct {
	ID    string   `json:"id"`
	Items []string `json:"items,omitempty"`
}

type answer struct {
	ID string `json:"id"`
}

// nowhere is a destination that a drill must not reach.
type nowhere struct{}

func (nowhere) Send(context.Context, *semel.Send) semel.Event {
	return semel.Event{Kind: semel.EvRefused, Reason: "a drill reached a destination"}
}

var (
	keyed  = semel.Contract{Protection: semel.Keyed, Window: 24 * time.Hour, Timeout: 10 * time.Second}
	looked = semel.Contract{
		Protection: semel.Lookup, CanLookUp: true, VisibleAfter: time.Minute, MaxProcessing: 30 * time.Second, AbsenceIsProof: true, Timeout: 10 * time.Second,
	}
	bare = semel.Contract{Protection: semel.Unprotected, Timeout: 10 * time.Second}
	row  = semel.Contract{
		Protection: semel.Transactional, AbsenceIsProof: true, MaxProcessing: time.Second, Timeout: 10 * time.Second,
	}
	status = semel.Contract{Protection: semel.Absolute, Effect: semel.SetsValue, Timeout: 10 * time.Second}
	tag    = semel.Contract{Protection: semel.Commutes, Timeout: 10 * time.Second}
)

func action(name string, c semel.Contract) semel.Action[order, answer] {
	return semel.Action[order, answer]{
		Name: name, Key: func(o order) string { return o.ID + " " + name },
		Send: semel.Effect[order, answer]{Connection: name + "s", Contract: c, Destination: nowhere{}},
	}
}

// do is a workflow of these actions, one after the other.
func do(actions ...semel.Action[order, answer]) semel.Workflow[order] {
	return semel.Workflow[order]{Name: "shop", Func: func(ctx semel.Context, o order) error {
		for _, a := range actions {
			if _, err := semel.Do(ctx, a, o); err != nil {
				return err
			}
		}
		return nil
	}}
}

// everything is a workflow with every kind of step.
func everything() (semel.WorkflowDefinition, drill.Options) {
	charge, pack, publish, note := action("charge", keyed), action("pack", row), action("publish", looked), action("note", bare)
	label, escalate := action("label", tag), action("escalate", status)
	child := semel.Workflow[order]{Name: "child", Func: func(ctx semel.Context, o order) error {
		_, err := semel.Do(ctx, note, o)
		return err
	}}
	wf := semel.Workflow[order]{Name: "orders", Func: func(ctx semel.Context, o order) error {
		if _, err := semel.Do(ctx, charge, o); err != nil {
			return err
		}
		if _, err := semel.Random(ctx, "luck"); err != nil {
			return err
		}
		err := semel.Each(ctx, "items", o.Items, func(i string) string { return i }, 2, func(ctx semel.Context, i string) error {
			if _, err := semel.Do(ctx, pack, order{ID: i}); err != nil {
				return err
			}
			return semel.Sleep(ctx, "dry", time.Hour)
		})
		if err != nil {
			return err
		}
		for _, a := range []semel.Action[order, answer]{label, escalate} {
			if _, err := semel.Do(ctx, a, o); err != nil {
				return err
			}
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
	}}
	return wf.Definition(), drill.Options{Input: order{ID: "o1", Items: []string{"a", "b"}}, Children: []semel.WorkflowDefinition{child.Definition()}}
}

// onPostgres opens one database, emptied each time.
func onPostgres(t *testing.T) func(context.Context) (drill.Store, error) {
	free := make(chan string, 8)
	for range cap(free) {
		free <- postgrestest.Shared(t).Database(t)
	}
	return func(ctx context.Context) (drill.Store, error) {
		url := <-free
		if err := empty(ctx, url); err != nil {
			return nil, err
		}
		s, err := postgres.Open(ctx, url, postgres.Options{Create: true})
		if err != nil {
			return nil, err
		}
		return &borrowed{s, func() { free <- url }}, nil
	}
}

// borrowed gives its database back.
type borrowed struct {
	*postgres.Store
	back func()
}

func (b *borrowed) Close() error {
	defer b.back()
	return b.Store.Close()
}

// empty removes what an earlier drill left.
func empty(ctx context.Context, url string) error {
	const clear = `
do $$
declare name text;
begin
  for name in select tablename from pg_tables where schemaname = 'semel' and tablename not in ('store', 'schema_version') loop
    execute format('delete from semel.%I', name);
  end loop;
  if to_regclass('semel.store') is not null then
    update semel.store set swept = default, ahead = default;
  end if;
end $$`
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, clear)
	return err
}

// unhurried leaves a test to the run without -short, which executes it: hundreds
// of databases take minutes under the race detector, and
// TestEveryKindOfStepSurvivesEveryFault has a short form for that.
func unhurried(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("hundreds of databases are too slow under the race detector; the run without -short executes it")
	}
}

// M38: whatever breaks, nothing happens twice and nothing is lost.
func TestEveryKindOfStepSurvivesEveryFault(t *testing.T) {
	if testing.Short() { // many times slower under the race detector: one of each sort
		for _, seed := range []string{"dies-after@7", "ack-lost@9", "lease-lapses@9", "second-run@7", "answer-late@7", "lands-late@10,dies-before@12"} {
			replay, err := drill.ParseSchedule(seed)
			if err != nil {
				t.Fatal(err)
			}
			drill.Test(t, do(action("charge", keyed), action("note", bare)).Definition(), drill.Options{Input: order{ID: "o1"}, Replay: replay})
		}
		return
	}
	for name, open := range map[string]func(*testing.T) func(context.Context) (drill.Store, error){
		"sqlite": func(*testing.T) func(context.Context) (drill.Store, error) { return nil }, "postgres": onPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			def, o := everything()
			o.Open, o.Pairs = open(t), map[string]int{"sqlite": 100, "postgres": -1}[name]
			began := time.Now()
			v := drill.Test(t, def, o)
			t.Logf("%d schedules in %v", v.Schedules, time.Since(began))
			if v.Schedules < 400 {
				t.Errorf("%d schedules", v.Schedules)
			}
		})
	}
}

func TestOneSeedIsOneStory(t *testing.T) {
	var first []byte
	o := drill.Options{Input: order{ID: "o1"}, Pairs: 50, Seed: 7, Adverse: true}
	if testing.Short() {
		o = drill.Options{Input: order{ID: "o1"}, Replay: drill.Schedule{{Fault: drill.AnswerLost, Call: 7}}}
	}
	for range 2 {
		v, err := drill.Run(t.Context(), do(action("charge", keyed), action("note", bare)).Definition(), o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(first, data) {
			t.Errorf("another story:\n%s\n%s", first, data)
		}
	}
}
