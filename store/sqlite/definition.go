package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-dev/semel"
)

const (
	insertDefinition = `
		insert into definition (digest, workflow, version, text)
		values (?, ?, ?, ?)
		on conflict do nothing`
	registerWorkflow = `
		insert into workflow (name, version, digest, owner)
		values (?1, ?2, ?3, ?4)
		on conflict (name) do update
		set version = ?2,
			digest = ?3,
			owner = ?4
		where version <= ?2`
	deleteSubscriptions = `
		delete from subscription
		where workflow = ?`
	insertSubscription = `
		insert into subscription (event, workflow)
		values (?, ?)
		on conflict do nothing`
	registeredWorkflows = `
		select name, version, digest, owner
		from workflow
		order by name`
	definitionsOf = `
		select workflow, version, digest, text
		from definition
		where workflow = ?
		order by version, digest`
	definitionOfDigest = `
		select text
		from definition
		where digest = ?`
)

// Register makes definitions known; see semel.Runs.
func (s *Store) Register(ctx context.Context, definitions []semel.WorkflowDefinition) error {
	for _, d := range definitions {
		seen := map[string]bool{}
		for _, sch := range d.Schedules {
			if seen[sch.Name] {
				return &semel.InputError{Field: "schedule " + sch.Name, Problem: "is there twice in " + d.Name, Hint: "give each schedule a name of its own"}
			}
			seen[sch.Name] = true
		}
	}
	return s.submit(ctx, registration(definitions), false)
}

// registration is the work of Register.
type registration []semel.WorkflowDefinition

func (r registration) write(w *writer, at int64) error {
	ctx := context.Background()
	for i := range r {
		if err := register(ctx, w, &r[i], at); err != nil {
			return err
		}
	}
	return nil
}

func register(ctx context.Context, s session, d *semel.WorkflowDefinition, at int64) error {
	if d.Digest != "" {
		text := d.Text
		if text == nil {
			text = []byte{}
		}
		if _, err := exec(ctx, s, insertDefinition, d.Digest, d.Name, d.Version, text); err != nil {
			return err
		}
	}
	n, err := exec(ctx, s, registerWorkflow, d.Name, d.Version, d.Digest, d.Owner)
	if err != nil || n == 0 {
		return err // a newer version is registered
	}
	if _, err := exec(ctx, s, deleteSubscriptions, d.Name); err != nil {
		return err
	}
	for _, event := range d.Events {
		if _, err := exec(ctx, s, insertSubscription, event, d.Name); err != nil {
			return err
		}
	}
	return replaceSchedules(ctx, s, d, at)
}

// Registered reads the text of a definition by its digest.
func (s *Store) Registered(ctx context.Context, digest string) ([]byte, error) {
	var text []byte
	err := s.read(ctx, func(tx *sql.Tx) error {
		found, err := one(ctx, tx, into(&text), definitionOfDigest, digest)
		if err == nil && !found {
			err = &answer{fmt.Sprintf("no definition has the digest %q", digest), semel.ErrNotFound}
		}
		return err
	})
	return text, err
}

// Definitions lists the definitions of a workflow; see semel.Runs.
func (s *Store) Definitions(ctx context.Context, workflow string) ([]semel.RegisteredDefinition, error) {
	var all []semel.RegisteredDefinition
	err := s.read(ctx, func(tx *sql.Tx) error {
		all = nil
		return each(ctx, tx, func(sc scan) error {
			var d semel.RegisteredDefinition
			err := sc(&d.Name, &d.Version, &d.Digest, &d.Text)
			all = append(all, d)
			return err
		}, definitionsOf, workflow)
	})
	return all, err
}

// Workflows lists the newest version of each workflow.
func (s *Store) Workflows(ctx context.Context) ([]semel.RegisteredWorkflow, error) {
	var all []semel.RegisteredWorkflow
	err := s.read(ctx, func(tx *sql.Tx) error {
		all = nil
		return each(ctx, tx, func(sc scan) error {
			var w semel.RegisteredWorkflow
			err := sc(&w.Name, &w.Version, &w.Definition, &w.Owner)
			all = append(all, w)
			return err
		}, registeredWorkflows)
	})
	return all, err
}
