package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("usage: peers raw|bare [flags]")
	}
	flags := flag.NewFlagSet("peers", flag.ExitOnError)
	store := flags.String("store", "postgres", "postgres or sqlite")
	at := flags.String("at", "", "URL of an empty database, or path of a file to create")
	callers := flags.Int("callers", 1, "effects under way at a time")
	warm := flags.Duration("warm", time.Second, "time before the measurement")
	d := flags.Duration("d", 3*time.Second, "measured time")
	random := flags.Bool("random", false, "random keys instead of ascending ones")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	key := ascendingKey
	if *random {
		key = randomKey
	}
	open := map[string]func(context.Context, string, int, func() [16]byte) (workload, error){
		"raw postgres": rawPostgres, "bare postgres": barePostgres, "raw sqlite": rawSQLite, "bare sqlite": bareSQLite,
	}[os.Args[1]+" "+*store]
	if open == nil {
		return fmt.Errorf("there is no %q on %q", os.Args[1], *store)
	}
	w, err := open(context.Background(), *at, *callers, key)
	if err != nil {
		return err
	}
	if err := serve(w, *callers, *warm, *d); err != nil {
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
