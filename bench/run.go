package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The contenders.
const (
	raw   = "raw"   // a connection for each caller, two commits for each effect
	bare  = "bare"  // group commit with nothing around it
	ours  = "semel" // through the engine
	grown = "grown" // through the engine, on a store that holds many operations

	// Engines, with their defaults, and with timers that are as short as they
	// can be.
	dbos             = "dbos"
	river            = "river"
	riverTuned       = "river-tuned"
	goWorkflows      = "go-workflows"
	goWorkflowsTuned = "go-workflows-tuned"
)

// counters are what is read before and after a measurement.
type counters struct {
	at                      time.Time
	commits, flushes, bytes int64
	client, server, machine time.Duration // CPU time
}

func clientCounters(pid int) counters {
	return counters{at: time.Now(), client: processCPU(pid), machine: machineCPU()}
}

// point is what is measured: one contender with so many callers.
type point struct {
	who     string
	callers int
	steps   int // of each run; 0 for single effects
	backlog int // runs that were started before; 0 for a closed loop
}

// of is the same point for another contender.
func (p point) of(who string) point {
	p.who = who
	return p
}

// file names the point in the name of a file.
func (p point) file() string {
	switch {
	case p.backlog > 0:
		return "backlog"
	case p.steps > 0:
		return fmt.Sprintf("%d-runs-of-%d", p.callers, p.steps)
	}
	return strconv.Itoa(p.callers)
}

func (p point) String() string {
	switch {
	case p.backlog > 0:
		return fmt.Sprintf("a backlog of %d runs", p.backlog)
	case p.steps > 0:
		return fmt.Sprintf("%d runs of %d steps in flight", p.callers, p.steps)
	}
	return fmt.Sprintf("%d callers", p.callers)
}

// run is one measurement of a point.
type run struct {
	point
	round int
	measurement
	commits, flushes, bytes float64 // per effect
	client, server          float64 // CPU per effect, in µs
	others                  float64 // cores used by nobody of ours
}

func (r run) throughput() float64 { return float64(r.Effects) / r.Seconds }

// withStarts is the throughput of a backlog, the time to start it counted.
func (r run) withStarts() float64 { return float64(r.Effects) / (r.Seconds + r.Starting) }

// rawHeader names the fields of a raw line.
const rawHeader = "raw,set,round,who,callers,effects_per_s,p50_us,p99_us,commits_per_effect,flushes_per_effect,bytes_per_effect,client_cpu_us,server_cpu_us,other_cores,effects,steps,starting_s"

func (r run) line(set string) string {
	return fmt.Sprintf("raw,%s,%d,%s,%d,%.0f,%.0f,%.0f,%.3f,%.3f,%.0f,%.1f,%.1f,%.2f,%d,%d,%.3f", set, r.round, r.who, r.callers, r.throughput(),
		r.P50, r.P99, r.commits, r.flushes, r.bytes, r.client, r.server, r.others, r.Effects, r.steps, r.Starting)
}

// worker is how a contender is run.
type worker struct {
	binary string
	args   []string
}

// measure runs the worker against the database at an address.
func measure(ctx context.Context, where place, w worker, p point) (run, error) {
	if err := where.settle(ctx); err != nil {
		return run{}, err
	}
	cmd := exec.CommandContext(ctx, w.binary, append(w.args, "-callers", strconv.Itoa(p.callers))...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return run{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return run{}, err
	}
	if err := cmd.Start(); err != nil {
		return run{}, err
	}
	r, err := converse(ctx, where, cmd.Process.Pid, in, bufio.NewReader(out), p)
	if err := errors.Join(err, in.Close(), cmd.Wait()); err != nil {
		return run{}, fmt.Errorf("%s, %v: %w", p.who, p, err)
	}
	return r, nil
}

// converse is the other side of serve.
func converse(ctx context.Context, where place, pid int, in io.Writer, out *bufio.Reader, p point) (run, error) {
	r := run{point: p}
	if line, err := out.ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		return r, fmt.Errorf("want a worker that is ready, got %q: %w", line, err)
	}
	before, err := where.count(ctx, pid)
	if err != nil {
		return r, err
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		return r, err
	}
	line, err := out.ReadString('\n')
	if err != nil {
		return r, err
	}
	after, err := where.count(ctx, pid)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(line), &r.measurement); err != nil {
		return r, err
	}
	r.per(before, after)
	return r, nil
}

// per takes the difference of two readings.
func (r *run) per(before, after counters) {
	n := float64(max(r.Effects, 1))
	r.commits = float64(after.commits-before.commits) / n
	r.flushes = float64(after.flushes-before.flushes) / n
	r.bytes = float64(after.bytes-before.bytes) / n
	client, server := after.client-before.client, after.server-before.server
	r.client = float64(client.Microseconds()) / n
	r.server = float64(server.Microseconds()) / n
	r.others = (after.machine - before.machine - client - server).Seconds() / after.at.Sub(before.at).Seconds()
}
