package drill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// lease is that of the drill's workers, by the store's clock. Real time is so
// short beside it that no timer of an engine ever fires.
const lease = time.Minute

// patience is how long, in real time, a worker tries to record what the store
// cannot take, which no store of a drill is: it shows in a wrong engine.
const patience = 5 * time.Second

// errDead is what a dead process gets from its ports: nothing that it does
// reaches the world any more.
var errDead = fmt.Errorf("%w: the process is dead", semel.ErrUnavailable)

// codePort stands for the workflow's own code, between two steps.
const codePort = "code"

// call is one call of a port.
type call struct {
	n        int
	worker   string
	port     string // Send, Look, or a method of the store
	what     string // in words
	writes   bool   // it may change the store
	claims   bool   // it claims an operation
	approved bool   // under an approval
	contract semel.Contract
	sendBy   time.Time // of a request
	lease    time.Time // of the claim of a request
}

// process is one worker of a trial, behind ports that the trial may break.
type process struct {
	t      *trial
	name   string
	engine *engine.Engine
	worker *engine.Worker
	died   chan struct{}
	dead   atomic.Bool
	skew   atomic.Int64 // of its own clock
}

// process is another one, which has not begun.
func (t *trial) process() *process {
	t.workers++
	return &process{t: t, name: fmt.Sprintf("worker %d", t.workers), died: make(chan struct{})}
}

// live does something as the process. Whoever is dead is not waited for: what
// it still does reaches nothing.
func (p *process) live(work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-p.died:
		return errDead
	}
}

// begin makes the engine and the worker of a process.
func (p *process) begin(ctx context.Context) (err error) {
	linger := time.Hour
	if p.t.schedule.has(SlowCode) {
		linger = -1
	}
	p.engine, err = engine.New(ctx, &portStore{p.t.store, p}, engine.Options{
		Name: p.name, Lease: lease, Linger: linger, Late: true, Patience: patience, Spool: portSpool{&p.t.spool, p},
		Clock: p.clock, Resolve: p.resolve, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	definitions := make([]semel.WorkflowDefinition, len(p.t.d.workflows))
	for i, def := range p.t.d.workflows {
		definitions[i] = p.behind(def)
	}
	p.worker, err = engine.NewWorker(ctx, p.engine, engine.WorkerOptions{Workflows: definitions, Strict: true, AtOnce: 1})
	return err
}

// clock is the process's own.
func (p *process) clock() time.Time {
	passed := time.Duration(p.t.ahead.Load() + p.skew.Load())
	if p.t.d.options.Open != nil {
		return time.Now().Add(passed) // beside a store with a clock of its own
	}
	return p.t.clock().Add(passed)
}

// end closes the engine of a process that lives.
func (p *process) end(ctx context.Context) error {
	if p.engine == nil || p.dead.Load() {
		return nil
	}
	return p.engine.Close(ctx)
}

func (p *process) die() {
	if !p.dead.Swap(true) {
		p.t.tell("%s dies", p.name)
		close(p.died)
	}
}

// visit makes one call of a port, which may be broken. work does it. The error
// is what the caller hears instead of an answer.
func (p *process) visit(c call, work func(f Fault)) error {
	if p.dead.Load() {
		return errDead
	}
	c.worker = p.name
	f := p.t.note(c)
	if f != "" {
		p.t.hit(p, f, &c)
	}
	switch {
	case p.dead.Load():
		return errDead
	case f == StoreLost:
		return fmt.Errorf("%w: the connection was lost", semel.ErrUnavailable)
	case f == CommitLost:
		return fmt.Errorf("%w: the connection was lost", semel.ErrUnconfirmed)
	}
	work(f)
	if f == DiesAfter {
		p.t.tell("and nobody hears the answer of %s", c.what)
		p.die()
	}
	switch {
	case p.dead.Load():
		return errDead
	case f == AckLost:
		return fmt.Errorf("%w: the connection was lost", semel.ErrUnconfirmed)
	}
	return nil
}

// hit breaks what is broken before the call.
func (t *trial) hit(p *process, f Fault, c *call) {
	switch f {
	case DiesBefore:
		t.tell("before %s:", c.what)
		p.die()
	case StoreLost:
		t.tell("%s loses its connection to the store before %s", p.name, c.what)
	case AckLost:
		t.tell("%s loses its connection to the store during %s, which is written all the same", p.name, c.what)
	case CommitLost:
		t.tell("%s loses its connection to the store during %s, and cannot know that nothing was written", p.name, c.what)
	case Frozen:
		t.tell("%s stands still before %s, until it is too late for it", p.name, c.what)
		t.pass(c.sendBy.Sub(t.now()) + time.Second)
		if !t.now().Before(c.lease) {
			t.other(nil)
		}
		t.tell("%s goes on", p.name)
	case LeaseLapses, SlowCode:
		t.tell("%s stands still before %s, until its lease is over", p.name, c.what)
		t.pass(lease + time.Second)
		t.other(nil)
		t.tell("%s goes on", p.name)
	case SecondTrigger:
		t.tell("somebody starts the same run again, and another worker looks")
		t.other(&again{})
	case SecondRun:
		t.tell("somebody asks for the same work in a second run")
		t.other(&again{key: "-again"})
	case CancelBefore:
		t.cancel(c.port == "CommitRun") // which looks whether it must stop
	case ApprovalRevoked:
		t.revoke()
	case ClockAhead:
		t.tell("the clock of %s steps an hour ahead", p.name)
		p.skew.Add(int64(time.Hour))
	case ClockBack:
		t.tell("the clock of %s steps an hour back", p.name)
		p.skew.Add(-int64(time.Hour))
	default: // belongs to the destination
	}
}

// resolve finds the simulated destination of a stored operation.
func (p *process) resolve(o *semel.Operation) (semel.Destination, semel.Contract, error) {
	return portDestination{p}, o.Contract, nil
}

// trouble is what an error says that the trial did not mean.
func (p *process) trouble(err error) error {
	if p.dead.Load() || errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrUnconfirmed) {
		return nil
	}
	return err
}
