package httpdest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	httpdest "github.com/semel-dev/semel/destination/http"
)

// Law 5: a key that never reaches the wire protects nothing. Headers that Go
// or this package writes itself, or that say something else, are refused before
// a byte is sent.
func TestKeyHeaderMustReachTheWire(t *testing.T) {
	for _, name := range []string{
		"Trailer", "transfer-encoding", "Content-Length", "Host", "TE", "Connection", "Content-Type", "Cookie", "Authorization", "X-Api-Key",
		"User-Agent", "Accept", "Bad Header", "", "X:Y",
	} {
		var input *semel.InputError
		if err := httpdest.CheckKeyHeader(name); !errors.As(err, &input) {
			t.Errorf("%q: %v, want an input error", name, err)
		}
		w := newWorld(t, "h1")
		s, _ := w.attempt("POST", body(1), func(o *semel.Operation) {
			o.Contract.Protection, o.Contract.Window, o.Contract.KeyHeader = semel.Keyed, time.Hour, name
		})
		if ev := w.destination(httpdest.Options{}).Send(t.Context(), s); name != "" && (ev.Kind != semel.EvRefused || len(w.seen()) != 0) {
			t.Errorf("%q: %s after %d requests, want refused and none", name, ev.Kind, len(w.seen()))
		}
	}
	for _, name := range []string{"Idempotency-Key", "PayPal-Request-Id", "X-Idempotency-Key", "Cko-Idempotency-Key"} {
		if err := httpdest.CheckKeyHeader(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func ExampleCheckKeyHeader() {
	fmt.Println(httpdest.CheckKeyHeader("Idempotency-Key"))
	fmt.Println(httpdest.CheckKeyHeader("Trailer"))
	// Output:
	// <nil>
	// key-header Trailer cannot carry a key: name the header in which the destination expects its key, for example Idempotency-Key
}

func ExampleCheckLookup() {
	r := semel.Request{Kind: httpdest.Kind, Body: []byte(`{"ref":"o-7"}`), MediaType: "application/json"}
	fmt.Println(httpdest.CheckLookup(&r, "https://api.example.com/orders/{body.ref}"))
	fmt.Println(httpdest.CheckLookup(&r, "https://api.example.com/orders/{body.nope}"))
	// Output:
	// <nil>
	// lookup cannot be filled in: {body.nope} in "https://api.example.com/orders/{body.nope}" has no value: use {key}, {destination_key} or {body.FIELD} with a field of the body
}
