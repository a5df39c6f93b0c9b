package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// work is the worker process for Semel. It takes the flags of bench/peers.
func work(args []string) (err error) {
	flags := flag.NewFlagSet("work", flag.ExitOnError)
	store := flags.String("store", onPostgres, "postgres or sqlite")
	at := flags.String("at", "", "URL of a database, or path of a file")
	callers := flags.Int("callers", 1, "effects under way at a time")
	warm := flags.Duration("warm", time.Second, "time before the measurement")
	d := flags.Duration("d", 3*time.Second, "measured time")
	random := flags.Bool("random", false, "random keys instead of ascending ones")
	steps := flags.Int("steps", 0, "make runs of so many steps instead of effects")
	waiting := flags.Int("backlog", 0, "start so many runs before, and measure how they are worked off")
	profile := flags.String("cpuprofile", "", "file for a CPU profile of the measured time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop, err := startProfile(*profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if *steps == 0 {
		w, err := openGuarded(context.Background(), *store, *at, *random)
		if err != nil {
			return err
		}
		return errors.Join(serve(w, *callers, *warm, *d), w.close())
	}
	w, err := openRunning(context.Background(), *store, *at, *steps)
	if err != nil {
		return err
	}
	if *waiting > 0 {
		return errors.Join(serveBacklog(w, *waiting, *callers), w.close())
	}
	w.follow()
	return errors.Join(serve(w, *callers, *warm, *d), w.close())
}

// guarded makes effects through the engine.
type guarded struct {
	store  semel.Store
	engine *engine.Engine
	random bool
}

func openGuarded(ctx context.Context, store, at string, random bool) (*guarded, error) {
	s, err := openStore(ctx, store, at)
	if err != nil {
		return nil, err
	}
	e, err := engine.New(ctx, s, engine.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &guarded{store: s, engine: e, random: random}, nil
}

func openStore(ctx context.Context, store, at string) (semel.Store, error) {
	if store == onSQLite {
		return sqlite.Open(ctx, at, sqlite.Options{Create: true})
	}
	return postgres.Open(ctx, at, postgres.Options{Create: true})
}

func (g *guarded) effect(int) error {
	key, err := g.key()
	if err != nil {
		return err
	}
	out, err := g.engine.Do(context.Background(), call(key))
	if err == nil && out.Status != semel.StatusCompleted {
		err = fmt.Errorf("effect %s is %s: %s", key, out.Status, out.Operation.Reason)
	}
	return err
}

func (g *guarded) key() (semel.Key, error) {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	if !g.random {
		return semel.MintKey(time.Now(), b), nil
	}
	var id semel.ID
	_, err := io.ReadFull(rand.Reader, id[:])
	return semel.Key(id.String()), err
}

func (g *guarded) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(g.engine.Close(ctx), g.store.Close())
}

// call is what a caller asks for: a charge of an ordinary size.
func call(key semel.Key) semel.Call {
	body := fmt.Appendf(nil, `{"invoice":%q,"customer":"cus_81712","amount":12900,"currency":"eur"}`, key)
	return semel.Call{
		Action:      "charge",
		Key:         key,
		Request:     semel.Request{Connection: "payments", Action: "charge", Kind: "call", MediaType: "application/json", Body: body},
		Contract:    semel.Contract{Protection: semel.Unprotected},
		Destination: nowhere{},
	}
}

// nowhere is a destination that confirms everything at once.
type nowhere struct{}

func (nowhere) Send(_ context.Context, s *semel.Send) semel.Event {
	if err := s.Begin(); err != nil {
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	return semel.Event{
		Kind:   semel.EvConfirmed,
		Result: &semel.Result{MediaType: "application/json", Body: []byte(`{"ok":true,"id":"ch_123456789012"}`)},
	}
}
