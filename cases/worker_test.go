package cases

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// job says what a worker process does.
type job struct {
	Database string
	URL      string // of the destination
	Name     string // of the worker
	Flows    string // see flowsNamed
	Point    string // where it stops and waits to be killed
	Shift    time.Duration
}

// flowsNamed are the workflows that worker processes have.
func flowsNamed(name string) flows {
	switch name {
	case "bill":
		return billFlows
	case "tell":
		return tellFlows
	case "weekly":
		return weeklyFlows
	case "deadly action":
		return deadlyActionFlows
	case "deadly keyed action":
		return deadlyKeyedFlows
	case "deadly code":
		return deadlyCodeFlows
	case "paid":
		return paidFlows
	case "nap":
		return napFlows
	case "minutely":
		return minutelyFlows
	}
	panic("no workflows " + name)
}

// process is a worker in a process of its own.
type process struct {
	*exec.Cmd
	r      *rig
	lines  *bufio.Scanner
	orders io.WriteCloser
	gone   sync.Once
}

// process starts a worker and waits until it works.
func (r *rig) process(j job) *process {
	r.Helper()
	j.URL = r.dest.URL
	data, err := json.Marshal(j)
	if err != nil {
		r.Fatal(err)
	}
	p := &process{Cmd: exec.Command(os.Args[0]), r: r}
	p.Env = append(os.Environ(), "SEMEL_CASE_WORKER="+string(data))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if p.orders, err = p.StdinPipe(); err != nil {
		r.Fatal(err)
	}
	r.dest.ready()
	if err := p.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(p.kill)
	p.says("ready")
	return p
}

// says waits until the process says something.
func (p *process) says(word string) {
	p.r.Helper()
	for p.lines.Scan() {
		if p.lines.Text() == word {
			return
		}
	}
	p.r.Fatalf("the worker process ended and did not say %q", word)
}

// shift moves the clock of the process's store.
func (p *process) shift(d time.Duration) {
	p.r.Helper()
	if _, err := fmt.Fprintln(p.orders, d); err != nil {
		p.r.Fatal(err)
	}
}

// kill is SIGKILL, and waits until the process is gone.
func (p *process) kill() {
	_ = p.Process.Kill()
	p.wait()
}

// wait waits until the process has ended and returns its exit code.
func (p *process) wait() int {
	p.gone.Do(func() { _ = p.Wait() })
	return p.ProcessState.ExitCode()
}

// runWorker is the other side of rig.process. It ends with its parent.
func runWorker(args string) error {
	var j job
	if err := json.Unmarshal([]byte(args), &j); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := openRuns(ctx, j.Database)
	if err != nil {
		return err
	}
	store.Shift(j.Shift)
	d, err := httpdest.New(httpdest.Options{})
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, stoppingRuns{store, j.Point}, engine.Options{Name: j.Name, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	w, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: flowsNamed(j.Flows)(place{stopDest{d, j.Point}, j.URL})})
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if d, err := time.ParseDuration(in.Text()); err == nil {
				store.Shift(d)
			}
		}
	}()
	fmt.Println("ready")
	return w.Run(ctx)
}

func openRuns(ctx context.Context, database string) (runStore, error) {
	if file, ok := strings.CutPrefix(database, "sqlite:"); ok {
		return sqlite.Open(ctx, file, sqlite.Options{Create: true})
	}
	return postgres.Open(ctx, database, postgres.Options{Create: true})
}

// stoppingRuns is stopping for a store that keeps runs.
type stoppingRuns struct {
	runStore
	point string
}

func (s stoppingRuns) Commit(ctx context.Context, c semel.Change) (semel.Operation, error) {
	if s.point == beforeRecord && c.Event.Kind == semel.EvConfirmed {
		stop()
	}
	return s.runStore.Commit(ctx, c)
}

func (s stoppingRuns) CommitRun(ctx context.Context, c semel.RunCommit) semel.RunCommitted {
	if s.point == beforeRecord && c.Outcome != nil && c.Outcome.Event.Kind == semel.EvConfirmed {
		stop()
	}
	return s.runStore.CommitRun(ctx, c)
}
