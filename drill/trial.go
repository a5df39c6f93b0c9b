package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// trial is one execution under one schedule.
type trial struct {
	d        *drill
	ctx      context.Context
	schedule Schedule
	store    Store
	player   player
	world    *world
	spool    spool
	workers  int
	ahead    atomic.Int64 // how far the trial moved the clock
	began    time.Time

	mu      sync.Mutex
	calls   []call
	story   []string
	turn    int
	changed map[string]bool // places whose code asks with another payload
	begun   map[intention]int
	late    map[intention]bool       // whose late answer a worker got
	told    map[intention][]*process // workers that were told that it happened
	done    map[intention]string     // of which the workflow was told that it is done, with their places
	ends    map[semel.ID]bool        // runs whose code came to its end
	denied  map[intention]denial     // of which the workflow was told that nothing happened
	lists   map[list][]string        // keys of the items, where they do not change
	items   map[list]bool            // whose code came to its end
	skipped map[semel.ID]string      // an item that was left out, of runs that were told that all are done
	slow    bool                     // the next code stands still
	steps   map[string]bool          // that are on record
	sent    []semel.InboxEvent
	early   []semel.InboxEvent  // sent before the runs began
	names   map[semel.ID]string // of runs
	err     error
	cancels bool // somebody asked the runs to stop
	verdict judged
}

// again says how a run is asked for once more.
type again struct{ key string }

// enough is how many passes an execution may take, far more than it needs: a
// run that waits for an attempt looks four times a second until a lease ends.
const enough = 1500

// trial is one that has not begun.
func (d *drill) trial(ctx context.Context, s Schedule) *trial {
	t := &trial{
		d: d, ctx: ctx, schedule: s, changed: map[string]bool{}, begun: map[intention]int{}, late: map[intention]bool{}, told: map[intention][]*process{},
		done: map[intention]string{}, ends: map[semel.ID]bool{}, denied: map[intention]denial{}, lists: map[list][]string{}, items: map[list]bool{},
		skipped: map[semel.ID]string{}, steps: map[string]bool{}, names: map[semel.ID]string{},
	}
	t.world = newWorld(t)
	return t
}

// try executes the workflow under a schedule.
func (d *drill) try(ctx context.Context, s Schedule) (t *trial, err error) {
	t = d.trial(ctx, s)
	if t.player, t.store, err = d.player(ctx, t); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, t.store.Close(), t.err) }()
	if s.has(EventEarly) {
		for _, e := range d.events {
			t.tell("event %s is there before anybody waits for it", e.Name)
			t.early = append(t.early, e)
			if _, err := t.store.Send(ctx, e); err != nil {
				return t, err
			}
		}
	}
	t.began = t.now()
	if err := t.player.play(ctx, d.start, 0); err != nil {
		return t, err
	}
	if err := t.aftermath(ctx); err != nil {
		return t, err
	}
	return t, t.player.judge(ctx)
}

// clock is that of the trial's machine, for a store without one of its own: a
// millisecond passes with each call of a port, and no time beside that.
func (t *trial) clock() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return epoch.Add(time.Duration(len(t.calls)) * time.Millisecond)
}

// epoch is when every trial begins.
var epoch = time.Date(2040, time.January, 1, 0, 0, 0, 0, time.UTC)

// aftermath is what happens when everything is over.
func (t *trial) aftermath(ctx context.Context) error {
	switch {
	case t.schedule.has(PersonWrong):
		return t.wrong(ctx)
	case t.schedule.has(RecordExpired):
		e, ok := t.store.(expirer)
		if !ok {
			return nil
		}
		t.pass(t.d.retention)
		now, err := t.store.Now(ctx)
		if err != nil {
			return err
		}
		n, err := e.Expire(ctx, now.Add(-t.d.retention/2), 1000)
		t.tell("%d records have expired; somebody asks for the same work again", n)
		if err != nil {
			return err
		}
		return t.player.play(ctx, renamed(t.d.start, "-later"), 0)
	}
	return nil
}

// wrong settles what waits for a person wrongly, and then the answer comes.
func (t *trial) wrong(ctx context.Context) error {
	p := t.process()
	if err := p.live(func() error { return p.begin(ctx) }); err != nil {
		return errors.Join(p.trouble(err), p.end(ctx))
	}
	defer func() { _ = p.end(ctx) }()
	for o, err := range t.store.List(ctx, semel.Filter{State: semel.Unknown}) {
		if err != nil {
			return err
		}
		if t.world.mode(of(&o)) != PersonWrong {
			continue
		}
		t.tell("a person says that %s did not happen, which is wrong", t.place(&o))
		s := engine.Settlement{Reason: "nothing in the statement", By: "operator", Force: true}
		err := p.live(func() error { _, err := p.engine.Settle(ctx, o.ID, s); return err })
		if trouble := p.trouble(err); trouble != nil {
			return trouble
		}
		if err != nil {
			return t.play(ctx, nil, 0) // the decision did not come to pass
		}
		t.world.setMode(of(&o), "")
	}
	if trouble := p.trouble(p.live(func() error { _, err := p.worker.Pass(ctx); return err })); trouble != nil {
		return trouble
	}
	t.world.deliver(intention{})
	for run, err := range t.store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return err
		}
		if run.State != semel.RunFailed && run.State != semel.RunHeld {
			continue
		}
		t.tell("and retries the run")
		if _, err := t.store.ChangeRun(ctx, run.ID, semel.RunCommand{Verb: semel.RetryRun, By: "operator"}); err != nil {
			return err
		}
	}
	return t.play(ctx, nil, 0)
}

// play starts runs and executes them until nothing is left to do. A worker that
// dies is followed by another. limit bounds how long it lets time pass; 0 for
// no bound.
func (t *trial) play(ctx context.Context, start []semel.NewRun, limit time.Duration) (err error) {
	until := time.Duration(t.ahead.Load()) + limit
	var p *process
	defer func() {
		if p != nil {
			err = errors.Join(err, p.end(ctx))
		}
	}()
	for range enough {
		switch {
		case p != nil && p.dead.Load():
			t.pass(lease + time.Second)
			fallthrough
		case p == nil:
			p = t.process()
			if err := p.live(func() error { return p.begin(ctx) }); err != nil {
				if err = p.trouble(err); err != nil {
					return err
				}
				if !p.dead.Load() {
					if err := p.end(ctx); err != nil {
						return err
					}
					p = nil // and another tries
				}
				continue
			}
		}
		var due time.Time
		err := p.live(func() (err error) {
			if err = p.start(ctx, start); err == nil {
				due, err = p.worker.Pass(ctx)
			}
			return err
		})
		if trouble := p.trouble(err); trouble != nil {
			return trouble
		}
		if p.dead.Load() || err != nil {
			continue
		}
		start = nil
		t.world.deliver(intention{})
		moved, err := t.outside(ctx)
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		at, err := t.next(ctx, due)
		if err != nil {
			return err
		}
		if at.IsZero() {
			if t.spool.empty() {
				return nil
			}
			if err := p.end(ctx); err != nil {
				return err
			}
			p = nil // another takes in what was kept
			continue
		}
		wait := max(at.Sub(t.now()), 0)
		if limit > 0 && time.Duration(t.ahead.Load())+wait > until {
			return nil
		}
		t.pass(wait)
	}
	return t.stuck(ctx)
}

// start asks for runs as the process.
func (p *process) start(ctx context.Context, runs []semel.NewRun) error {
	for _, n := range runs {
		if _, _, err := p.engine.Start(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// stuck says that the runs do not come to an end.
func (t *trial) stuck(ctx context.Context) error {
	var where strings.Builder
	for run, err := range t.store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(&where, "; %s %q is %s: %s", run.Workflow, run.Key, run.State, run.Reason)
	}
	t.world.blame(fault{why: "it does not come to an end" + where.String()})
	return nil
}

// other is another worker that looks while one stands still; with asked, after
// somebody asked for the run again.
func (t *trial) other(asked *again) {
	var start []semel.NewRun
	limit := time.Duration(0)
	if asked != nil {
		start, limit = renamed(t.d.start, asked.key), time.Nanosecond
	}
	if err := t.player.play(t.ctx, start, limit); err != nil {
		t.fail(err)
	}
}

// renamed are the same runs under other keys.
func renamed(runs []semel.NewRun, suffix string) []semel.NewRun {
	out := make([]semel.NewRun, len(runs))
	for i, n := range runs {
		n.Key += semel.Key(suffix)
		out[i] = n
	}
	return out
}

func (t *trial) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = errors.Join(t.err, err)
}

// pass lets time pass, and what is under way arrive.
func (t *trial) pass(d time.Duration) {
	if d <= 0 {
		return
	}
	t.ahead.Add(int64(d))
	t.store.Shift(d)
	if now, err := t.store.Now(t.ctx); err == nil {
		t.world.arrive(now)
	}
}

func (t *trial) now() time.Time {
	now, err := t.store.Now(t.ctx)
	if err != nil {
		t.fail(err)
	}
	return now
}

// next is when anything is due; zero where nothing ever is.
func (t *trial) next(ctx context.Context, due time.Time) (time.Time, error) {
	at := t.world.next()
	sooner := func(c time.Time) {
		if !c.IsZero() && (at.IsZero() || c.Before(at)) {
			at = c
		}
	}
	for o, err := range t.store.List(ctx, semel.Filter{}) {
		if err != nil {
			return at, err
		}
		switch o.State {
		case semel.Unknown:
			sooner(o.CheckAt)
		case semel.InProgress:
			sooner(o.LeaseUntil)
		case semel.Completed, semel.Failed:
		}
	}
	open := false
	for run, err := range t.store.ListRuns(ctx, semel.RunFilter{}) {
		if err != nil {
			return at, err
		}
		if run.State.Ended() || run.State == semel.RunHeld {
			continue
		}
		rests, err := t.rests(ctx, &run)
		if err != nil {
			return at, err
		}
		open = open || !rests
	}
	if open {
		sooner(due)
	}
	return at, nil
}

// rests reports whether a run waits for what no worker brings: people, an
// event, or another run.
func (t *trial) rests(ctx context.Context, run *semel.Run) (bool, error) {
	return t.restsApart(ctx, run, nil)
}

// restsApart is rests for a run that others wait for: runs that wait for each
// other do not rest.
func (t *trial) restsApart(ctx context.Context, run *semel.Run, others []semel.ID) (bool, error) {
	waits, err := t.store.Waits(ctx, run.ID)
	if err != nil || run.State != semel.RunWaiting || slices.Contains(others, run.ID) {
		return false, err
	}
	for _, w := range waits {
		if w.Kind == semel.WaitRun {
			child, err := t.store.LoadRun(ctx, w.Target)
			if err != nil {
				return false, err
			}
			if rests, err := t.restsApart(ctx, &child, append(others, run.ID)); err != nil || !rests && child.State != semel.RunHeld {
				return false, err
			}
			continue
		}
		if !w.Person && w.Kind != semel.WaitPerson && w.Kind != semel.WaitRun && (w.Kind != semel.WaitEvent || !w.Until.IsZero()) {
			return false, nil
		}
	}
	return len(waits) > 0, nil
}
