package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

type riverJob struct {
	Number int64 `json:"number"`
}

func (riverJob) Kind() string { return "effect" }

type riverWorker struct {
	river.WorkerDefaults[riverJob]
}

func (riverWorker) Work(context.Context, *river.Job[riverJob]) error { return nil }

// riverLoop has one job for each effect: a run of one step. Tuned, it fetches
// every millisecond, and works at a thousand jobs of a backlog at a time.
type riverLoop[T any] struct {
	client  *river.Client[T]
	closeDB func()
	made    atomic.Int64
	events  <-chan *river.Event
	total   int // of a backlog
	started bool

	mu      sync.Mutex
	waiting map[int64]chan struct{} // by job
	early   map[int64]bool          // completed before anybody waited
}

// riverJobs is both a workload and a backlog.
type riverJobs interface {
	workload
	backlog
	follow() error
}

func openRiver(ctx context.Context, o options) (riverJobs, error) {
	if o.store == onSQLite {
		db, err := sql.Open("sqlite", "file:"+o.at+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		return newRiver(ctx, riversqlite.New(db), o, func() { _ = db.Close() })
	}
	config, err := pgxpool.ParseConfig(o.at)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 50
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return newRiver(ctx, riverpgxv5.New(pool), o, pool.Close)
}

func newRiver[T any](ctx context.Context, driver riverdriver.Driver[T], o options, closeDB func()) (*riverLoop[T], error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	atOnce := max(100, o.callers)
	if o.backlog > 0 && o.tuned {
		atOnce = 1000
	}
	config := &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}},
		Workers: river.NewWorkers(), Logger: quiet,
	}
	river.AddWorker(config.Workers, riverWorker{})
	if o.tuned {
		config.FetchCooldown, config.FetchPollInterval = time.Millisecond, time.Millisecond
	}
	client, err := river.NewClient(driver, config)
	if err != nil {
		return nil, err
	}
	w := &riverLoop[T]{client: client, closeDB: closeDB, waiting: map[int64]chan struct{}{}, early: map[int64]bool{}}
	w.events, _ = client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 100_000})
	return w, nil
}

// follow works at jobs as they come.
func (w *riverLoop[T]) follow() error {
	go func() {
		for e := range w.events {
			w.completed(e.Job.ID)
		}
	}()
	w.started = true
	return w.client.Start(context.Background())
}

func (w *riverLoop[T]) completed(job int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done, ok := w.waiting[job]
	if !ok {
		w.early[job] = true
		return
	}
	delete(w.waiting, job)
	close(done)
}

func (w *riverLoop[T]) effect(int) error {
	r, err := w.client.Insert(context.Background(), riverJob{w.made.Add(1)}, nil)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	w.mu.Lock()
	if w.early[r.Job.ID] {
		delete(w.early, r.Job.ID)
		close(done)
	} else {
		w.waiting[r.Job.ID] = done
	}
	w.mu.Unlock()
	<-done
	return nil
}

// start inserts jobs as fast as River can: 2,000 in a statement.
func (w *riverLoop[T]) start(n, _ int) error {
	w.total = n
	for n > 0 {
		jobs := make([]river.InsertManyParams, min(2000, n))
		for i := range jobs {
			jobs[i] = river.InsertManyParams{Args: riverJob{w.made.Add(1)}}
		}
		if _, err := w.client.InsertManyFast(context.Background(), jobs); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
		n -= len(jobs)
	}
	return nil
}

func (w *riverLoop[T]) drain() error {
	w.started = true
	if err := w.client.Start(context.Background()); err != nil {
		return err
	}
	for range w.total {
		select {
		case <-w.events:
		case <-time.After(time.Minute):
			return errors.New("no job was completed for a minute")
		}
	}
	return nil
}

func (w *riverLoop[T]) close() error {
	defer w.closeDB()
	if !w.started {
		return nil
	}
	return w.client.Stop(context.Background())
}
