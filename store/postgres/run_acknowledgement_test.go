package postgres_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

// Section 6: the acknowledgement of what a run commits is lost. Whether the
// request or the answer was cut, every part is made once, and answered.
func TestLostRunAcknowledgement(t *testing.T) {
	for name, cut := range map[string]func(*proxy) *atomic.Bool{
		"the request is lost": func(p *proxy) *atomic.Bool { return &p.cutRequests },
		"the answer is lost":  func(p *proxy) *atomic.Bool { return &p.cutAnswers },
	} {
		t.Run(name, func(t *testing.T) {
			p, dsn := newProxy(t, migrated(t))
			s := open(t, dsn, postgres.Options{})
			life(t, s, func() {}) // the statements are prepared
			cuts := 0
			for range 5 {
				r := life(t, s, func() { cut(p).Store(true); cuts++ })
				steps, err := s.Steps(t.Context(), r.ID)
				if err != nil || len(steps) != 3 || steps[0].Effect == nil || steps[0].Effect.Version != 2 {
					t.Fatalf("steps %+v, error %v", steps, err)
				}
				notes, err := s.Notes(t.Context(), r.ID)
				if err != nil || len(notes) != 1 {
					t.Fatalf("notes %+v, error %v, want that it was held", notes, err)
				}
				if got := loadRun(t, s, r.ID); got.State != semel.RunCompleted || got.Attempt != 2 {
					t.Fatalf("%s, attempt %d, want completed in the second", got.State, got.Attempt)
				}
			}
			if got := p.cuts.Load(); got < int64(cuts)*2/3 {
				t.Errorf("only %d of %d connections were cut", got, cuts)
			}
		})
	}
}

// life is a run whose every commit is preceded by before.
func life(t *testing.T, s *postgres.Store, before func()) semel.Run {
	t.Helper()
	n := newRun("life")
	before()
	r, existing, err := s.Start(t.Context(), n, &worker)
	if err != nil || existing {
		t.Fatalf("start: existing %v, error %v", existing, err)
	}
	before()
	first := commitRun(t, s, semel.RunCommit{RunFence: fenceOf(r), Claim: stepClaimOf(t, r, "charge")})
	outcome := confirmationOf(t, first.Claim)
	before()
	second := commitRun(t, s, semel.RunCommit{
		RunFence: fenceOf(r), Outcome: &outcome, Claim: stepClaimOf(t, r, "mail"),
		Steps: []semel.StepRecord{{Path: "value", Kind: semel.StepValue, Outcome: semel.StepCompleted, Result: []byte("1")}},
	})
	lost := changeOf(t, second.Claim, semel.Event{Kind: semel.EvLost, At: second.Claim.UpdatedAt, Attempt: 1, Reason: "no answer"})
	before()
	out := commitRun(t, s, semel.RunCommit{RunFence: fenceOf(r), Outcome: &lost, Next: ends(semel.RunHeld,
		semel.RunWait{Path: "mail", Kind: semel.WaitOperation, Target: second.Claim.ID, Version: 2})})
	before()
	commit(t, s, changeOf(t, out.Outcome, semel.Event{Kind: semel.EvHappened, At: out.Outcome.UpdatedAt, By: "anna"}))
	var again []semel.Run
	for until := time.Now().Add(5 * time.Second); len(again) == 0 && time.Now().Before(until); {
		if again, err = s.Claim(t.Context(), worker, []semel.WorkflowRef{{Name: "life", Version: 1}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	before()
	commitRun(t, s, semel.RunCommit{RunFence: fenceOf(again[0]), Next: ends(semel.RunCompleted)})
	return r
}

// The same for what has a transaction of its own.
func TestLostWakerAcknowledgement(t *testing.T) {
	p, dsn := newProxy(t, migrated(t))
	s := open(t, dsn, postgres.Options{Readers: 1})
	for spare := range 14 {
		asked := approvalOf(t)
		r := begun(t, s, "waker")
		waits := []semel.RunWait{
			{Path: "ask", Kind: semel.WaitApproval, Approval: &asked},
			{Path: "paid", Kind: semel.WaitEvent, Event: "paid", Match: asked.ID.String()},
			{Path: "child", Kind: semel.WaitRun, Child: new(newRun("child"))},
		}
		cut := func() { p.spare.Store(int64(spare)); p.cutAnswers.Store(true) }
		cut()
		commitRun(t, s, semel.RunCommit{RunFence: fenceOf(r), Next: ends(semel.RunWaiting, waits...)})
		if got, err := s.Waits(t.Context(), r.ID); err != nil || len(got) != 3 {
			t.Fatalf("%d waits, error %v, want 3", len(got), err)
		}
		cut()
		if existing, err := s.Send(t.Context(), semel.InboxEvent{ID: asked.ID.String(), Name: "paid", Match: asked.ID.String()}); err != nil || existing {
			t.Fatalf("send: existing %v, error %v", existing, err)
		}
		cut()
		if a, err := s.Decide(t.Context(), asked.ID, semel.Decision{State: semel.ApprovalGiven, By: "anna", Digest: asked.Digest}); err != nil || a.State != semel.ApprovalGiven {
			t.Fatalf("decide: %s, error %v", a.State, err)
		}
		p.cutAnswers.Store(false)
	}
	if p.cuts.Load() == 0 {
		t.Error("no connection was cut")
	}
}

// The server crashes under load: what was acknowledged is there, whole.
func TestCrashUnderRuns(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{Durable: true})
	s := open(t, server.Database(t), postgres.Options{Create: true})
	type pair struct{ run, operation semel.ID }
	done := make(chan pair, 100_000)
	var stop atomic.Bool
	finished := make(chan struct{})
	for range 16 {
		go func() {
			defer func() { finished <- struct{}{} }()
			for !stop.Load() {
				r, _, err := s.Start(t.Context(), newRun("crash"), &worker)
				if err != nil {
					continue
				}
				out := s.CommitRun(t.Context(), semel.RunCommit{RunFence: fenceOf(r), Claim: stepClaimOf(t, r, "charge")})
				if out.ClaimErr != nil {
					continue
				}
				outcome := confirmationOf(t, out.Claim)
				out = s.CommitRun(t.Context(), semel.RunCommit{RunFence: fenceOf(r), Outcome: &outcome, Next: ends(semel.RunCompleted)})
				if err := errors.Join(out.OutcomeErr, out.RunErr); err == nil {
					done <- pair{r.ID, out.Outcome.ID}
				}
			}
		}()
	}
	for range 2 {
		time.Sleep(300 * time.Millisecond)
		if err := server.Crash(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	stop.Store(true)
	for range 16 {
		<-finished
	}
	close(done)
	t.Logf("%d runs were acknowledged", len(done))
	checked := 0
	for p := range done {
		if checked++; checked > 500 {
			continue
		}
		if r := loadRun(t, s, p.run); r.State != semel.RunCompleted {
			t.Errorf("an acknowledged run is %s", r.State)
		}
		if o, err := s.LoadID(t.Context(), p.operation); err != nil || o.State != semel.Completed || o.Run != p.run {
			t.Errorf("its operation is %s of run %s, error %v", o.State, o.Run, err)
		}
	}
	if checked == 0 {
		t.Error("the crashes met no load")
	}
}
