package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-dev/semel/bench/growth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "work":
		err = work(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "asleep":
		err = asleep(os.Args[2:])
	default:
		err = compare(ctx, os.Args[1:])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	set, store, url string
	callers         []int
	rounds, rows    int
	backlog         int
	d, warm, quiet  time.Duration
	random          bool
	profiles        string
}

func parse(args []string) (options, error) {
	var o options
	var callers, keys string
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.StringVar(&o.store, "store", onPostgres, "postgres or sqlite")
	flags.StringVar(&o.set, "set", setCallers, "callers, growth, slow, runs or sleep")
	flags.StringVar(&o.url, "url", "", "PostgreSQL server to use instead of one of its own")
	flags.StringVar(&callers, "callers", "", "numbers of callers, such as 1,32 (default: those of the set)")
	flags.StringVar(&keys, "keys", "ascending", "ascending, or random, which has no target")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each point is measured; the median counts")
	flags.IntVar(&o.rows, "rows", 0, "operations to load for growth (default 10,000,000), or sleeping runs for sleep (1,000,000)")
	flags.IntVar(&o.backlog, "backlog", 20_000, "runs to start before they are worked off; for sleep, half as many sleep")
	flags.DurationVar(&o.d, "d", 3*time.Second, "how long a point is measured")
	flags.DurationVar(&o.warm, "warm", time.Second, "how long it runs before")
	flags.DurationVar(&o.quiet, "quiet", 20*time.Second, "how long to wait for a quiet machine before each point")
	flags.StringVar(&o.profiles, "profiles", "", "where to leave CPU profiles of missed targets: a directory and the beginning of a file name")
	_ = flags.Parse(args) // it exits
	o.random = keys == "random"
	o.callers = defaultCallers(o.set, o.store)
	if o.rows == 0 {
		o.rows = 10_000_000
		if o.set == setSleep {
			o.rows = 1_000_000
		}
	}
	if callers != "" {
		o.callers = nil
		for s := range strings.SplitSeq(callers, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 {
				return o, fmt.Errorf("-callers %s: give numbers such as 1,32", callers)
			}
			o.callers = append(o.callers, n)
		}
	}
	switch {
	case o.store != onPostgres && o.store != onSQLite:
		return o, fmt.Errorf("-store %s: use postgres or sqlite", o.store)
	case !slices.Contains(sets, o.set):
		return o, fmt.Errorf("-set %s: use one of %s", o.set, strings.Join(sets, ", "))
	case o.set == setSlow && (o.store != onPostgres || o.url != ""):
		return o, errors.New("-set slow: works only on a PostgreSQL server of its own, whose C library it can slow down")
	case keys != "random" && keys != "ascending":
		return o, fmt.Errorf("-keys %s: use ascending or random", keys)
	}
	return o, nil
}

// bench is one comparison under way.
type bench struct {
	options
	place place
	peers string // the binary of bench/peers
	self  string // our own binary
	large string // address of the database that growth has loaded
}

func compare(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{options: o}
	dir, err := os.MkdirTemp("", "semel-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.peers, err = buildPeers(ctx, dir); err != nil {
		return err
	}
	if b.place, err = b.open(ctx, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.place.close()) }()
	if err := b.place.check(ctx); err != nil {
		return err
	}
	if err := b.introduce(ctx); err != nil {
		return err
	}
	if o.set == setSleep {
		return b.sleep(ctx)
	}
	if o.set == setGrowth {
		drop, err := b.load(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, drop()) }()
	}
	runs, err := b.rounds(ctx)
	if err != nil {
		return err
	}
	return b.conclude(ctx, medians(runs))
}

// buildPeers builds the module in bench/peers.
func buildPeers(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/semel-dev/semel").Output()
	if err != nil {
		return "", fmt.Errorf("find the sources: run it inside the module: %w", err)
	}
	binary := filepath.Join(dir, "peers")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(root)), "bench", "peers")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build bench/peers: %w\n%s", err, out)
	}
	return binary, nil
}

func (b *bench) open(ctx context.Context, dir string) (place, error) {
	switch {
	case b.store == onSQLite:
		return newDirectory()
	case b.set == setSlow:
		return startSlowServer(ctx, dir)
	}
	return startServer(ctx, b.url)
}

func (b *bench) introduce(ctx context.Context) error {
	facts, err := b.place.facts(ctx)
	if err != nil {
		return err
	}
	keys := "ascending"
	if b.random {
		keys = "random"
	}
	if b.set == setSleep {
		fmt.Printf("%s%s# set %s, %d rounds\n", machineFacts(), facts, b.set, b.options.rounds)
		return nil
	}
	fmt.Printf("%s%s# set %s, %s keys, %d rounds of %v after %v of warm-up\n%s\n", machineFacts(), facts, b.set, keys, b.options.rounds, b.d, b.warm, rawHeader)
	return nil
}

// load makes the database of growth.
func (b *bench) load(ctx context.Context) (drop func() error, err error) {
	b.large, drop, err = b.place.fresh(ctx)
	if err != nil {
		return nil, err
	}
	fill := growth.Postgres
	if b.store == onSQLite {
		fill = growth.SQLite
	}
	start := time.Now()
	if err := fill(ctx, b.large, call, b.options.rows); err != nil {
		return nil, errors.Join(err, drop())
	}
	fmt.Printf("# %d operations loaded in %v\n", b.options.rows, time.Since(start).Round(time.Second))
	return drop, nil
}

// rounds measures every point once per round, contenders next to each other.
func (b *bench) rounds(ctx context.Context) ([]run, error) {
	var runs []run
	for round := range b.options.rounds {
		for _, p := range b.points() {
			awaitQuiet(b.quiet)
			r, err := b.measure(ctx, p, "")
			if err != nil {
				return nil, err
			}
			r.round = round + 1
			runs = append(runs, r)
			if _, err := fmt.Println(r.line(b.set + "-" + b.store)); err != nil {
				return nil, err
			}
		}
	}
	return runs, nil
}

// measure runs a point on a database of its own.
func (b *bench) measure(ctx context.Context, p point, profile string) (r run, err error) {
	at := b.large
	if p.who != grown {
		fresh, drop, err := b.place.fresh(ctx)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, drop()) }()
		at = fresh
	}
	w := worker{b.self, []string{"work"}}
	if name, tuned := strings.CutSuffix(p.who, "-tuned"); p.who != ours && p.who != grown {
		w = worker{b.peers, []string{name}}
		if tuned {
			w.args = append(w.args, "-tuned")
		}
	}
	if p.steps > 0 {
		w.args = append(w.args, "-steps", strconv.Itoa(p.steps), "-backlog", strconv.Itoa(p.backlog))
	}
	w.args = append(w.args, "-store", b.store, "-at", at, "-d", b.d.String(), "-warm", b.warm.String())
	if b.random {
		w.args = append(w.args, "-random")
	}
	if profile != "" {
		w.args = append(w.args, "-cpuprofile", profile)
	}
	return measure(ctx, b.place, w, p)
}

// conclude prints the table and the verdicts, and profiles what was missed.
func (b *bench) conclude(ctx context.Context, f figures) error {
	if err := f.durable(b.device()); err != nil {
		return err
	}
	if r, ok := f[point{who: raw, callers: 1}]; ok && b.set == setSlow && r.P50 < 2000 {
		return fmt.Errorf("two commits with 1 ms more each took %.0f µs: the server does not use slow.c", r.P50)
	}
	fmt.Println()
	print := f.print
	if b.set == setRuns {
		print = f.printRuns
	}
	if err := print(os.Stdout); err != nil {
		return err
	}
	if b.random {
		fmt.Println("\nrandom keys have no target")
		return nil
	}
	fmt.Println()
	return b.judge(ctx, b.targets(f))
}

// judge prints the verdicts, and profiles the points of missed targets.
func (b *bench) judge(ctx context.Context, targets []target) error {
	var missed []point
	for _, t := range targets {
		fmt.Println(t)
		if !t.met() && t.point.who != "" && !slices.Contains(missed, t.point) {
			missed = append(missed, t.point)
		}
	}
	if b.profiles == "" {
		return nil
	}
	for _, p := range missed {
		if err := b.profile(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) device() device {
	if s, ok := b.place.(*server); ok {
		return s.device
	}
	return b.place.(*directory).device
}

// profile measures a point once more, with a CPU profile.
func (b *bench) profile(ctx context.Context, p point) error {
	file := fmt.Sprintf("%s-%s.pprof", b.profiles, p.file())
	if _, err := b.measure(ctx, p, file); err != nil {
		return err
	}
	return b.show(ctx, p.String(), file)
}

// show prints the head of a CPU profile.
func (b *bench) show(ctx context.Context, what, file string) error {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=60", b.self, file).Output()
	if err != nil {
		return fmt.Errorf("read the profile: %w", err)
	}
	fmt.Printf("\nCPU profile of %s, in %s:\n%s", what, file, out)
	return nil
}
