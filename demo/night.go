package demo

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files of a night, in its directory.
const (
	nightFile    = "night.json"     // what kind of night it is
	databaseFile = "demo.db"        // Semel's memory
	booksFile    = "invoices.db"    // the biller's own ledger: what is due, and what was paid
	usualLedger  = "usual.ledger"   // what happened the usual way
	semelLedger  = "semel.ledger"   // what happened with Semel
	usualKills   = "usual.kills"    // which workers died, by what they were sending
	semelKills   = "semel.kills"    // the same, with Semel
	logFile      = "workers.log"    // what workers had to say
	progressFile = "usual.progress" // where a worker of the usual way is; with its number
)

// night is what must not change while a directory is used: the destinations
// remember it, and their addresses are part of every request's identity.
type night struct {
	// ID keeps this night apart from others in the same database. It is part of
	// every scope, and so of every destination key: it must outlive the database.
	ID       string  `json:"id"`
	Invoices int     `json:"invoices"`
	Lose     float64 `json:"lose"`
	Kill     int     `json:"kill"`
	Seed     uint64  `json:"seed"`
	// Usual and Semel are the addresses of the destinations.
	Usual string `json:"usual"`
	Semel string `json:"semel"`
	// Forgotten: the database was found empty once, so that what no key
	// protects happened again.
	Forgotten bool `json:"forgotten,omitzero"`

	dir string
}

func (n *night) tenant() string { return "demo-" + n.ID }

// workflow is what the workflow is called in a database that other nights may
// share, so that no worker takes up another's run.
func (n *night) workflow() string { return workflowName + "-" + n.ID }

func (n *night) path(name string) string { return filepath.Join(n.dir, name) }
func (n *night) progress(part int) string {
	return n.path(progressFile + "." + strconv.Itoa(part))
}

// Dir is the directory that a night uses if none is named.
func Dir() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "semel", "demo"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the demo: %w: name one with --dir", err)
	}
	return filepath.Join(home, ".local", "state", "semel", "demo"), nil
}

// begin takes up the night of a directory, or starts one there. The listeners
// are the addresses of its destinations, and keep a second demo out.
func begin(o *Options, dir string) (*night, [2]net.Listener, error) {
	var doors [2]net.Listener
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, doors, fmt.Errorf("make the demo's directory: %w", err)
	}
	n, err := readNight(dir)
	known := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, doors, err
	}
	if !known {
		n = &night{dir: dir}
		if left := n.leftovers(); left != "" {
			return nil, doors, fmt.Errorf("%s is of a night that nobody knows any more (%s is gone): remove it, or use another --dir", left, nightFile)
		}
	}
	if known && !o.Fresh {
		if err := n.differs(o); err != nil {
			return nil, doors, err
		}
	}
	for i, address := range []string{n.Usual, n.Semel} {
		if doors[i], err = listen(address); err != nil {
			closeAll(doors)
			return nil, doors, fmt.Errorf("the destinations of this night live at %s and %s (their address is part of every request's identity), but: %w: "+
				"if another semel demo is running in %s, stop it; otherwise use --dir with another directory", n.Usual, n.Semel, err, dir)
		}
	}
	if !known || o.Fresh {
		if known {
			err = n.clear()
		}
		n.set(o)
		n.Usual, n.Semel = doors[0].Addr().String(), doors[1].Addr().String()
		if err == nil {
			err = n.write(os.Link) // which fails where there is a night already
		}
		if err != nil {
			closeAll(doors)
			return nil, doors, err
		}
	}
	return n, doors, nil
}

// listen opens an address. Without one it takes a port that will be free the
// next time too: systems give ports from 32768 on to whoever asks.
func listen(address string) (net.Listener, error) {
	if address != "" {
		return net.Listen("tcp", address)
	}
	for range 50 {
		if door, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+mathrand.IntN(12000))); err == nil {
			return door, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

func closeAll(doors [2]net.Listener) {
	for _, door := range doors {
		if door != nil {
			door.Close()
		}
	}
}

func readNight(dir string) (*night, error) {
	data, err := os.ReadFile(filepath.Join(dir, nightFile))
	if err != nil {
		return nil, err
	}
	n := &night{dir: dir}
	if err := json.Unmarshal(data, n); err != nil || n.ID == "" || n.Invoices < 1 || n.Invoices > MaxInvoices {
		return nil, fmt.Errorf("%s is damaged: remove the directory, or use --dir with another one", filepath.Join(dir, nightFile))
	}
	return n, nil
}

// set makes n a new night as o describes it.
func (n *night) set(o *Options) {
	var id [5]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	n.ID = hex.EncodeToString(id[:])
	n.Invoices, n.Lose, n.Kill, n.Seed, n.Forgotten = 300, 0.2, 2, 1, false
	if o.Invoices != 0 {
		n.Invoices = o.Invoices
	}
	if o.Lose != nil {
		n.Lose = *o.Lose
	}
	if o.Kill != nil {
		n.Kill = *o.Kill
	}
	if o.Seed != 0 {
		n.Seed = o.Seed
	}
}

// differs says what o asks for that this night is not.
func (n *night) differs(o *Options) error {
	var words []string
	differ := func(flag string, is, want any) {
		words = append(words, fmt.Sprintf("--%s %v, not %v", flag, is, want))
	}
	if o.Invoices != 0 && o.Invoices != n.Invoices {
		differ("invoices", n.Invoices, o.Invoices)
	}
	if o.Lose != nil && *o.Lose != n.Lose {
		differ("lose", n.Lose, *o.Lose)
	}
	if o.Kill != nil && *o.Kill != n.Kill {
		differ("kill", n.Kill, *o.Kill)
	}
	if o.Seed != 0 && o.Seed != n.Seed {
		differ("seed", n.Seed, o.Seed)
	}
	if len(words) == 0 {
		return nil
	}
	return &SettingsError{fmt.Sprintf("the night in %s has %s: start a new one with --fresh, or use another --dir", n.dir, strings.Join(words, " and "))}
}

// write puts the night on disk: place moves a whole file to its name.
func (n *night) write(place func(from, to string) error) error {
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(n.dir, nightFile+".new-")
	if err != nil {
		return fmt.Errorf("write down the night: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a link; a rename leaves nothing
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write down the night: %w", err)
	}
	switch err := place(f.Name(), n.path(nightFile)); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("another semel demo has just begun in %s: use another --dir, or wait until it is over", n.dir)
	case err != nil:
		return fmt.Errorf("write down the night: %w", err)
	}
	return nil
}

// leftovers names a file of a night that is not written down.
func (n *night) leftovers() string {
	for _, name := range []string{semelLedger, usualLedger, databaseFile, booksFile} {
		if _, err := os.Stat(n.path(name)); err == nil {
			return n.path(name)
		}
	}
	return ""
}

// clear removes the files of the night, and nothing else: the directory may be
// somebody's.
func (n *night) clear() error {
	names := []string{usualLedger, semelLedger, usualKills, semelKills, logFile}
	for part := range workers {
		names = append(names, filepath.Base(n.progress(part)))
	}
	entries, err := os.ReadDir(n.dir)
	if err != nil {
		return fmt.Errorf("clear the night before: %w", err)
	}
	for _, e := range entries {
		for _, database := range []string{databaseFile, booksFile} {
			if e.Name() == database || strings.HasPrefix(e.Name(), database+"-") {
				names = append(names, e.Name())
			}
		}
		if strings.HasPrefix(e.Name(), nightFile+".new-") {
			names = append(names, e.Name())
		}
	}
	names = append(names, nightFile) // last: without it the directory is not known as ours
	for _, name := range names {
		if err := os.Remove(n.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the night before: %w", err)
		}
	}
	return nil
}

// lines reads a file of whole lines; what a dying process left half written is
// not a line. A file that is not there has none.
func lines(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	return slices.DeleteFunc(strings.Split(string(data), "\n"), func(l string) bool { return l == "" }), nil
}

// appendLine adds one line to a file of whole lines.
func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
