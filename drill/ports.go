package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/semel-dev/semel"
)

// portDestination is the simulated world as a process sees it.
type portDestination struct{ p *process }

func (d portDestination) Send(_ context.Context, s *semel.Send) semel.Event {
	var ev semel.Event
	c := call{
		port: "Send", what: "the request of " + d.p.t.place(s.Operation), contract: s.Operation.Contract,
		approved: s.Operation.Approval != (semel.ID{}), sendBy: s.Operation.Attempts[s.Attempt-1].SendBy,
		lease: s.Operation.LeaseUntil,
	}
	err := d.p.visit(c, func(f Fault) { ev = d.p.t.world.send(d.p, s, f) })
	if err != nil {
		return semel.Event{Kind: semel.EvLost, Reason: err.Error()}
	}
	if ev.Kind == semel.EvConfirmed {
		d.p.t.heard(d.p, of(s.Operation))
	}
	return ev
}

func (d portDestination) Look(_ context.Context, s *semel.Send) semel.Event {
	var ev semel.Event
	c := call{port: "Look", what: "the lookup of " + d.p.t.place(s.Operation), contract: s.Operation.Contract}
	err := d.p.visit(c, func(Fault) { ev = d.p.t.world.look(d.p, s) })
	if err != nil {
		return semel.Event{Kind: semel.EvNoAnswer, Reason: err.Error()}
	}
	return ev
}

// behind makes the destinations of a workflow simulated ones.
func (p *process) behind(def semel.WorkflowDefinition) semel.WorkflowDefinition {
	if run := def.Run; run != nil {
		def.Run = func(ctx semel.Context) error {
			err := run(ctx.Through(p.executor))
			if err == nil {
				p.t.setReturned(ctx.Run().ID)
			}
			return err
		}
	}
	def.Schedules = nil // the trial alone starts runs
	def.Actions = slices.Clone(def.Actions)
	for i := range def.Actions {
		def.Actions[i].Destination = portDestination{p}
	}
	return def
}

func (p *process) executor(e semel.Executor) semel.Executor { return portExecutor{e, p} }

// portExecutor hands on steps that reach the simulated world. What a list has
// side by side takes turns, and random values are the same each time: one
// schedule has one story.
type portExecutor struct {
	semel.Executor
	p *process
}

func (e portExecutor) Step(ctx semel.Context, path string, s semel.Step) (semel.StepRecord, error) {
	e.p.t.know(e.Run())
	switch given := s.(type) {
	case *semel.DoStep:
		step := *given
		step.Call = e.reach(path, given.Call)
		rec, err := e.Executor.Step(ctx, path, &step)
		if err != nil {
			e.p.t.setDenied(e.intention(path, &step), e.p, &rec, err)
			return rec, err
		}
		e.p.t.setDone(e.intention(path, &step), e.p.t.placeOf(e.Run(), path))
		_ = e.p.visit(call{port: codePort, what: "the code after " + e.p.t.placeOf(e.Run(), path)}, func(Fault) {})
		return rec, nil
	case *semel.ApprovalStep:
		step := *given
		step.Call = e.reach("", given.Call)
		s = &step
	case *semel.EachStep:
		step := *given
		step.AtOnce = 1
		run, all := e.Run().ID, list{e.Run().ID, path}
		step.Body = func(ctx semel.Context, item []byte) error {
			err := given.Body(ctx.Through(e.p.executor), item)
			if err == nil {
				e.p.t.setItem(run, ctx.Branch())
			}
			return err
		}
		e.p.t.listed(all, given.Keys)
		rec, err := e.Executor.Step(ctx, path, &step)
		if err == nil {
			e.p.t.listDone(all)
		}
		return rec, err
	case *semel.ValueStep:
		step := *given
		step.Compute = func(now time.Time, _ [16]byte) ([]byte, error) { return given.Compute(now, e.random(path)) }
		s = &step
	}
	return e.Executor.Step(ctx, path, s)
}

// reach makes a call reach the simulated world. One without a destination stays
// one: that is a mistake to be found.
func (e portExecutor) reach(path string, c semel.Call) semel.Call {
	if c.Destination != nil {
		c.Destination = portDestination{e.p}
	}
	if path != "" && e.p.t.isChanged(e.Run(), path) {
		c.Request.Body = changed(c.Request.Body)
	}
	return c
}

// intention is what a step asks for, as the engine names it.
func (e portExecutor) intention(path string, s *semel.DoStep) intention {
	i := intention{s.Call.Scope, s.Call.Key}
	if i.scope == "" {
		i.scope = semel.ActionScope("default", s.Call.Request.Connection, s.Call.Action)
	}
	if s.Keyless {
		i.key = semel.StepKey(e.Run(), path)
	}
	return i
}

// changed is another body than b.
func changed(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n")
	if json.Valid(b) && bytes.HasPrefix(b, []byte("{")) {
		comma := ","
		if bytes.Equal(bytes.Join(bytes.Fields(b), nil), []byte("{}")) {
			comma = ""
		}
		return append(bytes.TrimSuffix(slices.Clone(b), []byte("}")), comma+`"changed":true}`...)
	}
	return append(slices.Clone(b), " changed"...)
}

func (e portExecutor) random(path string) (value [16]byte) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.Run().Key))
	_, _ = h.Write([]byte(path))
	if e.p.t.durable(e.Run().ID, path) {
		_, _ = h.Write([]byte("again")) // the record should have been read
	}
	r := rand.New(rand.NewPCG(e.p.t.d.seed, h.Sum64()))
	for i := range value {
		value[i] = byte(r.Uint32())
	}
	return value
}
