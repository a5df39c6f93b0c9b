package semel_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
)

// record keeps an operation the way a store does.
func record(t *testing.T, id semel.Identity, events []semel.Event) semel.Record {
	t.Helper()
	r, err := id.Record()
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		b, err := ev.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r.Events = append(r.Events, semel.StoredEvent{At: ev.At, Data: b})
	}
	return r
}

// rich is an identity in which everything is set.
func rich(t *testing.T, c semel.Contract) semel.Identity {
	t.Helper()
	id := identity(c)
	id.Request = semel.Request{
		Connection: "stripe", Kind: "http", Method: "POST", URL: "https://pay.example/charges", Header: map[string]string{"X-A": "1"},
		MediaType: "application/json", Args: []string{"a", ""}, Body: []byte(`{"to":9007199254740993}`), Volatile: []string{"id"}, Withheld: []string{"Authorization"},
	}
	id.Fingerprint = fingerprint(t, &id.Request)
	return id
}

// M1, M36: what the store gives back is what was there, to the unexported
// field: random histories, applied in memory and rebuilt from their records.
func TestOperationsSurviveTheirRecord(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := reports()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	contracts := []semel.Contract{keyed(), lookup(), unprotected()}
	for range 300 {
		id := rich(t, contracts[random.IntN(len(contracts))])
		o, events, now := semel.Operation{Identity: id}, []semel.Event(nil), t0
		for range 40 {
			ev := all[names[random.IntN(len(names))]]
			if o.State != semel.InProgress && o.State != semel.Completed && random.IntN(2) == 0 {
				ev = claim(o.Attempt+1, 0)
			}
			now = now.Add(time.Duration(random.IntN(60)) * time.Second)
			ev.At = now
			next, err := o.Apply(ev)
			if err != nil {
				continue
			}
			check(t, &o, &next, &ev)
			o, events = next, append(events, ev)
		}
		got, err := record(t, id, events).Operation()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o, got, cmp.Exporter(anyType)); diff != "" {
			t.Fatalf("after %d events: %s", len(events), diff)
		}
	}
}

// check holds for every step of every history.
func check(t *testing.T, o, next *semel.Operation, ev *semel.Event) {
	t.Helper()
	open := 0
	for i, a := range next.Attempts {
		if a.Number != i+1 {
			t.Fatalf("attempt %d is numbered %d", i+1, a.Number)
		}
		if a.Open {
			open++
		}
		if i < len(o.Attempts) && (a.SendBy != o.Attempts[i].SendBy || a.Token != o.Attempts[i].Token || a.Generation != o.Attempts[i].Generation) {
			t.Fatalf("%s changed the claim of attempt %d", ev.Kind, i+1)
		}
	}
	switch {
	case next.State == semel.Failed && open > 0:
		t.Fatalf("law 3: %s made it failed with %d attempts open", ev.Kind, open)
	case next.State == semel.Failed && next.Incident != "":
		t.Fatalf("%s left it failed with an incident that nobody can close", ev.Kind)
	case next.State == semel.Unknown && next.Incident == "" && open == 0:
		t.Fatalf("%s left it unknown with no attempt open", ev.Kind)
	case next.State == semel.Completed && o.State == semel.Unknown && o.Incident != "" && ev.Kind != semel.EvIncident:
		t.Fatalf("%s settled what only the closing of an incident may", ev.Kind)
	case o.Incident != "" && ev.Kind == semel.EvClaimed:
		t.Fatal("it was claimed under an open incident")
	case next.Generation != o.Generation && (ev.Kind != semel.EvClaimed || o.State != semel.Failed):
		t.Fatalf("law 5: %s of a %s operation changed the key", ev.Kind, o.State)
	case next.KeySince != o.KeySince && next.Generation == o.Generation && !o.KeySince.IsZero():
		t.Fatalf("law 8: %s moved the window", ev.Kind)
	case next.State == semel.InProgress && !next.CheckAt.IsZero():
		t.Fatalf("%s left a time for recovery while an attempt runs", ev.Kind)
	}
}

// A renewed lease lives beside the events.
func TestRenewedLeaseIsKept(t *testing.T) {
	id := identity(keyed())
	r := record(t, id, []semel.Event{claim(1, 0)})
	for until, want := range map[time.Time]time.Time{{}: after(30 * time.Second), after(time.Second): after(30 * time.Second), after(time.Hour): after(time.Hour)} {
		r.LeaseUntil = until
		o, err := r.Operation()
		if err != nil || !o.LeaseUntil.Equal(want) {
			t.Errorf("renewed until %v: got %v %v, want %v", until, o.LeaseUntil, err, want)
		}
		if a := o.Attempts[0]; !a.SendBy.Equal(after(30 * time.Second)) {
			t.Errorf("law 7: a renewal moved the time to send to %v", a.SendBy)
		}
	}
	r = record(t, id, []semel.Event{claim(1, 0), lost1})
	r.LeaseUntil = after(time.Hour)
	if o, err := r.Operation(); err != nil || !o.LeaseUntil.Equal(after(30*time.Second)) {
		t.Errorf("a lease renewed before the attempt ended: %v %v", o.LeaseUntil, err)
	}
}

func TestDamagedRecordsAreErrors(t *testing.T) {
	id := identity(keyed())
	for name, damage := range map[string]func(*semel.Record){
		"fingerprint":   func(r *semel.Record) { r.Fingerprint = r.Fingerprint[1:] },
		"request":       func(r *semel.Record) { r.Request = []byte("{") },
		"contract":      func(r *semel.Record) { r.Contract = nil },
		"event":         func(r *semel.Record) { r.Events[1].Data = []byte("x") },
		"lost event":    func(r *semel.Record) { r.Events = r.Events[1:] },
		"doubled event": func(r *semel.Record) { r.Events = append(r.Events, r.Events...) },
	} {
		r := record(t, id, []semel.Event{claim(1, 0), lost1})
		damage(&r)
		if o, err := r.Operation(); err == nil || !strings.Contains(err.Error(), id.ID.String()) {
			t.Errorf("%s: got %s, %v; want an error that names the operation", name, o.State, err)
		}
	}
}

// Evidence has no other memory than its own: a caller that goes on using what
// it passed in does not change what was recorded.
func TestApplySharesNoResult(t *testing.T) {
	ev := confirmed(1, "ch_1", time.Second)
	o := replay(t, keyed(), claim(1, 0), ev)
	ev.Result.Reference = "ch_2"
	if o.Result.Reference != "ch_1" {
		t.Error("the recorded result changed with the event")
	}
	base := replay(t, keyed(), claim(1, 0), lost1)
	a, b := apply(t, base, claim(2, 10*time.Second)), apply(t, base, claim(2, 20*time.Second))
	if a.Attempts[1].ClaimedAt.Equal(b.Attempts[1].ClaimedAt) || len(base.Attempts) != 1 {
		t.Error("two futures of one operation share their attempts")
	}
}

// The form in which evidence is stored never changes by accident.
func TestStoredFormIsGolden(t *testing.T) {
	ev := semel.Event{
		Kind: semel.EvLost, At: t0, Attempt: 2, By: "w1", Reason: "reset", Reference: "r", Result: &semel.Result{Reference: "ch_1", Status: 502, MediaType: "text/plain", Body: []byte("x"), Size: 9, SHA256: "ab"},
		Lease: time.Second, SendWithin: 2, Token: semel.NewID(t0, [10]byte{1}), Incident: "i", Closed: true, CheckAfter: 3, Person: true, AskedAt: t0, Force: true, NewKey: true, Correction: semel.Failed,
	}
	const want = `{"kind":"lost","attempt":2,"by":"w1","reason":"reset","reference":"r","result":{"reference":"ch_1","status":502,"media_type":"text/plain","body":"eA==","size":9,"sha256":"ab"},` +
		`"lease":1000000000,"send_within":2,"token":"01a22651-6c00-7100-8000-000000000000","incident":"i","closed":true,"check_after":3,"person":true,"asked_at":"2026-11-29T08:00:00Z","force":true,"new_key":true,"correction":"failed"}`
	b, err := ev.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	if b, err := (semel.Event{Kind: semel.EvJoined}).Encode(); err != nil || string(b) != `{"kind":"joined"}` {
		t.Errorf("got %s %v", b, err)
	}
}

// Whatever bytes a store hands out, reading them ends in an operation or an
// error; and what was read is written and read again as the same.
func FuzzEvent(f *testing.F) {
	for _, ev := range reports() {
		b, err := ev.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"kind":"claimed","attempt":1,"lease":-1,"send_within":9223372036854775807,"token":"x"}`))
	f.Add([]byte(`{"kind":"claimed","attempt":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := semel.Record{
			Fingerprint: make([]byte, 33), Request: []byte(`{"kind":"call"}`), Contract: []byte(`{"protection":"keyed","window":86400000000000}`),
			Events: []semel.StoredEvent{{At: t0, Data: data}},
		}
		events, err := r.History()
		if err != nil {
			return
		}
		for _, s := range situations {
			o := replay(t, s.contract, s.events...)
			if next, err := o.Apply(events[0]); err == nil {
				check(t, &o, &next, &events[0])
				semel.Decide(&next, s.contract, t0)
			}
		}
		again, err := events[0].Encode()
		if err != nil {
			if y := events[0].AskedAt.Year(); y >= 0 && y <= 9999 {
				t.Fatalf("%s: %v", data, err)
			}
			return
		}
		var read semel.Event
		if err := json.Unmarshal(again, &read); err != nil {
			t.Fatalf("%s was written as %s: %v", data, again, err)
		}
		read.At = events[0].At
		if diff := cmp.Diff(events[0], read); diff != "" && utf8.Valid(data) {
			t.Errorf("%s: %s", data, diff)
		}
	})
}
