package sqlite

import (
	"context"
	"database/sql"

	"github.com/semel-dev/semel"
)

const (
	insertNote = `
		insert into run_note (run, at, kind, by, text)
		values (?, ?, ?, ?, ?)`
	selectNotes = `
		select at, kind, by, text
		from run_note
		where run = ?
		order by seq`
)

func note(ctx context.Context, s session, run semel.ID, at int64, n semel.RunNote) error {
	_, err := exec(ctx, s, insertNote, run[:], at, n.Kind, n.By, n.Text)
	return err
}

// Notes reads what people and workers did to a run, oldest first.
func (s *Store) Notes(ctx context.Context, run semel.ID) ([]semel.RunNote, error) {
	var notes []semel.RunNote
	err := s.read(ctx, func(tx *sql.Tx) error {
		notes = nil
		return each(ctx, tx, func(sc scan) error {
			var n semel.RunNote
			var at int64
			err := sc(&at, &n.Kind, &n.By, &n.Text)
			n.At = fromNano(at)
			notes = append(notes, n)
			return err
		}, selectNotes, run[:])
	})
	return notes, err
}
