// Package stage is what the commands of the examples have in common: a store in
// a directory, a worker, and providers that live in the same process.
package stage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
	sqldest "github.com/semel-dev/semel/destination/sql"
	"github.com/semel-dev/semel/engine"
	"github.com/semel-dev/semel/store/sqlite"
)

// Stage is open until Close. It is for one goroutine.
type Stage struct {
	Dir    string
	Store  *sqlite.Store
	Engine *engine.Engine

	working sync.WaitGroup
	stop    context.CancelFunc
	closers []func() error // in order of opening
}

// Open opens a directory, so that what a killed process began goes on in it. An
// empty name is a directory that Close removes.
func Open(ctx context.Context, dir string) (_ *Stage, err error) {
	s := &Stage{Dir: dir, stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Dir == "" {
		if s.Dir, err = os.MkdirTemp("", "semel-example-"); err != nil {
			return nil, err
		}
		s.OnClose(func() error { return os.RemoveAll(s.Dir) })
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if s.Store, err = sqlite.Open(ctx, filepath.Join(s.Dir, "semel.db"), sqlite.Options{Create: true}); err != nil {
		return nil, err
	}
	s.OnClose(s.Store.Close)
	if s.Engine, err = engine.New(ctx, s.Store, engine.Options{}); err != nil {
		return nil, err
	}
	s.OnClose(func() error { return s.Engine.Close(context.WithoutCancel(ctx)) })
	return s, nil
}

// OnClose runs fn when the stage closes, before what was opened earlier.
func (s *Stage) OnClose(fn func() error) { s.closers = append(s.closers, fn) }

// Serve makes a handler reachable, at a free port of this machine if address is
// empty, and returns where.
func (s *Stage) Serve(address string, h http.Handler) (base string, err error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // until Close
	s.OnClose(func() error {
		err := server.Close()
		serving.Wait()
		return err
	})
	return "http://" + listener.Addr().String(), nil
}

// Reach opens a connection to what lives at base.
func (s *Stage) Reach(name, base string) (*httpdest.Destination, error) {
	d, err := httpdest.New(httpdest.Options{Name: name, Base: base})
	if err != nil {
		return nil, err
	}
	s.OnClose(func() error { return d.Close(context.Background()) })
	return d, nil
}

// Database opens a database of the user's, and prepares it with statements that
// may run again.
func (s *Stage) Database(ctx context.Context, name, statements string) (*sqldest.Database, error) {
	file := filepath.Join(s.Dir, name+".db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, statements)
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", file, err)
	}
	d, err := sqldest.New("sqlite://"+file, sqldest.Options{Name: name})
	if err != nil {
		return nil, err
	}
	s.OnClose(func() error { return d.Close(context.Background()) })
	return d, nil
}

// Work begins to execute workflows.
func (s *Stage) Work(ctx context.Context, of ...semel.WorkflowDefinition) (*engine.Worker, error) {
	worker, err := engine.NewWorker(ctx, s.Engine, engine.WorkerOptions{Workflows: of})
	if err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.working.Go(func() { _ = worker.Run(ctx) }) // its error is that it was stopped
	return worker, nil
}

// Await waits until a run has ended or needs a person, and calls said with
// every new reason that it gives meanwhile.
func (s *Stage) Await(ctx context.Context, id semel.ID, said func(semel.Run)) (semel.Run, error) {
	last := ""
	for {
		run, err := s.Store.LoadRun(ctx, id)
		if err != nil {
			return run, err
		}
		if run.State.Ended() || run.State == semel.RunHeld {
			return run, nil
		}
		if run.State == semel.RunWaiting && run.Reason != last {
			last = run.Reason
			said(run)
		}
		select {
		case <-ctx.Done():
			return run, fmt.Errorf("run %s is %s: %w", run.Key, run.State, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close stops the worker at a point from which another can go on, and closes
// what was opened.
func (s *Stage) Close() error {
	s.stop()
	s.working.Wait()
	var errs []error
	for _, fn := range slices.Backward(s.closers) {
		errs = append(errs, fn())
	}
	return errors.Join(errs...)
}
