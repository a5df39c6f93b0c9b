package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/spool"
)

// patience is how long a command keeps trying to record an outcome before the
// evidence goes to the spool; closing is how long it waits for its attempt to
// say what it knows after it was interrupted.
const (
	patience = 10 * time.Second
	closing  = 15 * time.Second
	lookBack = 10 * time.Minute // for the same request under a fresh key
)

// engine makes the engine of one command.
func (sh *shell) engine(ctx context.Context, store semel.Store, o engine.Options) (*engine.Engine, error) {
	o.Patience, o.Regenerated, o.Late = patience, lookBack, false
	o.Logger = slog.New(&plainLog{to: sh.err})
	return engine.New(ctx, store, o)
}

// openSpool opens the spool of a database.
func openSpool(d database) (*spool.Spool, error) {
	dir := d.spoolDir()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the spool: %w", err)
	}
	return spool.Open(dir)
}

// plainLog writes warnings as sentences for people.
type plainLog struct {
	to    io.Writer
	attrs []slog.Attr
}

// Enabled takes warnings and errors.
func (l *plainLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle writes one line.
func (l *plainLog) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "semel: warning: %s", r.Message)
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, ", %s %v", strings.ReplaceAll(a.Key, "_", " "), a.Value)
		return true
	}
	for _, a := range l.attrs {
		add(a)
	}
	r.Attrs(add)
	_, err := fmt.Fprintln(l.to, oneLine(b.String()))
	return err
}

// WithAttrs adds facts to every line.
func (l *plainLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &plainLog{to: l.to, attrs: append(slices.Clip(l.attrs), attrs...)}
}

// WithGroup keeps names flat: nobody reads groups in a sentence.
func (l *plainLog) WithGroup(string) slog.Handler { return l }
