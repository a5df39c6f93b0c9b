package main

import (
	"context"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
)

func newRetry(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "retry ID", Short: "Do what is safe now for one operation, or say why nothing is",
		Long: `Do what is safe now for one operation: send again under the same key while the
destination honours it, look it up, or try again what did not happen. Where
nothing is safe it is refused (exit 4) with the reason, and nothing is sent.

The other exit codes are those of semel do. An operation that needs a header
which is never stored, such as Authorization, cannot be retried from here: run
the same semel do again.`,
		Example: "  semel op retry 019b2c5e-7c1a-7b3e-9d2f-3a5b6c7d8e9f",
		Args:    exactlyOne,
		RunE: ours(func(cmd *cobra.Command, args []string) error {
			id, err := semel.ParseID(args[0])
			if err != nil {
				return err
			}
			return sh.retry(cmd.Context(), id)
		}),
	}
}

func (sh *shell) retry(ctx context.Context, id semel.ID) error {
	store, d, err := sh.openToLook(ctx)
	if err != nil {
		return sh.notFound(err, "operation "+id.String())
	}
	defer sh.shut("the database", store.Close)
	o, err := store.LoadID(ctx, id)
	if err != nil {
		return sh.notFound(err, "operation "+id.String())
	}
	acting := new(atomic.Bool)
	acting.Store(o.Request.Kind == commandKind) // a program gets the signals itself
	return sh.ask(ctx, store, d, acting, func(ctx context.Context, e *engine.Engine) (semel.Outcome, error) {
		out, err := e.Retry(ctx, id, person())
		if out.Status == semel.StatusUnsafe && out.Operation.State == semel.InProgress {
			out.Status = semel.StatusInProgress
		}
		return out, err
	})
}
