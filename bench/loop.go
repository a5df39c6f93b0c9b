package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// This file is the same in bench and in bench/peers, which share no code: what
// is compared must be measured by one loop. A test keeps the two equal.

// workload makes effects or runs durable in its own way. Its caller n makes one
// at a time, and has it when it is durable.
type workload interface {
	effect(caller int) error
	close() error
}

// backlog is a workload of which all is started before any of it is worked at.
type backlog interface {
	// start makes n runs durable, from so many goroutines.
	start(n, callers int) error
	// drain works at them, and returns when all are durably completed.
	drain() error
	close() error
}

// measurement is what a worker process prints on one line.
type measurement struct {
	Effects int     `json:"effects"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	// Starting is how long it took to start a backlog.
	Starting float64 `json:"starting_s,omitzero"`
}

// serve drives w in a closed loop, after a warm-up.
func serve(w workload, callers int, warm, d time.Duration) error {
	if _, err := drive(w, callers, warm); err != nil {
		return err
	}
	return between(func() (measurement, error) { return drive(w, callers, d) })
}

// serveBacklog starts n runs and measures how long it takes to work them off.
func serveBacklog(w backlog, n, callers int) error {
	begin := time.Now()
	if err := w.start(n, callers); err != nil {
		return err
	}
	starting := time.Since(begin)
	return between(func() (measurement, error) {
		begin := time.Now()
		err := w.drain()
		return measurement{Effects: n, Seconds: time.Since(begin).Seconds(), Starting: starting.Seconds()}, err
	})
}

// between measures between marks at which the process that started this one
// reads its counters: it prints "ready", waits for a line, measures, prints the
// measurement, waits for the end of its input.
func between[M any](measure func() (M, error)) error {
	if _, err := fmt.Println("ready"); err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	m, err := measure()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(m); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// drive lets all callers make effects until d is over and each has finished
// its last one.
func drive(w workload, callers int, d time.Duration) (measurement, error) {
	var wg sync.WaitGroup
	var over atomic.Bool
	took := make([][]time.Duration, callers)
	failed := make([]error, callers)
	start := time.Now()
	for n := range callers {
		wg.Go(func() {
			for !over.Load() && failed[n] == nil {
				began := time.Now()
				failed[n] = w.effect(n)
				took[n] = append(took[n], time.Since(began))
			}
		})
	}
	time.Sleep(d)
	over.Store(true)
	wg.Wait()
	elapsed := time.Since(start)
	for _, err := range failed {
		if err != nil {
			return measurement{}, err
		}
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return measurement{Effects: len(all), Seconds: elapsed.Seconds(), P50: quantile(all, 0.50), P99: quantile(all, 0.99)}, nil
}

// quantile of sorted durations, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Nanoseconds()) / 1e3
}
