package main

import (
	"path/filepath"
	"time"

	"github.com/semel-dev/semel"
)

// settle waits until everything rests, retries what needs a person, and does
// so again: in the end only what nobody can help is held.
func (o *office) settle(at place) {
	store, err := openStore(o.t.Context(), at.own())
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	for round := range rounds {
		if !o.rest(store) {
			return
		}
		again := o.retryOperations(store)
		if round < rounds/3 {
			again += o.retryRuns(store.(semel.Runs), round == 0)
		}
		if again == 0 {
			return
		}
	}
	o.rest(store)
}

// retryOperations retries what is unknown because recovery gave up, and returns
// how much that was.
func (o *office) retryOperations(store semel.Store) (n int) {
	now, err := store.Now(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	a := o.assignment(0)
	o.mu.Lock()
	for _, p := range Protections() {
		for op, err := range store.List(o.t.Context(), semel.Filter{Scope: scopeOf(p), State: semel.Unknown}) {
			if err != nil {
				o.t.Fatal(err)
			}
			move := semel.DecideAsked(&op, op.Contract.Stricter(a.contract(p)), now).Kind
			if move == semel.MoveResend || move == semel.MoveLookup {
				o.add(trip{errand: errand{Again: op.ID}, at: time.Now(), copies: 1})
				n++
			}
		}
	}
	o.n.operations += n
	o.mu.Unlock()
	if !o.dispatch(time.Now().Add(time.Minute)) {
		o.t.Errorf("%d operations cannot be retried", n)
	}
	return n
}

// retryRuns retries the runs that are held and, if asked to, some that failed.
func (o *office) retryRuns(runs semel.Runs, alsoFailed bool) (n int) {
	for run, err := range runs.ListRuns(o.t.Context(), semel.RunFilter{}) {
		if err != nil {
			o.t.Fatal(err)
		}
		if run.State != semel.RunHeld && (run.State != semel.RunFailed || !alsoFailed || run.ID[15]%2 == 0) {
			continue
		}
		if _, err := runs.ChangeRun(o.t.Context(), run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "soak", Reason: "the quiet phase"}); err != nil {
			o.t.Logf("retry run %s: %v", run.Key, err)
			continue
		}
		n++
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n.asked["retry"] += n
	return n
}

// rest waits until no run and no operation would go on by itself.
func (o *office) rest(store semel.Store) bool {
	runs := store.(semel.Runs)
	var moving []semel.Run
	operations := 0
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
		if moving = o.moving(store, runs); len(moving) > 0 {
			continue
		}
		if _, operations = o.claims(store); operations == 0 {
			return true
		}
	}
	o.t.Errorf("%d runs and %d operations do not come to rest", len(moving), operations)
	for i, r := range moving {
		if i == 10 {
			break
		}
		waits, _ := runs.Waits(o.t.Context(), r.ID)
		notes, _ := runs.Notes(o.t.Context(), r.ID)
		o.t.Logf("%s %s %s is %s (%s), claim %d, %d crashes, by %s until %v, due %v, waits %+v, notes %+v",
			r.Workflow, r.Key, r.ID, r.State, r.Reason, r.Attempt, r.Crashes, r.By, r.LeaseUntil, r.DueAt, waits, notes)
	}
	return false
}

// moving are the runs that would go on by themselves. Those that somebody has
// paused are resumed.
func (o *office) moving(store semel.Store, runs semel.Runs) (moving []semel.Run) {
	now, err := store.Now(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	for r, err := range runs.ListRuns(o.t.Context(), semel.RunFilter{}) {
		if err != nil {
			o.t.Fatal(err)
		}
		switch {
		case r.Paused && !r.State.Ended():
			_, _ = runs.ChangeRun(o.t.Context(), r.ID, semel.RunCommand{Verb: semel.ResumeRun, By: "soak", Reason: "the quiet phase"})
			moving = append(moving, r)
		case !r.State.Ended() && !r.DueAt.IsZero() && !r.DueAt.After(now), // somebody woke it just now
			r.State == semel.RunRunning, r.State == semel.RunWaiting && !o.waitsForOthers(runs, r.ID):
			moving = append(moving, r)
		}
	}
	return moving
}

// waitsForOthers reports whether all that the run waits for is a person, or
// another run, which is asked about itself.
func (o *office) waitsForOthers(runs semel.Runs, id semel.ID) bool {
	waits, err := runs.Waits(o.t.Context(), id)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, w := range waits {
		if w.Kind == semel.WaitRun {
			child, err := runs.LoadRun(o.t.Context(), w.Target)
			if err != nil || child.State.Ended() {
				return false
			}
		} else if !w.Person && w.Kind != semel.WaitPerson {
			return false
		}
	}
	return len(waits) > 0
}

// leave writes what Semel says after the soak, for the verdict.
func (o *office) leave(at place) {
	store, err := openStore(o.t.Context(), at.own())
	if err != nil {
		o.t.Fatal(err)
	}
	defer store.Close()
	if left, err := filepath.Glob(filepath.Join(o.dir, "spool-*", "*")); err != nil || len(left) > 0 {
		o.t.Errorf("%d pieces of evidence are left in the spools (%v)", len(left), err)
	}
	claims, _ := o.claims(store)
	var all []Claim
	for _, c := range claims {
		all = append(all, c)
	}
	write(o.t, filepath.Join(o.dir, claimsFile), all)
	write(o.t, filepath.Join(o.dir, freezesFile), o.freezes)
	var listed []semel.Run
	names := map[semel.ID]runID{}
	for r, err := range store.(semel.Runs).ListRuns(o.t.Context(), semel.RunFilter{}) {
		if err != nil {
			o.t.Fatal(err)
		}
		listed = append(listed, r)
		names[r.ID] = runID{r.Workflow, string(r.Key)}
	}
	var records []Record
	for _, r := range listed {
		records = append(records, Record{runID: names[r.ID], State: string(r.State), Reason: r.Reason, Attempt: r.Attempt, Parent: names[r.Parent]})
	}
	write(o.t, filepath.Join(o.dir, recordsFile), records)
	var asked []Asked
	for _, t := range o.errands {
		if t.Ask != nil {
			asked = append(asked, *t.Ask)
		}
	}
	write(o.t, filepath.Join(o.dir, askedFile), asked)
}
