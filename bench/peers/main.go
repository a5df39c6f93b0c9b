package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// What every effect writes: a fingerprint with its claim, an answer with its
// outcome.
const (
	fingerprint = "0123456789abcdef0123456789abcdef"
	answer      = `{"ok":true,"id":"ch_123456789012"}`
)

// The stores, as flags name them.
const (
	onPostgres = "postgres"
	onSQLite   = "sqlite"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type options struct {
	store, at string
	callers   int
	key       func() [16]byte
	// Of engines.
	steps   int
	backlog int
	tuned   bool
}

func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("usage: peers raw|bare|dbos|river|go-workflows [flags]")
	}
	var o options
	flags := flag.NewFlagSet("peers", flag.ExitOnError)
	flags.StringVar(&o.store, "store", onPostgres, "postgres or sqlite")
	flags.StringVar(&o.at, "at", "", "URL of an empty database, or path of a file to create")
	flags.IntVar(&o.callers, "callers", 1, "effects or runs under way at a time")
	flags.IntVar(&o.steps, "steps", 1, "steps of each run")
	flags.IntVar(&o.backlog, "backlog", 0, "start so many runs before, and measure how they are worked off")
	flags.BoolVar(&o.tuned, "tuned", false, "poll often, where a timer is the default's limit")
	warm := flags.Duration("warm", time.Second, "time before the measurement")
	d := flags.Duration("d", 3*time.Second, "measured time")
	random := flags.Bool("random", false, "random keys instead of ascending ones")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	o.key = ascendingKey
	if *random {
		o.key = randomKey
	}
	if o.backlog > 0 {
		return drainBacklog(os.Args[1], o)
	}
	w, err := open(context.Background(), os.Args[1], o)
	if err != nil {
		return err
	}
	if err := serve(w, o.callers, *warm, *d); err != nil {
		return err
	}
	return w.close()
}

func open(ctx context.Context, who string, o options) (workload, error) {
	switch who + " " + o.store {
	case "raw postgres":
		return rawPostgres(ctx, o.at, o.callers, o.key)
	case "bare postgres":
		return barePostgres(ctx, o.at, o.callers, o.key)
	case "raw sqlite":
		return rawSQLite(ctx, o.at, o.callers, o.key)
	case "bare sqlite":
		return bareSQLite(ctx, o.at, o.callers, o.key)
	}
	switch who {
	case "dbos":
		return openDBOS(ctx, o)
	case "go-workflows":
		return openGoWorkflows(ctx, o)
	case "river":
		if o.steps != 1 {
			return nil, errors.New("a job of River has no steps")
		}
		w, err := openRiver(ctx, o)
		if err != nil {
			return nil, err
		}
		return w, w.follow()
	}
	return nil, fmt.Errorf("there is no %q on %q", who, o.store)
}

func drainBacklog(who string, o options) error {
	if who != "river" {
		return fmt.Errorf("only River has a backlog here, not %s", who)
	}
	w, err := openRiver(context.Background(), o)
	if err != nil {
		return err
	}
	if err := serveBacklog(w, o.backlog, o.callers); err != nil {
		return err
	}
	return w.close()
}

// ascendingKey is a UUID of version 7.
func ascendingKey() [16]byte {
	b := randomKey()
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16|uint64(b[6]&0x0f|0x70)<<8|uint64(b[7]))
	return b
}

// randomKey is a UUID of version 4.
func randomKey() (b [16]byte) {
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return b
}
