package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"

	"github.com/semel-dev/semel/sandbox"
)

// assignment is what a worker is told: its part of which half of which night.
// With Semel it takes what there is to do, and its part is a name.
type assignment struct {
	Semel bool   `json:"semel"` // with Semel, or the usual way
	Dir   string `json:"dir"`
	Base  string `json:"base"` // of the destinations
	DB    string `json:"db"`
	Part  int    `json:"part"`
	Night string `json:"night"` // its ID
	Due   int    `json:"due"`   // how many invoices are due for all workers
}

// Work is a worker process: it reads its assignment from in and does it. It
// ends early when in ends, which it does when the demo is gone. On out it says
// what it is about to send, so that the demo can kill it in mid-send.
func Work(ctx context.Context, in io.Reader, out, log io.Writer) error {
	signal.Ignore(os.Interrupt) // a terminal's Ctrl-C reaches everybody; the demo decides
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	orders := bufio.NewReader(in)
	line, err := orders.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the assignment: %w", err)
	}
	var a assignment
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("read the assignment: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, orders)
		stop()
	}()
	due, err := invoices(a.Due)
	if err != nil {
		return err
	}
	said := &announcer{out: out}
	if a.Semel {
		return a.guarded(ctx, due, said, slog.New(slog.NewTextHandler(log, nil)))
	}
	var mine []invoice
	for i, inv := range due {
		if i%workers == a.Part {
			mine = append(mine, inv)
		}
	}
	return a.usual(ctx, mine, said)
}

// announcer tells the demo what is about to be sent.
type announcer struct {
	mu  sync.Mutex
	out io.Writer
}

func (a *announcer) sending(resource sandbox.Resource, reference string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintln(a.out, "sending "+sending(resource, reference))
}
