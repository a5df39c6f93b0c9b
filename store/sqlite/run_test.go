package sqlite_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/sqlite"
)

var worker = semel.RunClaim{By: "test", Lease: time.Minute}

func begin(t testing.TB, s *sqlite.Store, key semel.Key) semel.Run {
	t.Helper()
	r, existing, err := s.Start(t.Context(), semel.NewRun{Workflow: "w", Version: 1, Key: key}, &worker)
	if err != nil || existing {
		t.Fatalf("start: existing %v, error %v", existing, err)
	}
	return r
}

// TestPoisonInRun: section 4. A claim, a record or an end that the database
// cannot take never rolls back the outcome before it, nor a neighbour.
func TestPoisonInRun(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	execRaw(t, raw(t, path), `create trigger poison before insert on operation when new.key = 'poison' begin select raise(abort, 'poison'); end`)
	execRaw(t, raw(t, path), `create trigger poison2 before insert on step when new.path = 'poison' begin select raise(abort, 'poison'); end`)
	execRaw(t, raw(t, path), `create trigger poison3 before insert on wait when new.path = 'poison' begin select raise(abort, 'poison'); end`)
	r := begin(t, s, "r")
	for name, c := range map[string]semel.RunCommit{
		"claim": {Claim: &semel.Change{}},
		"step":  {Steps: []semel.StepRecord{{Path: "fine"}, {Path: "poison"}}},
		"end":   {Steps: []semel.StepRecord{{Path: "fine"}}, Next: &semel.RunNext{State: semel.RunWaiting, Waits: []semel.RunWait{{Path: "poison", Kind: semel.WaitTime}}}},
	} {
		o := mustClaim(t, s, name)
		outcome := change(t, o, semel.Event{Kind: semel.EvConfirmed, Attempt: 1})
		c.RunFence, c.Outcome = semel.RunFence{Run: r.ID, Attempt: 1}, &outcome
		if c.Claim != nil {
			bad := change(t, newOperation("poison"), claimEvent())
			c.Claim = &bad
		}
		neighbour := make(chan error)
		go func() {
			_, err := claim(t.Context(), s, "neighbour-"+name)
			neighbour <- err
		}()
		out := s.CommitRun(t.Context(), c)
		if err := errors.Join(out.OutcomeErr, <-neighbour); err != nil {
			t.Errorf("%s: the outcome, or a neighbour: %v", name, err)
		}
		if c.Claim != nil {
			wantError(t, out.ClaimErr, semel.ErrUnavailable, "poison")
		}
		wantError(t, out.RunErr, semel.ErrUnavailable, "poison")
		if got := load(t, s, semel.Key(name)); got.State != semel.Completed {
			t.Errorf("%s: the outcome is lost", name)
		}
		if steps, err := s.Steps(t.Context(), r.ID); err != nil || len(steps) != 0 {
			t.Errorf("%s: half of the rest was written: %v, error %v", name, steps, err)
		}
	}
}

// TestRestoredRuns: section 6. In a database that was restored no run is
// claimed and no operation is, but an outcome is recorded.
func TestRestoredRuns(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	r, o := begin(t, s, "r"), mustClaim(t, s, "o")
	execRaw(t, raw(t, path), "update store set suspect_at = clock")
	outcome, next := change(t, o, semel.Event{Kind: semel.EvConfirmed, Attempt: 1}), change(t, newOperation("next"), claimEvent())
	out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: semel.RunFence{Run: r.ID, Attempt: 1}, Outcome: &outcome, Claim: &next})
	if err := errors.Join(out.OutcomeErr, out.RunErr); err != nil {
		t.Errorf("the outcome: %v", err)
	}
	wantError(t, out.ClaimErr, semel.ErrRestored, "semel store accept")
	s.Shift(2 * time.Minute)
	_, err := s.Claim(t.Context(), worker, []semel.WorkflowRef{{Name: "w", Version: 1}}, 1)
	wantError(t, err, semel.ErrRestored)
}

// TestBesideAnApplication: an application may keep its tables in the same
// file, and its transaction covers both or neither.
func TestBesideAnApplication(t *testing.T) {
	path := newPath(t)
	if err := create(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	execRaw(t, db, "create table invoice (number text primary key, paid integer)")
	s := openStore(t, path, sqlite.Options{})
	status, err := sqlite.Status(t.Context(), path)
	if err != nil || status.Current != status.Latest {
		t.Fatalf("status %+v, error %v", status, err)
	}
	for _, commits := range []bool{false, true} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "insert into invoice values ('4417', 0)"); err != nil {
			t.Fatal(err)
		}
		r, existing, err := sqlite.StartTx(t.Context(), tx, semel.NewRun{Workflow: "w", Version: 1, Key: "invoice-4417"})
		if err != nil || existing {
			t.Fatalf("start: existing %v, error %v", existing, err)
		}
		if err := sqlite.SendTx(t.Context(), tx, semel.InboxEvent{ID: "4417", Name: "invoiced"}); err != nil {
			t.Fatal(err)
		}
		end := tx.Rollback
		if commits {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		invoices := 0
		if err := db.QueryRowContext(t.Context(), "select count(*) from invoice").Scan(&invoices); err != nil {
			t.Fatal(err)
		}
		_, err = s.LoadRun(t.Context(), r.ID)
		delivered, deliverErr := s.Deliver(t.Context(), 10)
		if commits != (invoices == 1) || commits != (err == nil) || commits != (delivered == 1) || deliverErr != nil {
			t.Fatalf("committed %v: %d invoices, run %v, %d delivered, error %v", commits, invoices, err, delivered, deliverErr)
		}
	}
	foreign := raw(t, newPath(t))
	tx, err := foreign.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = sqlite.StartTx(t.Context(), tx, semel.NewRun{Workflow: "w", Version: 1, Key: "k"})
	wantError(t, errors.Join(err, tx.Rollback()), nil, "must be the one that Semel uses")
}

// TestUpgrade: what an older binary wrote is there after the migration.
func TestUpgrade(t *testing.T) {
	path, old := newPath(t), newPath(t)
	s := create(t, path)
	want := mustClaim(t, s, "k")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile("schema/0001_operations.sql")
	if err != nil {
		t.Fatal(err)
	}
	db := raw(t, old)
	execRaw(t, db, strings.Replace(string(first), "-- +goose Up\n", "", 1))
	execRaw(t, db, `create table goose_db_version (id integer primary key autoincrement, version_id integer not null, is_applied integer not null,
		tstamp timestamp default (datetime('now')))`)
	execRaw(t, db, "insert into goose_db_version (version_id, is_applied) values (0, 1), (1, 1)")
	execRaw(t, db, "attach ? as new", path)
	const columns = `id, scope, key, fingerprint, request, body, contract, state, version, attempt, lease_until, cancel, incident, expired,
		due_at, created_at, updated_at, first`
	execRaw(t, db, "insert into main.operation ("+columns+") select "+columns+" from new.operation")
	execRaw(t, db, "detach new")
	_, err = sqlite.Open(t.Context(), old, sqlite.Options{})
	wantError(t, err, nil, "schema 1 is older than this binary (2): run semel migrate up")
	if err := sqlite.Migrate(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, old, sqlite.Options{})
	if got := load(t, s, "k"); got.ID != want.ID || got.Version != 1 || got.Run != (semel.ID{}) {
		t.Fatalf("after the migration: %+v", got)
	}
	begin(t, s, "r")
}

// TestWakeInOneBatch: a wait and the change that ends it may share a
// transaction in which nobody waited before.
func TestWakeInOneBatch(t *testing.T) {
	path := newPath(t)
	s := create(t, path)
	r, o := begin(t, s, "r"), mustClaim(t, s, "o")
	outcome := change(t, o, semel.Event{Kind: semel.EvConfirmed, Attempt: 1})
	db := raw(t, path)
	execRaw(t, db, "begin immediate")
	answers := make(chan error, 2)
	go func() {
		answers <- s.CommitRun(t.Context(), semel.RunCommit{RunFence: semel.RunFence{Run: r.ID, Attempt: 1}, Next: &semel.RunNext{
			State: semel.RunWaiting, Waits: []semel.RunWait{{Path: "charge", Kind: semel.WaitOperation, Target: o.ID, Version: 1}},
		}}).RunErr
	}()
	time.Sleep(20 * time.Millisecond) // it is in the queue
	go func() {
		_, err := s.Commit(t.Context(), outcome)
		answers <- err
	}()
	time.Sleep(20 * time.Millisecond)
	execRaw(t, db, "rollback")
	if err := errors.Join(<-answers, <-answers); err != nil {
		t.Fatal(err)
	}
	runs, err := s.Claim(t.Context(), worker, []semel.WorkflowRef{{Name: "w", Version: 1}}, 1)
	if err != nil || len(runs) != 1 {
		t.Fatalf("claimed %d runs, error %v: the wake-up is lost", len(runs), err)
	}
}
