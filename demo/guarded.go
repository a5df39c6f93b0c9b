package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/sandbox"
)

const (
	// round is the pause before what is not settled is tried again.
	round = 500 * time.Millisecond
	// standstill is how long a worker goes on without settling anything.
	standstill = time.Minute
	// owner is told about what only a person can settle.
	owner = "billing-ops"
)

// answer is what all three destinations say about an effect.
type answer struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// billing is the three actions of the night.
type billing struct {
	charge, transfer, receipt semel.Action[invoice, answer]
	destination               *httpdest.Destination
}

func newBilling(base string, said *announcer) (*billing, error) {
	profile, err := httpdest.BuiltIn("sandbox")
	if err != nil {
		return nil, err
	}
	d, err := httpdest.New(httpdest.Options{Base: base, Profile: profile})
	if err != nil {
		return nil, err
	}
	action := func(name string, resource sandbox.Resource, body func(invoice) order) semel.Action[invoice, answer] {
		return semel.Action[invoice, answer]{
			Name: name, Owner: owner,
			Key: func(i invoice) string { return i.reference() + "-" + name },
			Send: semel.Effect[invoice, answer]{
				Connection: connection(resource), Contract: contract(resource, base),
				Destination: &heard{Destination: d, said: said, resource: resource},
				Request: func(i invoice) (semel.Request, error) {
					b, err := json.Marshal(body(i))
					if err != nil {
						return semel.Request{}, err
					}
					r, _, err := httpdest.NewRequest("POST", base+"/v1/"+string(resource), nil, b)
					return r, err
				},
			},
		}
	}
	return &billing{
		charge:      action("charge", sandbox.Charges, invoice.order),
		transfer:    action("transfer", sandbox.Transfers, invoice.order),
		receipt:     action("receipt", sandbox.Messages, invoice.receipt),
		destination: d,
	}, nil
}

// scopes of the night's operations, by resource.
func scopes(tenant string) map[semel.Scope]sandbox.Resource {
	return map[semel.Scope]sandbox.Resource{
		semel.ActionScope(tenant, connection(sandbox.Charges), "charge"):     sandbox.Charges,
		semel.ActionScope(tenant, connection(sandbox.Transfers), "transfer"): sandbox.Transfers,
		semel.ActionScope(tenant, connection(sandbox.Messages), "receipt"):   sandbox.Messages,
	}
}

// heard is a destination whose sends the demo hears about.
type heard struct {
	*httpdest.Destination
	said     *announcer
	resource sandbox.Resource
}

func (h *heard) Send(ctx context.Context, s *semel.Send) semel.Event {
	var o order
	if json.Unmarshal(s.Operation.Request.Body, &o) == nil {
		h.said.sending(h.resource, o.Reference)
	}
	return h.Destination.Send(ctx, s)
}

// guarded bills invoices with Semel. It keeps no progress of its own: a
// restarted worker begins its list again, and every retry is the same call.
func (a *assignment) guarded(ctx context.Context, due []invoice, said *announcer, log *slog.Logger) (err error) {
	store, err := openStore(ctx, a.DB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	b, err := newBilling(a.Base, said)
	if err != nil {
		return err
	}
	known := scopes(a.Tenant)
	guard, err := engine.New(ctx, store, engine.Options{
		Name: fmt.Sprintf("demo worker %d (process %d)", a.Part, os.Getpid()), Tenant: a.Tenant, Lease: lease, Late: true, Logger: log,
		Resolve: func(o *semel.Operation) (semel.Destination, semel.Contract, error) {
			resource, ok := known[o.Scope]
			if !ok {
				return nil, semel.Contract{}, errors.New("it is not of this night")
			}
			return &heard{Destination: b.destination, said: said, resource: resource}, contract(resource, a.Base), nil
		},
	})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	recovery, stop := context.WithCancel(ctx)
	wg.Go(func() { _ = guard.Run(recovery) }) // it ends with the context's error only
	defer func() {
		stop()
		wg.Wait()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell/2)
		defer cancel()
		err = errors.Join(err, guard.Close(last), b.destination.Close(last))
	}()
	return b.all(ctx, guard, due, log)
}

// all bills until nothing is left that a machine can settle.
func (b *billing) all(ctx context.Context, guard semel.Guard, due []invoice, log *slog.Logger) error {
	for moved := time.Now(); len(due) > 0 && time.Since(moved) < standstill; {
		var later []invoice
		for _, inv := range due {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !b.bill(ctx, guard, inv, log) {
				later = append(later, inv)
			}
		}
		if len(later) < len(due) {
			moved = time.Now()
		}
		if due = later; len(due) == 0 {
			break
		}
		select {
		case <-time.After(round):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// bill charges one invoice and sends its receipt. It reports whether nothing is
// left to do for a machine.
func (b *billing) bill(ctx context.Context, guard semel.Guard, inv invoice, log *slog.Logger) bool {
	money := b.charge
	if inv.Transfer {
		money = b.transfer
	}
	for _, action := range []semel.Action[invoice, answer]{money, b.receipt} {
		done, err := action.Do(ctx, guard, inv)
		if err != nil {
			log.Warn("not asked", "action", action.Name, "invoice", inv.Number, "err", err)
			return false // this call sent nothing: the next one says so under the same key
		}
		if done.Status != semel.StatusCompleted {
			return settled(&done.Outcome)
		}
	}
	return true
}

// settled reports whether only a person can go on with an operation that is not
// completed.
func settled(o *semel.Outcome) bool {
	switch o.Status {
	case semel.StatusUnknown, semel.StatusFailed, semel.StatusInProgress:
		return o.Next.Kind == semel.MovePerson || o.Next.Kind == semel.MoveDone
	case semel.StatusCompleted, semel.StatusConflict, semel.StatusExpired, semel.StatusIncident, semel.StatusUnsafe:
	}
	return true
}
