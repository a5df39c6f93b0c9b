package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/spool"
)

// errand is one line to a runner: a client that starts a run or sends an
// event, or a person who asks something of a run.
type errand struct {
	Number int               `json:"number"`
	Start  *Plan             `json:"start,omitempty"`
	Event  *semel.InboxEvent `json:"event,omitempty"`
	Ask    *Asked            `json:"ask,omitempty"`
	Again  semel.ID          `json:"again,omitzero"` // an operation to retry
	Tend   int               `json:"tend,omitzero"`  // retry so many runs that are held
	Cut    time.Duration     `json:"cut,omitzero"`
	Lose   int               `json:"lose,omitzero"`
}

// answer is one line back. Without a problem the errand is done.
type answer struct {
	Number   int    `json:"number"`
	Run      string `json:"run,omitzero"`
	Existing bool   `json:"existing,omitzero"`
	Refused  bool   `json:"refused,omitzero"` // the run is in a state that does not take it
	Problem  string `json:"problem,omitzero"`
	Tended   int    `json:"tended,omitzero"`
	Spooled  int    `json:"spooled,omitzero"`
}

// flows are the names of the workflows. They have one function: the input of a
// run is its plan.
func flows() []string {
	return []string{"bill", "batch", "order", "family", "leaf", "meet", "fallback"}
}

// runner is a worker process that executes runs.
type runner struct {
	a        *assignment
	own      *road // of steps
	recovers *road // of recovery
	notes    *os.File

	mu      sync.Mutex
	execute map[semel.ID]int // claims of the runs that are executed here
}

func (r *runner) workflow(name string) semel.Workflow[Plan] {
	return semel.Workflow[Plan]{Name: name, Owner: "soak", Func: r.run, Actions: r.definitions()}
}

func (r *runner) definitions() (all []semel.Definition) {
	for _, p := range Protections() {
		all = append(all, semel.Definition{Connection: actionOf(p), Action: actionOf(p), Contract: r.a.contract(p), Destination: r.recovers})
	}
	return all
}

// run is the workflow function.
func (r *runner) run(ctx semel.Context, p Plan) error {
	run := ctx.Run()
	r.note(&run, p.id(), false)
	defer r.note(&run, p.id(), true)
	return r.nodes(ctx, p.Nodes)
}

func (r *runner) note(run *semel.Run, id runID, end bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !end {
		r.execute[run.ID] = run.Attempt
	} else if r.execute[run.ID] == run.Attempt {
		delete(r.execute, run.ID)
	}
	line, err := json.Marshal(Execution{runID: id, Attempt: run.Attempt, Worker: r.a.Name, At: time.Now(), End: end})
	if err == nil {
		_, err = r.notes.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

func (r *runner) nodes(ctx semel.Context, nodes []Node) error {
	for i := range nodes {
		if err := r.node(ctx, &nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) node(ctx semel.Context, n *Node) error {
	named := ctx.Named(n.Name)
	switch {
	case n.Do != nil:
		err := r.do(named, n, *n.Do, n.Tries)
		if _, nothing := errors.AsType[*semel.FailedError](err); nothing && n.Else != nil {
			return r.do(ctx.Named(n.Name+"-else"), n, *n.Else, 3)
		}
		return err
	case n.Items != nil:
		return semel.Each(ctx, n.Name, n.Items, func(i Item) string { return i.Key }, n.AtOnce, func(ctx semel.Context, i Item) error { return r.nodes(ctx, i.Nodes) })
	case n.Child != nil:
		_, err := semel.Child(named, r.workflow(n.Child.Workflow), semel.Key(n.Child.Key), *n.Child)
		return err
	case n.Event != "":
		got, err := semel.Wait[string](named, "paid", n.Event, 0)
		if err == nil && got != n.Event {
			err = fmt.Errorf("waited for event %s and got %s", n.Event, got)
		}
		return err
	case n.Read != "":
		_, err := semel.Do(named, r.read(), n.Read)
		return err
	case n.Draw:
		_, err := semel.Random(ctx, n.Name)
		return err
	}
	return semel.Sleep(ctx, n.Name, n.Sleep)
}

func (r *runner) do(ctx semel.Context, n *Node, i Intention, tries int) error {
	contract := r.a.contract(i.Protection)
	if i.Final {
		contract.OnFailed = semel.ReturnFailed
	}
	a := semel.Action[Intention, string]{Name: actionOf(i.Protection), Send: semel.Effect[Intention, string]{
		Connection: actionOf(i.Protection), Contract: contract, Destination: r.own,
		Request: func(i Intention) (semel.Request, error) {
			c, err := r.a.call(r.own, &i)
			return c.Request, err
		},
		Result: func(got *semel.Result) (string, error) { return answerTo(i, got) },
	}}
	if !n.Keyless {
		a.Key = func(i Intention) string { return i.Key }
	}
	_, err := semel.Retrying(ctx, a, i, semel.Retry{Attempts: tries, Backoff: 200 * time.Millisecond})
	return err
}

// answerTo reads the reference in an answer: a step must get its own.
func answerTo(i Intention, got *semel.Result) (string, error) {
	var effect struct {
		Reference string `json:"reference"`
	}
	if len(got.Body) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(got.Body, &effect); err != nil {
		return "", err
	}
	if effect.Reference != i.Reference {
		return "", fmt.Errorf("the step for %s got the answer for %s", i.Reference, effect.Reference)
	}
	return effect.Reference, nil
}

// read asks for transfers, the first time without success.
func (r *runner) read() semel.Action[string, json.RawMessage] {
	return semel.Action[string, json.RawMessage]{Name: "read", Key: func(ref string) string { return "read " + ref }, Send: semel.Effect[string, json.RawMessage]{
		Connection: "read", Destination: r.own,
		Contract: semel.Contract{Protection: semel.Commutes, Timeout: answerWithin, WriteTimeout: writeTimeout, Backoff: 200 * time.Millisecond},
		Request: func(ref string) (semel.Request, error) {
			req, _, err := httpdest.NewRequest(http.MethodGet, r.a.Main+"/v1/transfers?fault=drop_before@1&reference="+ref, nil, nil)
			return req, err
		},
	}}
}

// labels are the headers that tell the destination's log who sends.
func (r *runner) labels(s *semel.Send) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, executing := r.execute[s.Operation.Run]
	if !executing || s.Attempt < 1 || s.Attempt > len(s.Operation.Attempts) {
		return nil
	}
	return map[string]string{runHeader: strconv.Itoa(n), claimedHeader: s.Operation.Attempts[s.Attempt-1].ClaimedAt.UTC().Format(time.RFC3339Nano)}
}

// execute is the process of a runner. SIGTERM drains it.
func execute(in io.Reader, out io.Writer) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- append([]byte(nil), s.Bytes()...)
		}
	}()
	a := &assignment{}
	if err := json.Unmarshal(<-lines, a); err != nil {
		return err
	}
	store, err := openStore(ctx, a.DB)
	if err != nil {
		return err
	}
	port := &runPort{port: &port{Store: store}, Runs: store.(semel.Runs)}
	if a.MayLose {
		store = port
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	kept, err := spool.Open(a.Spool)
	if err != nil {
		return err
	}
	defer kept.Close()
	said := &replies{out: out}
	left, err := kept.Len()
	if err != nil {
		return err
	}
	said.say(answer{Number: -1, Spooled: left})
	r := &runner{a: a, execute: map[semel.ID]int{}}
	if r.notes, err = os.OpenFile(filepath.Join(filepath.Dir(a.Spool), "executions-"+a.Name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if r.recovers, err = a.roads(nil); err != nil {
		return err
	}
	if r.own, err = a.roads(r.labels); err != nil {
		return err
	}
	e, err := engine.New(ctx, store, engine.Options{
		Name: a.Name, Tenant: tenant, Lease: lease, Patience: 3 * time.Second, Late: true, Spool: kept,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("worker", a.Name),
	})
	if err != nil {
		return err
	}
	var defs []semel.WorkflowDefinition
	for _, name := range flows() {
		defs = append(defs, r.workflow(name).Definition())
	}
	w, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: defs, Drain: 8 * time.Second, AtOnce: 64, Strict: a.Seed%2 == 0})
	if err != nil {
		return err
	}
	c := &client{a: a, r: r, e: e, w: w, runs: store.(semel.Runs)}
	var wg sync.WaitGroup
	if !a.Client {
		wg.Go(func() {
			if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
				fmt.Fprintln(os.Stderr, a.Name, "drained:", err)
			}
		})
	}
	for more := true; more && ctx.Err() == nil; {
		var line []byte
		select {
		case line, more = <-lines:
		case <-ctx.Done():
		}
		var o errand
		if len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &o); err != nil {
			return err
		}
		port.cut(o.Cut)
		port.lose.Add(int64(o.Lose))
		if o.Start != nil || o.Event != nil || o.Ask != nil || o.Tend > 0 || o.Again != (semel.ID{}) {
			wg.Go(func() { said.say(c.do(ctx, &o)) })
		}
	}
	stop()
	wg.Wait()
	last, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	return errors.Join(e.Close(last), r.own.Close(last), r.own.dead.Close(last), r.recovers.Close(last), r.recovers.dead.Close(last))
}

// client does errands.
type client struct {
	a    *assignment
	r    *runner
	e    *engine.Engine
	w    *engine.Worker
	runs semel.Runs
}

func (c *client) do(ctx context.Context, o *errand) answer {
	got := answer{Number: o.Number}
	var err error
	switch {
	case o.Start != nil:
		var n semel.NewRun
		var run semel.Run
		if n, err = c.r.workflow(o.Start.Workflow).New(semel.Key(o.Start.Key), *o.Start); err == nil {
			start := c.w.Start
			if c.a.Client {
				start = c.e.Start // for some worker
			}
			run, got.Existing, err = start(ctx, n)
			got.Run = run.ID.String()
		}
	case o.Event != nil:
		got.Existing, err = c.runs.Send(ctx, *o.Event)
	case o.Ask != nil:
		var run semel.Run
		if run, err = c.runs.FindRun(ctx, o.Ask.Workflow, semel.Key(o.Ask.Key)); err == nil {
			_, err = c.runs.ChangeRun(ctx, run.ID, semel.RunCommand{Verb: semel.RunVerb(o.Ask.Verb), By: c.a.Name, Reason: "chaos"})
		}
		if _, refused := errors.AsType[*semel.RunStateError](err); refused {
			got.Refused, err = true, nil
		}
	case o.Again != (semel.ID{}):
		_, err = c.e.Retry(ctx, o.Again, c.a.Name)
	case o.Tend > 0:
		for run, err := range c.runs.ListRuns(ctx, semel.RunFilter{State: semel.RunHeld, Limit: o.Tend}) {
			if err != nil {
				break
			}
			if _, err := c.runs.ChangeRun(ctx, run.ID, semel.RunCommand{Verb: semel.RetryRun, By: c.a.Name, Reason: "chaos"}); err == nil {
				got.Tended++
			}
		}
	}
	if err != nil {
		got.Problem = err.Error()
	}
	return got
}
