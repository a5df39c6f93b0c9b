package sqlite

import "context"

// Exec runs a statement on the connection that writes, between transactions.
func (s *Store) Exec(ctx context.Context, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.writer.conn.ExecContext(ctx, text)
	return err
}

// Explain puts an error of SQLite into words.
func Explain(path string, err error) error { return explain(path, err) }
