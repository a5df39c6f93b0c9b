package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// evidence is all that a verdict is made of.
type evidence struct {
	intentions []Intention
	ledger     ledger
	claims     []Claim
	freezes    []Freeze
	runs       runs
}

// ledger is what the destination wrote down, by reference.
type ledger struct {
	effects  map[string][]effect
	requests map[string][]request
	lookups  int
}

// effect is one thing that happened.
type effect struct {
	Resource  string    `json:"resource"`
	ID        string    `json:"id"`
	Reference string    `json:"reference"`
	Amount    int64     `json:"amount"`
	Partial   bool      `json:"partial"`
	At        time.Time `json:"at"`
	Number    int       `json:"number"` // of its request
	ledger    string
}

// request is one request that the destination saw.
type request struct {
	Number    int         `json:"number"`
	At        time.Time   `json:"at"`
	Method    string      `json:"method"`
	Header    http.Header `json:"header"`
	Reference string      `json:"reference"`
	Key       string      `json:"key"`
	Fault     string      `json:"fault"`
	Status    int         `json:"status"`
	ledger    string
}

// read takes in the directory of a soak.
func read(dir string) (*evidence, error) {
	e := &evidence{ledger: ledger{effects: map[string][]effect{}, requests: map[string][]request{}}}
	ledgers, err := filepath.Glob(filepath.Join(dir, ledgerPattern))
	if err == nil && len(ledgers) == 0 {
		err = fmt.Errorf("%s holds no ledger: give the directory of a soak", dir)
	}
	if err != nil {
		return nil, err
	}
	for _, path := range ledgers {
		if err := e.ledger.read(path); err != nil {
			return nil, err
		}
	}
	if e.intentions, err = lines[Intention](filepath.Join(dir, intentionsFile)); err != nil {
		return nil, err
	}
	if e.claims, err = lines[Claim](filepath.Join(dir, claimsFile)); err != nil {
		return nil, err
	}
	if e.freezes, err = lines[Freeze](filepath.Join(dir, freezesFile)); err != nil {
		return nil, err
	}
	return e, e.runs.read(dir)
}

// read takes in what a soak of runs left, if it was one.
func (r *runs) read(dir string) (err error) {
	r.plans, err = lines[Plan](filepath.Join(dir, plansFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.records, err = lines[Record](filepath.Join(dir, recordsFile)); err != nil {
		return err
	}
	if r.asked, err = lines[Asked](filepath.Join(dir, askedFile)); err != nil {
		return err
	}
	notes, err := filepath.Glob(filepath.Join(dir, executionsPattern))
	for _, path := range notes {
		some, err := lines[Execution](path)
		if err != nil {
			return err
		}
		r.executions = append(r.executions, some...)
	}
	return err
}

func (l *ledger) read(path string) error {
	type entry struct {
		Request *request   `json:"request"`
		Effect  *effect    `json:"effect"`
		Due     *time.Time `json:"due"` // the effect is still to come, in a line of its own
	}
	entries, err := lines[entry](path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if r := e.Request; r != nil && r.Method == http.MethodPost {
			r.ledger = path
			l.requests[r.Reference] = append(l.requests[r.Reference], *r)
		} else if r != nil {
			l.lookups++
		}
		if e.Effect != nil && e.Due == nil {
			e.Effect.ledger = path
			l.effects[e.Effect.Reference] = append(l.effects[e.Effect.Reference], *e.Effect)
		}
	}
	return nil
}

// cause is the request that had the effect.
func (l *ledger) cause(e effect) (request, bool) {
	for _, r := range l.requests[e.Reference] {
		if r.Number == e.Number && r.ledger == e.ledger {
			return r, true
		}
	}
	return request{}, false
}

// lines reads a file of JSON lines.
func lines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []T
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var one T
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: after %d lines: %w", path, len(all), err)
		}
		all = append(all, one)
	}
}
