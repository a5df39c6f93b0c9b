package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

// tries is how often the usual way tries again, and pause how long it waits.
const (
	tries = 3
	pause = 100 * time.Millisecond
)

// The words in which a worker of the usual way notes what it believes.
const (
	believesDone   = "done"
	believesGaveUp = "gave-up"
)

// usual bills invoices as most programs do: at least once. An error is tried
// again; each call mints a key, as client libraries do; what is done is noted,
// so that a restarted worker goes on where the last one noted something.
func (a *assignment) usual(ctx context.Context, due []invoice, said *announcer) error {
	n := &night{dir: a.Dir}
	noted, err := lines(n.progress(a.Part))
	if err != nil {
		return err
	}
	// One request per call: Go's own transport would send a request again that
	// has a key, on a connection that it used before.
	client := &http.Client{Timeout: answerWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, inv := range due[min(len(noted), len(due)):] {
		word := believesGaveUp
		if call(ctx, client, said, a.Base, inv.resource(), inv.order()) {
			word = believesDone
			call(ctx, client, said, a.Base, sandbox.Messages, inv.receipt())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := appendLine(n.progress(a.Part), inv.Number+" "+word); err != nil {
			return err
		}
	}
	return nil
}

// call tries a few times and reports whether one answer was good.
func call(ctx context.Context, client *http.Client, said *announcer, base string, resource sandbox.Resource, o order) bool {
	for range tries {
		if callOnce(ctx, client, said, base, resource, o) {
			return true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

func callOnce(ctx context.Context, client *http.Client, said *announcer, base string, resource sandbox.Resource, o order) bool {
	body, err := json.Marshal(o)
	if err != nil {
		return false
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/"+string(resource), bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", rand.Text())
	said.sending(resource, o.Reference)
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode < 300
}

// believed is how many charges and transfers the usual way takes for done, and
// for not done.
func believed(n *night) (done, gaveUp int, err error) {
	for part := range workers {
		noted, err := lines(n.progress(part))
		if err != nil {
			return 0, 0, fmt.Errorf("read the progress of worker %d: %w", part, err)
		}
		for _, line := range noted {
			if strings.HasSuffix(line, " "+believesDone) {
				done++
			} else {
				gaveUp++
			}
		}
	}
	return done, gaveUp, nil
}
