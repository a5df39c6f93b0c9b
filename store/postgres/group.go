package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
)

// request is what one caller has committed in one transaction, and then the
// answer.
type request struct {
	scope      semel.Scope // of what is claimed or started
	key        semel.Key
	run        semel.ID // that is changed
	statements []statement

	taken atomic.Bool // by a committer, or by its own caller who gave up
	doubt bool        // a server may have committed it
	done  chan struct{}
	err   error
}

// statement returns no row, or a time and a flag. One that finds nothing to do
// leaves those beside it alone.
type statement struct {
	sql   string
	args  []any
	claim bool     // refused where the server may lack claims
	exec  bool     // returns nothing
	there semel.ID // the operation that it locks, or whose claim it precedes; zero for none that is there
	wakes bool     // who waits for that operation

	// The answer.
	found   bool
	at      time.Time
	flag    bool
	refused error
}

func only(s statement) *request { return &request{statements: []statement{s}} }

// group commits requests of concurrent callers together. A committer takes
// what waits, in one round trip and one transaction, and never waits for more;
// what arrives meanwhile is the next one's.
type group struct {
	server   *server
	most     int
	patience time.Duration
	offset   func() time.Duration // of the store's clock
	queue    chan *request
	wg       sync.WaitGroup
	pace     pace

	mu      sync.RWMutex // held by senders; close takes it whole
	closed  bool
	running atomic.Int32
}

// grace is how long a caller whose context ended waits for a commit that is
// already on its way.
const grace = time.Second

// queued is how many requests may wait before callers wait to wait.
const queued = 4096

func newGroup(server *server, most int, patience time.Duration, offset func() time.Duration) *group {
	g := &group{server: server, most: most, patience: patience, offset: offset, queue: make(chan *request, queued)}
	g.running.Store(1)
	g.wg.Go(func() { g.commit(true) })
	return g
}

func (g *group) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.queue)
	}
	g.mu.Unlock()
	g.wg.Wait()
}

// do has r committed and returns when its answer is there. If ctx ends first,
// r is withdrawn, or left to its fate where a committer has it already.
func (g *group) do(ctx context.Context, r *request) error {
	if err := context.Cause(ctx); err != nil {
		return unavailable("commit", err)
	}
	r.done = make(chan struct{})
	if err := g.send(ctx, r); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	if r.taken.CompareAndSwap(false, true) {
		return unavailable("commit", context.Cause(ctx))
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-r.done:
		return r.err
	case <-late.C:
		return unconfirmed("commit", context.Cause(ctx))
	}
}

func (g *group) send(ctx context.Context, r *request) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return unavailable("commit", errClosed)
	}
	select {
	case g.queue <- r:
		return nil
	case <-ctx.Done():
		return unavailable("commit", context.Cause(ctx))
	}
}

// commit is the life of one committer. The first lives as long as the group;
// others come when work waits and go when commits are fast again.
func (g *group) commit(first bool) {
	c := &committer{group: g}
	defer c.disconnect()
	defer g.running.Add(-1)
	if !first && c.connect() != nil {
		return // the first says what is wrong
	}
	for r := range g.queue {
		batch := g.fill(r)
		start := time.Now()
		c.run(batch)
		g.pace.saw(time.Since(start), len(batch))
		if !first && int(g.running.Load()) > g.pace.committers(g.most) {
			return
		}
	}
}

// fill takes what waits behind r, up to a batch.
func (g *group) fill(r *request) []*request {
	most := g.pace.batch()
	batch := make([]*request, 0, min(most, len(g.queue)+1))
	for {
		if r.taken.CompareAndSwap(false, true) {
			batch = append(batch, r)
		}
		if len(batch) == most {
			return batch
		}
		select {
		case next, ok := <-g.queue:
			if !ok {
				return batch
			}
			r = next
		default:
			return batch
		}
	}
}

// grow starts another committer where somebody waits and the pace of commits
// asks for one.
func (g *group) grow() {
	if len(g.queue) == 0 {
		return
	}
	for n := g.running.Load(); int(n) < g.pace.committers(g.most) && g.pace.mayGrow(); n = g.running.Load() {
		if g.running.CompareAndSwap(n, n+1) {
			g.wg.Go(func() { g.commit(false) })
			return
		}
	}
}

// committer owns one connection.
type committer struct {
	group *group
	conn  *pgx.Conn
}

// run brings every request of the batch to its answer.
func (c *committer) run(batch []*request) {
	slices.SortFunc(batch, byPlace)
	c.settle(batch, time.Now().Add(c.group.patience))
}

// settle repeats the batch until it is known what became of it, or until the
// deadline. A repeat is safe and conclusive even while an earlier server
// process still holds the same change: it waits for that one's locks, and then
// finds either nothing, and makes the change, or the change with its own token.
func (c *committer) settle(batch []*request, deadline time.Time) {
	for tries, pause := 1, 5*time.Millisecond; len(batch) > 0; tries++ {
		failed, err := c.try(&batch)
		if err == nil {
			c.group.grow() // for those who came meanwhile: who is answered now may be back at once
			for _, r := range batch {
				close(r.done)
			}
			return
		}
		fate := fateOf(err)
		if fate == doubtful {
			for _, r := range batch {
				r.doubt = true
			}
		}
		switch {
		case fate == refused && passing(err) && tries <= 5:
			continue
		case fate == refused && len(batch) > 1 && !everyones(err):
			c.isolate(batch, failed, deadline)
			return
		case fate == unsent && tries == 1:
			continue // the connection was dead before; a new one may do
		case !slices.ContainsFunc(batch, func(r *request) bool { return r.doubt }) || time.Now().After(deadline):
			fail(batch, err)
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// isolate commits the neighbours of the request that failed, and then that one
// by itself.
func (c *committer) isolate(batch []*request, failed int, deadline time.Time) {
	if failed < 0 {
		for i := range batch {
			c.settle(batch[i:i+1:i+1], deadline)
		}
		return
	}
	poison := batch[failed]
	c.settle(slices.Delete(slices.Clone(batch), failed, failed+1), deadline)
	c.settle([]*request{poison}, deadline)
}

func fail(batch []*request, err error) {
	for _, r := range batch {
		r.err = unavailable("commit", err)
		if r.doubt {
			r.err = unconfirmed("commit", err)
		}
		close(r.done)
	}
}

// try commits the batch once. failed is the request whose statement met err,
// -1 if that is not known.
func (c *committer) try(batch *[]*request) (failed int, err error) {
	if err := c.connect(); err != nil {
		return -1, err
	}
	*batch = c.withoutSuspect(*batch)
	ctx, cancel := context.WithTimeout(context.Background(), c.group.patience)
	defer cancel()
	failed, err = c.send(ctx, *batch)
	if err == nil {
		return 0, nil
	}
	if c.conn.IsClosed() {
		c.conn = nil
		return -1, err
	}
	if stateOf(err) == "" {
		err = &refusal{err} // pgx could not encode it; the connection is whole, so nothing was committed
	}
	return failed, err
}

// withoutSuspect refuses the claims of the batch where the server may not hold
// all claims made so far. Everything else may go on.
func (c *committer) withoutSuspect(batch []*request) []*request {
	server := c.group.server
	if server.suspect.Load() == nil {
		return batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.group.patience)
	defer cancel()
	_ = server.judge(ctx, c.conn) // somebody may have accepted it; an error changes nothing
	why := server.suspect.Load()
	return slices.DeleteFunc(batch, func(r *request) bool {
		left := len(r.statements)
		for i := range r.statements {
			s := &r.statements[i]
			s.refused = nil
			if s.claim && why != nil {
				s.refused = unavailable("commit", *why)
				left--
			}
		}
		if left == 0 {
			fail([]*request{r}, *why)
		}
		return left == 0
	})
}

func (c *committer) send(ctx context.Context, requests []*request) (failed int, err error) {
	var batch pgx.Batch
	if c.group.server.pooled.Load() {
		batch.Queue("select set_config('synchronous_commit', 'on', true)")
	}
	before := batch.Len()
	statements := inOrder(requests)
	var woken [][16]byte
	for _, s := range statements {
		batch.Queue(s.sql, s.args...)
		if s.wakes {
			woken = append(woken, s.there)
		}
	}
	if woken != nil {
		batch.Queue(wakeForOperations, c.group.offset(), woken)
	}
	results := c.conn.SendBatch(ctx, &batch)
	failed, err = -1, nil
	for i := 0; i < before && err == nil; i++ {
		_, err = results.Exec()
	}
	for i := 0; i < len(statements) && err == nil; i++ {
		if err = statements[i].read(results); err != nil {
			failed = statements[i].request
		}
	}
	if woken != nil && err == nil {
		_, err = results.Exec()
	}
	// The server commits before it lets Close return.
	if closed := results.Close(); err == nil {
		err = closed
	}
	return failed, err
}

func (s *statement) read(results pgx.BatchResults) error {
	if s.exec {
		_, err := results.Exec()
		return err
	}
	err := results.QueryRow().Scan(&s.at, &s.flag)
	s.found = err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

func (c *committer) connect() error {
	if c.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(c.group.patience, 5*time.Second))
	defer cancel()
	conn, err := c.group.server.connect(ctx)
	if err != nil {
		c.group.pace.rest()
		return &connectError{err}
	}
	if err := c.group.server.judge(ctx, conn); err != nil && stateOf(err) != stateDenied {
		_ = conn.Close(ctx)
		return &connectError{err}
	}
	c.conn = conn
	return nil
}

func (c *committer) disconnect() {
	if c.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.conn.Close(ctx) // nothing hangs on it any more
	c.conn = nil
}
