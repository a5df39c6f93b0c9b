package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

// lateness is a distribution of durations, in µs.
type lateness struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
}

func (l lateness) String() string {
	return fmt.Sprintf("p50 %.0f, p99 %.0f, max %.0f", l.P50, l.P99, l.Max)
}

func distribution(all []time.Duration) lateness {
	slices.Sort(all)
	return lateness{P50: quantile(all, 0.50), P99: quantile(all, 0.99), Max: quantile(all, 1)}
}

// wakes is how runs woke.
type wakes struct {
	Runs     int      `json:"runs"`
	Starting float64  `json:"starting_s"`
	Late     lateness `json:"late"`     // from the time to the step after the sleep
	Ended    float64  `json:"ended_us"` // the last run, after the last time
}

// claims is what a claim costs, and how late runs wake.
type claims struct {
	Nothing lateness `json:"nothing"`
	One     lateness `json:"one"`
	Late    lateness `json:"late"`
}

// napper has a worker whose runs sleep.
type napper struct {
	store  semel.Store
	engine *engine.Engine
	worker *engine.Worker

	mu   sync.Mutex
	late []time.Duration // of runs that woke
}

// nap is the input of a run.
type nap struct {
	Until time.Time `json:"until"`
}

// napping sleeps until a time, and tells how late it is then.
func napping(woke func(late time.Duration)) semel.WorkflowDefinition {
	return semel.Workflow[nap]{Name: "nap", Func: func(ctx semel.Context, in nap) error {
		if err := semel.SleepUntil(ctx, "sleep", in.Until); err != nil {
			return err
		}
		woke(time.Since(in.Until))
		return nil
	}}.Definition()
}

func newNap(until time.Time) semel.NewRun {
	n, err := semel.Workflow[nap]{Name: "nap"}.New(semel.MintKey(time.Now(), tenBytes()), nap{until})
	if err != nil {
		panic(err) // the same input is always fine
	}
	return n
}

// asleep is the worker process of sleep.
func asleep(args []string) error {
	flags := flag.NewFlagSet("asleep", flag.ExitOnError)
	store := flags.String("store", onPostgres, "postgres or sqlite")
	at := flags.String("at", "", "URL of a database, or path of a file")
	runs := flags.Int("runs", 0, "how many runs sleep; 0 measures claims")
	length := flags.Duration("nap", 0, "how long they sleep at least")
	over := flags.Duration("over", 0, "over which time they wake")
	profile := flags.String("cpuprofile", "", "file for a CPU profile from the first wake-up on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx := context.Background()
	s := &napper{}
	var err error
	if s.store, s.engine, s.worker, err = openWorker(ctx, *store, *at, napping(s.woke)); err != nil {
		return err
	}
	if *runs > 0 {
		err = s.sleep(*runs, *length, *over, *profile)
	} else {
		err = s.claim(ctx)
	}
	return errors.Join(err, s.engine.Close(ctx), s.store.Close())
}

func (s *napper) woke(late time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, late)
}

func (s *napper) awake() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.late)
}

// work runs the worker meanwhile.
func (s *napper) work(f func() error) error {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.worker.Run(ctx) }()
	err := f()
	stop()
	if end := <-ended; !errors.Is(end, context.Canceled) {
		err = errors.Join(err, end)
	}
	return err
}

// sleep says when the worker is idle and when n runs are asleep, and tells how
// they woke.
func (s *napper) sleep(n int, length, over time.Duration, profile string) error {
	in := bufio.NewReader(os.Stdin)
	heard := func(state string) error {
		if _, err := fmt.Println(state); err != nil {
			return err
		}
		_, err := in.ReadString('\n')
		return err
	}
	return s.work(func() error {
		if err := heard("idle"); err != nil {
			return err
		}
		began := time.Now()
		first := began.Add(length).UTC().Truncate(time.Millisecond)
		if err := s.start(n, func(i int) time.Time { return first.Add(over * time.Duration(i) / time.Duration(n)) }); err != nil {
			return err
		}
		if _, err := nothingBefore(s.store, "nap", first); err != nil {
			return err
		}
		w := wakes{Runs: n, Starting: time.Since(began).Seconds()}
		if err := heard("asleep"); err != nil {
			return err
		}
		if s.awake() > 0 {
			return fmt.Errorf("%d runs woke before they were watched asleep: they took %.1f s to start, and %v to watch", s.awake(), w.Starting, time.Since(began))
		}
		time.Sleep(time.Until(first) - time.Second)
		stop, err := startProfile(profile)
		if err != nil {
			return err
		}
		for s.awake() < n {
			time.Sleep(time.Millisecond)
		}
		if _, err := nothingBefore(s.store, "nap", time.Time{}); err != nil {
			return err
		}
		w.Ended = float64(time.Since(first.Add(over)).Microseconds())
		w.Late = distribution(s.late)
		return errors.Join(stop(), json.NewEncoder(os.Stdout).Encode(w))
	})
}

// start starts n runs, through this worker, from many goroutines.
func (s *napper) start(n int, until func(i int) time.Time) error {
	const callers = 64
	failed := make([]error, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := c; i < n && failed[c] == nil; i += callers {
				_, _, failed[c] = s.worker.Start(context.Background(), newNap(until(i)))
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// How often a claim is measured, and how many runs wake over how long.
const (
	claimsMade  = 1000
	runsClaimed = 300
	runsWoken   = 1000
	wokenOver   = 5 * time.Second
)

// claim measures claims of nothing and of one run, and how late a worker wakes
// runs.
func (s *napper) claim(ctx context.Context) error {
	runs := s.store.(semel.Runs)
	var nothing, one []time.Duration
	of := []semel.WorkflowRef{{Name: "nap", Version: 1}}
	by := semel.RunClaim{By: "bench", Lease: time.Minute}
	timed := func(want int) (time.Duration, []semel.Run, error) {
		begin := time.Now()
		got, err := runs.Claim(ctx, by, of, 100)
		if err == nil && len(got) != want {
			err = fmt.Errorf("claimed %d runs, want %d", len(got), want)
		}
		return time.Since(begin), got, err
	}
	for range claimsMade {
		took, _, err := timed(0)
		if err != nil {
			return err
		}
		nothing = append(nothing, took)
	}
	for range runsClaimed {
		if _, _, err := s.engine.Start(ctx, newNap(time.Now())); err != nil {
			return err
		}
		took, got, err := timed(1)
		if err != nil {
			return err
		}
		one = append(one, took)
		end := runs.CommitRun(ctx, semel.RunCommit{RunFence: semel.RunFence{Run: got[0].ID, Attempt: got[0].Attempt}, Next: &semel.RunNext{State: semel.RunCompleted}})
		if end.RunErr != nil {
			return end.RunErr
		}
	}
	err := s.work(func() error {
		first := time.Now().Add(10 * time.Second).UTC().Truncate(time.Millisecond)
		if err := s.start(runsWoken, func(i int) time.Time { return first.Add(wokenOver * time.Duration(i) / runsWoken) }); err != nil {
			return err
		}
		for s.awake() < runsWoken {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(claims{distribution(nothing), distribution(one), distribution(s.late)})
}

// startProfile begins a CPU profile, if a file is given.
func startProfile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
