package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// FuzzRecord: a row that somebody else wrote, or that a disk changed, gives an
// error or an operation that obeys the state table, and never a panic.
func FuzzRecord(f *testing.F) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	o := fresh(at, "key", contract())
	r, err := o.Record()
	if err != nil {
		f.Fatal(err)
	}
	first, err := claimed(1).Encode()
	if err != nil {
		f.Fatal(err)
	}
	for _, ev := range []semel.Event{confirmed(1, "ch_1"), lost(1), refused(1), {Kind: semel.EvLapsed, Attempt: 1}, {Kind: semel.EvJoined}} {
		second, err := ev.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(r.Fingerprint, r.Request, r.Body, r.Contract, int64(0), first, int64(time.Hour), second, int64(2*time.Hour), []byte(`{"kind":"claimed","attempt":2}`))
	}
	f.Add(r.Fingerprint, []byte(`{"body":"AA=="}`), []byte{0}, []byte(`{"protection":"keyed","window":-1,"max_processing":9223372036854775807}`),
		int64(-1), []byte(`{"kind":"claimed","attempt":1,"lease":9223372036854775807}`), int64(1), []byte(`{"kind":"confirmed","attempt":-1}`), int64(1), []byte(`null`))
	f.Fuzz(func(t *testing.T, fingerprint, request, body, contract []byte, lease int64, first []byte, secondAt int64, second []byte, thirdAt int64, third []byte) {
		r := semel.Record{
			ID: o.ID, Scope: o.Scope, Key: o.Key, Fingerprint: fingerprint, Request: request, Body: body, Contract: contract, LeaseUntil: at.Add(time.Duration(lease)),
			Events: []semel.StoredEvent{{At: at, Data: first}, {At: at.Add(time.Duration(secondAt)), Data: second}, {At: at.Add(time.Duration(thirdAt)), Data: third}},
		}
		got, err := r.Operation()
		if err != nil {
			if _, ok := errors.AsType[*semel.TransitionError](err); !ok && err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if got.Version != 3 || got.State == "" || got.Attempt != len(got.Attempts) {
			t.Errorf("rebuilt an operation that cannot be: %+v", got)
		}
		again, err := r.Operation()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(semel.Operation{})); diff != "" {
			t.Errorf("rebuilt twice, differently:\n%s", diff)
		}
		if _, err := got.Record(); err != nil {
			t.Errorf("it cannot be written again: %v", err)
		}
	})
}
