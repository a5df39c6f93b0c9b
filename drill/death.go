package drill

import (
	"fmt"
	"sync"

	"github.com/semel-dev/semel"
)

// errDead is what a dead process gets from its ports: nothing that it does
// reaches the world any more.
var errDead = fmt.Errorf("%w: the process is dead", semel.ErrUnavailable)

// Point is one interruption point: a call of a port, and on which side of it
// the process dies.
type Point struct {
	Call  int // counted from 1
	Name  string
	After bool // the call did its work, and nobody heard
}

func (p Point) String() string {
	side := "before"
	if p.After {
		side = "after"
	}
	return fmt.Sprintf("%s call %d, %s", side, p.Call, p.Name)
}

// death is a process that dies at a point; the zero Point lets it live.
type death struct {
	at Point

	mu    sync.Mutex
	calls []string // names of the calls, in order
	dead  bool
}

// enter counts a call. It reports whether the call may go on, and its number.
func (d *death) enter(name string) (n int, alive bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return 0, false
	}
	d.calls = append(d.calls, name)
	n = len(d.calls)
	if n == d.at.Call && !d.at.After {
		d.dead = true
	}
	return n, !d.dead
}

// leave reports whether the answer of call n is heard.
func (d *death) leave(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n == d.at.Call && d.at.After {
		d.dead = true
	}
	return !d.dead
}

func (d *death) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// through makes a call of a port as the process that may die.
func through[T any](d *death, name string, call func() (T, error)) (T, error) {
	var none T
	n, alive := d.enter(name)
	if !alive {
		return none, errDead
	}
	out, err := call()
	if !d.leave(n) {
		return none, errDead
	}
	return out, err
}

func throughOnly(d *death, name string, call func() error) error {
	_, err := through(d, name, func() (struct{}, error) { return struct{}{}, call() })
	return err
}
