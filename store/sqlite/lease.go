package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-dev/semel"
)

const renewLease = `
	update operation
	set lease_until = max(lease_until, ?3),
		due_at = max(lease_until, ?3)
	where id = ?1
		and attempt = ?2
		and state = 'in_progress'
		and lease_until > ?4
	returning lease_until, cancel`

// Renew extends the lease of the current attempt; see semel.Store.
func (s *Store) Renew(ctx context.Context, id semel.ID, attempt int, lease time.Duration) (semel.Renewal, error) {
	r := &renewal{id: id, attempt: attempt, lease: lease}
	if err := s.submit(ctx, r, false); err != nil {
		return semel.Renewal{}, err
	}
	return r.answer, nil
}

type renewal struct {
	id      semel.ID
	attempt int
	lease   time.Duration
	answer  semel.Renewal
}

func (r *renewal) write(w *writer, at int64) error {
	var until int64
	err := w.row(w.renew, r.id[:], r.attempt, at+int64(r.lease), at).Scan(&until, &r.answer.Cancel)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: attempt %d no longer holds the claim", semel.ErrStale, r.attempt)
	}
	r.answer.Until = fromNano(until)
	return err
}
