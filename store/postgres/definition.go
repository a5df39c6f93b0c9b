package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// Register makes definitions known; see semel.Runs.
func (s *Store) Register(ctx context.Context, definitions []semel.WorkflowDefinition) error {
	for _, d := range definitions {
		seen := make(map[string]bool, len(d.Schedules))
		for _, sch := range d.Schedules {
			if seen[sch.Name] {
				return &semel.InputError{Field: "schedule " + sch.Name, Problem: "is there twice in " + d.Name, Hint: "give each schedule a name of its own"}
			}
			seen[sch.Name] = true
		}
	}
	definitions = slices.Clone(definitions)
	slices.SortStableFunc(definitions, func(a, b semel.WorkflowDefinition) int { return strings.Compare(a.Name, b.Name) }) // others lock them in the same order
	return s.transact(ctx, "register workflows", func(tx pgx.Tx, _ bool) error {
		now, err := s.clockOf(ctx, tx)
		if err != nil {
			return err
		}
		for i := range definitions {
			if err := register(ctx, tx, &definitions[i], now); err != nil {
				return err
			}
		}
		return nil
	})
}

func register(ctx context.Context, tx pgx.Tx, d *semel.WorkflowDefinition, now time.Time) error {
	const keep = `
insert into semel.definition (digest, workflow, version, text)
values ($1::text, $2::text, $3::integer, $4::bytea)
on conflict do nothing`
	const upsert = `
insert into semel.workflow as w (name, version, definition, owner)
values ($1::text, $2::integer, $3::text, $4::text)
on conflict (name) do update
set version = excluded.version, definition = excluded.definition, owner = excluded.owner
where w.version <= excluded.version`
	const unsubscribe = `
delete from semel.subscription
where workflow = $1::text`
	const subscribe = `
insert into semel.subscription (event, workflow)
values ($1::text, $2::text)
on conflict do nothing`
	if d.Digest != "" {
		if _, err := tx.Exec(ctx, keep, d.Digest, d.Name, d.Version, notNil(d.Text)); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, upsert, d.Name, d.Version, d.Digest, d.Owner)
	if err != nil || tag.RowsAffected() == 0 {
		return err // an older version than is registered
	}
	if _, err := tx.Exec(ctx, unsubscribe, d.Name); err != nil {
		return err
	}
	for _, event := range d.Events {
		if _, err := tx.Exec(ctx, subscribe, event, d.Name); err != nil {
			return err
		}
	}
	return reschedule(ctx, tx, d, now)
}

// Registered reads the text of a definition; see semel.Runs.
func (s *Store) Registered(ctx context.Context, digest string) (text []byte, err error) {
	const query = `
select text
from semel.definition
where digest = $1::text`
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, query, digest).Scan(&text)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("definition %s: %w", digest, semel.ErrNotFound)
	case err != nil:
		return nil, unavailable("read a definition", err)
	}
	return text, nil
}

// Definitions lists the definitions of a workflow; see semel.Runs.
func (s *Store) Definitions(ctx context.Context, workflow string) ([]semel.RegisteredDefinition, error) {
	const query = `
select workflow, version, digest, text
from semel.definition
where workflow = $1::text
order by version, digest`
	return collect(ctx, s, "list definitions", func(row pgx.CollectableRow) (semel.RegisteredDefinition, error) {
		var d semel.RegisteredDefinition
		err := row.Scan(&d.Name, &d.Version, &d.Digest, &d.Text)
		return d, err
	}, query, workflow)
}

// Workflows lists the newest version of each workflow; see semel.Runs.
func (s *Store) Workflows(ctx context.Context) ([]semel.RegisteredWorkflow, error) {
	const query = `
select name, version, definition, owner
from semel.workflow
order by name`
	return collect(ctx, s, "list workflows", func(row pgx.CollectableRow) (semel.RegisteredWorkflow, error) {
		var w semel.RegisteredWorkflow
		err := row.Scan(&w.Name, &w.Version, &w.Definition, &w.Owner)
		return w, err
	}, query)
}
