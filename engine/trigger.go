package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/schedule"
)

// How many events a worker delivers at a time, how many missed ticks it makes
// up for at a time, and how long it rests in between.
const (
	deliverBatch = 100
	fireBatch    = 100
	fireRest     = 250 * time.Millisecond
)

// fire starts runs by schedules and events until ctx ends. Any number of
// workers do the same: a tick and an event name the run that they start.
func (w *Worker) fire(ctx context.Context) {
	for ctx.Err() == nil && w.e.ctx.Err() == nil {
		n, err := w.fireOnce(ctx)
		if err != nil && ctx.Err() == nil {
			w.e.log.Warn("start runs by schedules and events", "err", err)
		}
		if n > 0 {
			w.Kick()
			continue
		}
		timer := time.NewTimer(fireRest)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-w.e.ctx.Done():
		}
		timer.Stop()
	}
}

// fireOnce starts what is due now and returns how much that was.
func (w *Worker) fireOnce(ctx context.Context) (int, error) {
	delivered, undelivered := w.runs.Deliver(ctx, deliverBatch)
	if undelivered != nil { // which keeps no schedule
		undelivered = fmt.Errorf("deliver events: %w", undelivered)
	}
	now, err := w.e.now(ctx)
	if err != nil {
		return delivered, errors.Join(undelivered, err)
	}
	schedules, err := w.runs.Schedules(ctx)
	if err != nil {
		return delivered, errors.Join(undelivered, fmt.Errorf("read the schedules: %w", err))
	}
	fired := 0
	for i := range schedules {
		s := &schedules[i]
		if s.Paused || s.NextAt.After(now) {
			continue
		}
		n, err := w.tick(ctx, s, now)
		if err != nil {
			w.e.log.Warn("fire a schedule", "workflow", s.Workflow, "schedule", s.Name, "err", err)
		}
		fired += n
	}
	return delivered + fired, undelivered
}

// tick starts the runs of one schedule that are due.
func (w *Worker) tick(ctx context.Context, s *semel.ScheduleState, now time.Time) (int, error) {
	spec, err := parseSchedule(s.Schedule)
	if err != nil {
		return 0, err
	}
	due := spec.Due(s.Seen, now, schedule.Missed(s.Missed), fireBatch)
	f := semel.Firing{Workflow: s.Workflow, Name: s.Name, Seen: s.Seen, Last: due.Last, NextAt: due.Next.At, Skipped: due.Skipped}
	for _, t := range due.Fire {
		f.Runs = append(f.Runs, w.scheduled(s, t))
	}
	switch err := w.runs.Fire(ctx, f); {
	case errors.Is(err, semel.ErrStale):
		return 0, nil // another worker did
	case err != nil:
		return 0, err
	}
	if due.Skipped > 0 {
		w.e.log.Warn("ticks were missed and are left out", "workflow", s.Workflow, "schedule", s.Name, "skipped", due.Skipped, "missed", s.Missed)
	}
	return len(f.Runs), nil
}

// scheduled is the run of a tick.
func (w *Worker) scheduled(s *semel.ScheduleState, t schedule.Tick) semel.NewRun {
	key := t.Label
	if s.Name != "" {
		key = s.Name + " " + key
	}
	n := semel.NewRun{
		ID: w.e.newID(), Workflow: s.Workflow, Version: s.Version, Definition: s.Definition, Key: semel.Key(key), Input: s.Input,
		Trigger: semel.Trigger{Kind: semel.BySchedule, Tick: &semel.Tick{At: t.At, Label: t.Label, Date: t.Date}},
	}
	if len(n.Input) == 0 {
		n.Input = []byte("{}")
	}
	return n
}

func parseSchedule(s semel.Schedule) (schedule.Spec, error) {
	if err := schedule.Missed(s.Missed).Validate(); err != nil {
		return schedule.Spec{}, err
	}
	return schedule.Parse(s.Cron, s.Zone)
}
