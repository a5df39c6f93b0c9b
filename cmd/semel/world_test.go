package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/postgres"
	"github.com/semel-dev/semel/store/sqlite"
)

// charge is the input of the workflows of scripts.
type charge struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
}

// bank is a destination that answers as the ID of a charge says: refuse-... is
// refused, lose-... happens with a lost answer, all else is confirmed. Once the
// script says "mended", nothing is refused.
type bank struct{ mended bool }

func (b bank) Send(_ context.Context, s *semel.Send) semel.Event {
	if err := s.Begin(); err != nil {
		return semel.Event{Kind: semel.EvRefused, Reason: err.Error()}
	}
	body := string(s.Operation.Request.Body)
	switch {
	case strings.Contains(body, `"refuse-`) && !b.mended:
		return semel.Event{Kind: semel.EvRefused, Reason: "the card is blocked"}
	case strings.Contains(body, `"lose-`):
		return semel.Event{Kind: semel.EvLost, Reason: "the connection broke", Closed: true}
	}
	return semel.Event{Kind: semel.EvConfirmed, Result: &semel.Result{Reference: "ch_1", Body: []byte(`{"ok":true}`)}}
}

func (bank) Look(context.Context, *semel.Send) semel.Event {
	return semel.Event{Kind: semel.EvNoAnswer, Reason: "this bank cannot be asked"}
}

// workflows are those that the worker of scripts has.
func workflows(b bank) []semel.WorkflowDefinition {
	pay := semel.Action[charge, struct{}]{
		Name: "charge", Key: func(c charge) string { return c.ID + "-charge" },
		Send: semel.Effect[charge, struct{}]{Connection: "bank", Destination: b, Contract: semel.Contract{Protection: semel.Unprotected}},
	}
	publish := semel.Action[charge, struct{}]{
		Name: "publish", Key: func(c charge) string { return c.ID + "-publish" },
		Send: semel.Effect[charge, struct{}]{
			Connection: "press", Destination: b, Contract: semel.Contract{Protection: semel.Unprotected},
			Request: func(c charge) (semel.Request, error) {
				return semel.Request{
					Kind: "http", Method: "POST", URL: "https://press.example.com/v1/articles", MediaType: "application/json", Header: map[string]string{"X-Desk": "news"},
					Body: fmt.Appendf(nil, `{"id":%q,"price":1.10,"number":9007199254740993}`, c.ID),
				}, nil
			},
		},
	}
	nap := semel.Workflow[charge]{Name: "nap", Func: func(ctx semel.Context, c charge) error {
		if _, err := semel.Do(ctx, pay, c); err != nil {
			return err
		}
		return semel.Sleep(ctx, "cool-off", 72*time.Hour)
	}}
	order := semel.Workflow[charge]{Name: "order", Version: 2, Owner: "orders", Func: func(ctx semel.Context, c charge) error {
		paid, err := semel.Wait[charge](ctx, "order.paid", c.ID, 24*time.Hour)
		if err != nil {
			return err
		}
		return ctx.Return(paid)
	}}
	article := semel.Workflow[charge]{Name: "article", Func: func(ctx semel.Context, c charge) error {
		if err := semel.Approve(ctx, publish, c, semel.Ask{Of: "editors", Summary: "Publish " + c.ID + "?", Valid: time.Hour}); err != nil {
			return err
		}
		_, err := semel.Do(ctx, publish, c)
		return err
	}}
	billing := semel.Workflow[[]charge]{Name: "billing", Func: func(ctx semel.Context, all []charge) error {
		return semel.Each(ctx, "bill", all, func(c charge) string { return c.ID }, 4, func(ctx semel.Context, c charge) error {
			if _, err := semel.Do(ctx, pay, c); err != nil {
				return err
			}
			_, err := semel.Do(ctx.Named("receipt"), publish, c)
			return err
		})
	}}
	errand := semel.Workflow[charge]{Name: "errand", Func: func(ctx semel.Context, c charge) error {
		_, err := semel.Child(ctx, nap, semel.Key(c.ID), c)
		return err
	}}
	nightly := semel.Workflow[charge]{
		Name: "nightly", Events: []string{"night.begins"}, Func: func(semel.Context, charge) error { return nil },
		Schedules: []semel.Schedule{{Cron: "30 2 * * *", Zone: "Europe/Berlin", Missed: "skip"}},
	}
	return []semel.WorkflowDefinition{nap.Definition(), order.Definition(), article.Definition(), billing.Definition(), errand.Definition(), nightly.Definition()}
}

// worker [mended] [later D] executes all runs that are due, on a clock that is
// D later than ours.
func worker(ts *testscript.TestScript, neg bool, args []string) {
	var b bank
	var later time.Duration
	for i, arg := range args {
		switch {
		case neg:
			ts.Fatalf("usage: worker [mended] [later D]")
		case arg == "mended":
			b.mended = true
		case i > 0 && args[i-1] == "later":
			d, err := time.ParseDuration(arg)
			ts.Check(err)
			later = d
		}
	}
	ts.Check(pass(ts.Getenv("SEMEL_DB"), b, later))
}

func pass(db string, b bank, later time.Duration) (err error) {
	ctx := context.Background()
	store, err := shiftable(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	store.Shift(later)
	e, err := engine.New(ctx, store, engine.Options{Name: "worker-1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(ctx)) }()
	w, err := engine.NewWorker(ctx, e, engine.WorkerOptions{Workflows: workflows(b)})
	if err != nil {
		return err
	}
	_, err = w.Pass(ctx)
	return err
}

// shiftable is a store whose clock a test may move.
func shiftable(ctx context.Context, db string) (interface {
	semel.Store
	Shift(time.Duration)
	Close() error
}, error,
) {
	if path, ok := strings.CutPrefix(db, "sqlite:"); ok {
		return sqlite.Open(ctx, path, sqlite.Options{Create: true})
	}
	return postgres.Open(ctx, db, postgres.Options{Create: true})
}
