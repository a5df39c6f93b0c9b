package cases

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// noticeFlows: a run for each event "posted", which tells N, and one that a
// transaction starts, which does the same.
func noticeFlows(p place) []semel.WorkflowDefinition {
	tell := p.action("n", none())
	notice := semel.Workflow[order]{
		Name: "notice", Events: []string{"posted"}, Actions: []semel.Definition{tell.Definition()},
		Func: func(ctx semel.Context, o order) error {
			_, err := semel.Do(ctx, tell, o)
			return err
		},
	}
	return []semel.WorkflowDefinition{notice.Definition()}
}

func posted(i int) semel.InboxEvent {
	return semel.InboxEvent{ID: fmt.Sprint("m-", i), Name: "posted", Match: "acct-1", Data: fmt.Appendf(nil, `{"id":"m-%d"}`, i), By: "app"}
}

// told is how often N was told of message i.
func (r *rig) told(i int) int { return r.dest.count(fmt.Sprintf(`/n {"id":"m-%d"}`, i)) }

// pool is an application's own connections to the database.
func pool(t *testing.T, url string, size int32) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = size
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// C26, steps 1 and 4: a transaction is held open while others that began later
// commit. They are delivered meanwhile, and the late one is when it commits: its
// message, and the run that it started.
func TestC26LateCommit(t *testing.T) {
	t.Parallel()
	r, url := onPostgres(t)
	h := r.hand(engine.Options{}, noticeFlows)
	h.work()
	app := pool(t, url, 2)
	late, err := app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.SendTx(t.Context(), late, posted(1)); err != nil {
		t.Fatal(err)
	}
	run, existing, err := postgres.StartTx(t.Context(), late, semel.NewRun{Workflow: "notice", Version: 1, Key: "late", Input: []byte(`{"id":"m-2"}`)})
	if err != nil || existing {
		t.Fatalf("existing %v, error %v", existing, err)
	}
	began := time.Now()
	for i := 3; i < 8 || time.Since(began) < 3*time.Second; i++ {
		if err := sendPosted(t.Context(), app, i); err != nil {
			t.Fatal(err)
		}
		r.until("a message that is not held back", func() bool { return r.told(i) == 1 })
	}
	if r.told(1)+r.told(2) != 0 {
		t.Fatal("told of what is not committed")
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until("the late ones", func() bool { return r.told(1) == 1 && r.told(2) == 1 })
	h.await(run.ID, semel.RunCompleted)
}

// C26, step 2: fifty writers hold their transactions for random times, and one
// in ten rolls back. What is delivered by two workers is what was committed,
// once each; half of the messages are events, half are runs.
func TestC26DeliveredIsCommitted(t *testing.T) {
	t.Parallel()
	r, url := onPostgres(t)
	const writers, messages = 50, 500
	hands := []*hand{r.hand(engine.Options{Name: "a"}, noticeFlows), r.hand(engine.Options{Name: "b"}, noticeFlows)}
	for _, h := range hands {
		h.work()
	}
	app := pool(t, url, 25)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < messages; i += writers {
				if err := writePosted(t.Context(), app, i); err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	r.wantTold(messages)
	hands[0].wantQuiet()
}

var errRollback = errors.New("the application changed its mind")

// writePosted sends message i in a transaction, and keeps nine of ten.
func writePosted(ctx context.Context, app *pgxpool.Pool, i int) error {
	err := pgx.BeginFunc(ctx, app, func(tx pgx.Tx) error {
		var err error
		if i%2 == 0 {
			err = postgres.SendTx(ctx, tx, posted(i))
		} else {
			_, _, err = postgres.StartTx(ctx, tx, semel.NewRun{Workflow: "notice", Version: 1, Key: semel.Key(fmt.Sprint("m-", i)), Input: posted(i).Data})
		}
		time.Sleep(rand.N(100 * time.Millisecond)) //nolint:gosec // how long does not matter
		if err == nil && rolledBack(i) {
			err = errRollback
		}
		return err
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	return err
}

// rolledBack picks one message in ten, events and runs, of all writers.
func rolledBack(i int) bool { return (i+i/50)%10 == 0 }

// wantTold waits until N was told of what was committed, and checks that it was
// told of nothing else, and of nothing twice.
func (r *rig) wantTold(messages int) {
	r.Helper()
	want := 0
	for i := range messages {
		if !rolledBack(i) {
			want++
		}
	}
	r.until("what was committed", func() bool { n, _ := r.dest.at("/n"); return n >= want })
	time.Sleep(600 * time.Millisecond) // two looks of every worker
	for i := range messages {
		once := 1
		if rolledBack(i) {
			once = 0
		}
		if n := r.told(i); n != once {
			r.Errorf("told %d times of message %d, want %d", n, i, once)
		}
	}
	r.wantAt("/n", want, want)
}

// C26 on SQLite: a file has one writer, so a transaction of the application that
// is open holds up every other writer, Semel among them; by documented rule it
// must be short. What is delivered is what was committed.
func TestC26DeliveredIsCommittedOnSQLite(t *testing.T) {
	t.Parallel()
	r, database := onSQLite(t)
	h := r.hand(engine.Options{}, noticeFlows)
	h.work()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(database, "sqlite:")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const writers, messages = 4, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < messages; i += writers {
				if err := writePostedSQLite(t.Context(), db, i); err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	r.wantTold(messages)
	h.wantQuiet()
}

func writePostedSQLite(ctx context.Context, db *sql.DB, i int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if i%2 == 0 {
		err = sqlite.SendTx(ctx, tx, posted(i))
	} else {
		_, _, err = sqlite.StartTx(ctx, tx, semel.NewRun{Workflow: "notice", Version: 1, Key: semel.Key(fmt.Sprint("m-", i)), Input: posted(i).Data})
	}
	if err != nil || rolledBack(i) {
		return err
	}
	return tx.Commit()
}

// ledgerFlows: a run that waits for five events about one account.
func ledgerFlows(place) []semel.WorkflowDefinition {
	ledger := semel.Workflow[order]{
		Name: "ledger",
		Func: func(ctx semel.Context, _ order) error {
			var seen []string
			for i := range ledgerEntries {
				o, err := semel.Wait[order](ctx.Named(fmt.Sprint("entry-", i)), "posted", "acct-1", 0)
				if err != nil {
					return err
				}
				seen = append(seen, o.ID)
			}
			return ctx.Return(seen)
		},
	}
	return []semel.WorkflowDefinition{ledger.Definition()}
}

const ledgerEntries = 5

// C26, step 3: order. By documented rule runs that events start are independent
// of each other, and nothing is promised about their order. A run that waits
// several times for one name and match gets the oldest event first: those of
// consecutive committed transactions come in the order of their commits.
func TestC26OneRunTakesEventsInOrder(t *testing.T) {
	t.Parallel()
	r, url := onPostgres(t)
	h := r.hand(engine.Options{}, ledgerFlows)
	app := pool(t, url, 1)
	var want []string
	for i := range ledgerEntries {
		if err := sendPosted(t.Context(), app, i); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint("m-", i))
	}
	run := h.pass(h.started("ledger", "acct-1", order{ID: "acct-1"}))
	r.wantRun(run, semel.RunCompleted, "")
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(run.Result) != string(data) {
		t.Errorf("it took %s, want %s", run.Result, data)
	}
}
