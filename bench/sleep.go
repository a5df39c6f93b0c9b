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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel/bench/growth"
)

// How runs that sleep are measured.
const (
	watched = 20 * time.Second // what an idle and a sleeping worker cost
	spread  = 10 * time.Second // over which runs wake, where they do not at once
	// perSecond is how many runs certainly start in a second: they must be
	// asleep before they are watched.
	perSecond = 125
	// mostIdle is how many ms of CPU a second sleeping runs may cost beyond an
	// idle worker, and mostLate how late they may wake.
	mostIdle = 5
	mostLate = time.Second
	// mostSlower is how many times slower sleeping rows may make a claim.
	mostSlower = 1.25
)

// sleep measures runs that sleep: what they cost, when they wake, and what a
// worker's claim costs beside many of them.
func (b *bench) sleep(ctx context.Context) error {
	n := b.backlog / 2
	var all []target
	for _, over := range []time.Duration{spread, 0} {
		targets, err := b.asleep(ctx, n, over)
		if err != nil {
			return err
		}
		all = append(all, targets...)
	}
	targets, err := b.beside(ctx)
	if err != nil {
		return err
	}
	fmt.Println()
	return b.judge(ctx, append(all, targets...))
}

// asleep lets n runs sleep, and wake over a time, or all at once.
func (b *bench) asleep(ctx context.Context, n int, over time.Duration) (targets []target, err error) {
	at, drop, err := b.place.fresh(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	nap := watched + time.Duration(n)*time.Second/perSecond
	name := fmt.Sprintf("%d runs that wake over %v", n, over)
	if over == 0 {
		name = fmt.Sprintf("%d runs that wake at once", n)
	}
	profile := ""
	if b.profiles != "" {
		profile = fmt.Sprintf("%s-wake-over-%v.pprof", b.profiles, over)
	}
	args := []string{"-runs", strconv.Itoa(n), "-nap", nap.String(), "-over", over.String(), "-cpuprofile", profile}
	s, err := b.startSleeper(ctx, at, args)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	idle, err := b.watch(ctx, s, "idle")
	if err != nil {
		return nil, err
	}
	if err := s.say("sleep"); err != nil {
		return nil, err
	}
	asleep, err := b.watch(ctx, s, "asleep")
	if err != nil {
		return nil, err
	}
	if err := s.say("wake"); err != nil {
		return nil, err
	}
	var w wakes
	if err := s.answer(&w); err != nil {
		return nil, err
	}
	fmt.Printf("%s, %s: %d started in %.1f s; idle worker %v; asleep %v\n", b.store, name, w.Runs, w.Starting, idle, asleep)
	fmt.Printf("%s, %s: late %s; the last completed %.0f ms after the last time\n", b.store, name, w.Late, w.Ended/1e3)
	cost := target{what: fmt.Sprintf("sleep, %s, %s: ms of CPU a second while asleep, beyond an idle worker", b.store, name), got: asleep.all() - idle.all(), want: mostIdle, most: true}
	late := target{what: fmt.Sprintf("sleep, %s, %s: seconds that the last is late", b.store, name), got: w.Late.Max / 1e6, want: mostLate.Seconds(), most: true}
	if profile != "" && late.met() {
		err = os.Remove(profile)
	} else if profile != "" {
		err = errors.Join(s.close(), b.show(ctx, name, profile))
	}
	return []target{cost, late}, err
}

// cost is what processes used in a second, in ms of CPU.
type cost struct{ client, server, others float64 }

func (c cost) all() float64 { return c.client + c.server }

func (c cost) String() string {
	return fmt.Sprintf("%.1f ms/s and %.1f ms/s of the server (others %.0f)", c.client, c.server, c.others)
}

// watch reads what the worker costs once it has said that it is in a state.
func (b *bench) watch(ctx context.Context, s *sleeper, state string) (cost, error) {
	if err := s.hear(state); err != nil {
		return cost{}, err
	}
	if err := b.tidy(ctx, s.at); err != nil {
		return cost{}, err
	}
	before, err := b.place.count(ctx, s.cmd.Process.Pid)
	if err != nil {
		return cost{}, err
	}
	time.Sleep(watched)
	after, err := b.place.count(ctx, s.cmd.Process.Pid)
	seconds := after.at.Sub(before.at).Seconds()
	per := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 / seconds }
	client, server := after.client-before.client, after.server-before.server
	return cost{per(client), per(server), per(after.machine - before.machine - client - server)}, err
}

// tidy does now what the server would do by itself some time after many rows
// were written: it is no part of what sleeping costs.
func (b *bench) tidy(ctx context.Context, at string) error {
	if b.store == onSQLite {
		return nil
	}
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "vacuum analyze")
	return errors.Join(err, conn.Close(ctx), b.place.settle(ctx))
}

// beside measures a worker on a store without runs, and with many that sleep.
func (b *bench) beside(ctx context.Context) (targets []target, err error) {
	places := map[int]string{}
	for _, rows := range []int{0, b.rows} {
		at, drop, err := b.place.fresh(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, drop()) }() //nolint:gocritic // two databases
		start := time.Now()
		fill := growth.PostgresSleeping
		if b.store == onSQLite {
			fill = growth.SQLiteSleeping
		}
		if err := fill(ctx, at, napping(nil), newNap(time.Now().Add(24*time.Hour)), rows); err != nil {
			return nil, err
		}
		fmt.Printf("# %d sleeping runs loaded in %v\n", rows, time.Since(start).Round(time.Second))
		places[rows] = at
	}
	all := map[int][]claims{}
	for range b.options.rounds {
		for _, rows := range []int{0, b.rows} {
			awaitQuiet(b.quiet)
			if err := b.place.settle(ctx); err != nil {
				return nil, err
			}
			c, err := b.claims(ctx, places[rows])
			if err != nil {
				return nil, err
			}
			fmt.Printf("%s, %d sleeping: claim of nothing, µs: %s; of one run: %s; runs wake late: %s\n", b.store, rows, c.Nothing, c.One, c.Late)
			all[rows] = append(all[rows], c)
		}
	}
	for what, of := range map[string]func(claims) lateness{
		"a claim of nothing": func(c claims) lateness { return c.Nothing },
		"a claim of one run": func(c claims) lateness { return c.One },
		"wake-up":            func(c claims) lateness { return c.Late },
	} {
		with, without := medianOf(all[b.rows], of), medianOf(all[0], of)
		targets = append(targets, target{
			what: fmt.Sprintf("sleep, %s, %s: times as long (p50) with %d sleeping runs, %.0f µs, as with none", b.store, what, b.rows, with),
			got:  with / without, want: mostSlower, most: true,
		})
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.what, b.what) })
	return targets, nil
}

func medianOf(all []claims, of func(claims) lateness) float64 {
	var p50 []float64
	for _, c := range all {
		p50 = append(p50, of(c).P50)
	}
	slices.Sort(p50)
	return p50[len(p50)/2]
}

func (b *bench) claims(ctx context.Context, at string) (c claims, err error) {
	s, err := b.startSleeper(ctx, at, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return c, s.answer(&c)
}

// sleeper is a process that asleep.go runs.
type sleeper struct {
	at  string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (b *bench) startSleeper(ctx context.Context, at string, args []string) (*sleeper, error) {
	s := &sleeper{at: at, cmd: exec.CommandContext(ctx, b.self, slices.Concat([]string{"asleep", "-store", b.store, "-at", at}, args)...)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	return s, s.cmd.Start()
}

func (s *sleeper) hear(want string) error {
	if line, err := s.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != want {
		return fmt.Errorf("want a worker that is %s, got %q: %w", want, line, err)
	}
	return nil
}

func (s *sleeper) say(what string) error {
	_, err := io.WriteString(s.in, what+"\n")
	return err
}

func (s *sleeper) answer(into any) error {
	line, err := s.out.ReadString('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(line), into)
}

func (s *sleeper) close() error {
	if s.cmd.ProcessState != nil {
		return nil
	}
	return errors.Join(s.in.Close(), s.cmd.Wait())
}
