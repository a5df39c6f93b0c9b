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

// workload makes effects durable in its own way: a claim before, an outcome
// after. Its caller n makes one effect at a time.
type workload interface {
	effect(caller int) error
	close() error
}

// measurement is what a worker process prints on one line.
type measurement struct {
	Effects int     `json:"effects"`
	Seconds float64 `json:"seconds"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
}

// serve drives w in a closed loop, between marks at which the process that
// started this one reads its counters: it warms up, prints "ready", waits for a
// line, measures, prints the measurement, waits for the end of its input.
func serve(w workload, callers int, warm, d time.Duration) error {
	if _, err := drive(w, callers, warm); err != nil {
		return err
	}
	if _, err := fmt.Println("ready"); err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	m, err := drive(w, callers, d)
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
