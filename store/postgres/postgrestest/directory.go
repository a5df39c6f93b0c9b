package postgrestest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ports below the range from which systems take the ports of outgoing
// connections, so that none of these takes a stopped server's place.
const firstPort, lastPort = 15000, 29999

const prefix = "semel-postgres-"

// directory is where one server keeps everything, named after its port. A lock
// file beside it belongs to the process that runs the server: whoever holds the
// lock owns the port and the directory, and a lock that nobody holds marks what
// a dead process left behind.
type directory struct {
	path string
	port int
	lock *os.File
}

// newDirectory creates a directory under parent, owned by account, for a port
// that nobody listens on.
func newDirectory(parent string, account account) (directory, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		d := directory{path: filepath.Join(parent, prefix+strconv.Itoa(port)), port: port}
		if !portFree(port) || d.acquire() != nil {
			continue
		}
		err := errors.Join(os.RemoveAll(d.path), os.Mkdir(d.path, 0o700), account.own(d.path))
		if err != nil {
			return directory{}, errors.Join(err, d.remove())
		}
		return d, nil
	}
	return directory{}, fmt.Errorf("no free port between %d and %d, or %s cannot be written", firstPort, lastPort, parent)
}

func (d *directory) data() string { return filepath.Join(d.path, "data") }
func (d *directory) log() string  { return filepath.Join(d.path, "log") }

// acquire takes the lock or says who else has it.
func (d *directory) acquire() (err error) {
	d.lock, err = lockFile(d.path + ".lock")
	return err
}

// remove deletes the directory and gives up the lock, in this order: a lock
// file that outlives its directory does no harm, the reverse would. Removing
// twice does nothing.
func (d *directory) remove() error {
	if d.lock == nil {
		return nil
	}
	lock := d.lock
	d.lock = nil
	if err := os.RemoveAll(d.path); err != nil {
		return errors.Join(err, lock.Close())
	}
	return errors.Join(os.Remove(lock.Name()), lock.Close())
}

// sweep removes what dead processes left under parent. What it cannot remove
// stays for the next sweep.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, prefix+"*.lock")) // the pattern is well formed
	for _, lock := range locks {
		d := directory{path: strings.TrimSuffix(lock, ".lock")}
		if d.acquire() == nil {
			_ = d.remove()
		}
	}
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
