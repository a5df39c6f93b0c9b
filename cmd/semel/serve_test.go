package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/sandbox"
)

// chargeOne charges what its input names.
const chargeOne = `inputs:
  id: {type: string}
steps:
  - id: charge
    uses: bank.charge
    with: {amount: 500, reference: "${{ inputs.id }}"}
    effect: {key: "${{ inputs.id }}-charge"}
`

// slowly makes every charge take a while: it happens half way.
func slowly(d time.Duration) sandbox.Options {
	return sandbox.Options{Delay: d, FaultsOn: map[sandbox.Resource]sandbox.Rate{
		sandbox.Charges: {First: 1, Later: 1, Mix: map[sandbox.Fault]int{sandbox.Slow: 1}},
	}}
}

// TestBillingSurvivesAKillOfServe: the process is killed when the first charge
// has happened and none is answered; the next one ends the night, and each
// effect is there once.
func TestBillingSurvivesAKillOfServe(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, slowly(1500*time.Millisecond))
		f.ship("billing", "http://127.0.0.1:8089", f.url)
		ledger := f.ledger("LEDGER_URL", f.schema())
		first := f.start("serve", "--create")
		f.semel(0, "run", "start", "nightly_billing", "--key", "2026-03-02", "--field", "day=2026-03-02")
		until(t, 20*time.Second, "a charge has happened", func() bool { return len(f.bank.Effects()) > 0 })
		first.end(syscall.SIGKILL)
		second := f.start("serve", "--output", "json")
		f.reaches("nightly_billing", "completed")
		for _, id := range []string{"4417", "4418", "4419"} {
			if n := f.bank.Count(sandbox.Charges, id); n != 1 {
				t.Errorf("%s was charged %d times, want once", id, n)
			}
			if n := f.bank.Count(sandbox.Messages, id); n != 1 {
				t.Errorf("%d mails for %s, want one", n, id)
			}
		}
		var unpaid, twice int
		if err := ledger.QueryRowContext(t.Context(), "select count(*) - count(charge), count(charge) - count(distinct charge) from invoices").Scan(&unpaid, &twice); err != nil {
			t.Fatal(err)
		}
		if unpaid != 0 || twice != 0 {
			t.Errorf("%d unpaid, %d with a charge of another", unpaid, twice)
		}
		if code := second.end(syscall.SIGTERM); code != exitCompleted {
			t.Errorf("SIGTERM ended it with %d", code)
		}
		second.says("stopped. Since the start: 1 run completed")
	})
}

// TestTwoServersShareTheWork: many runs, one tick and one event over two
// processes; each is one run, and each effect is there once.
func TestTwoServersShareTheWork(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, slowly(200*time.Millisecond))
		f.save("pay", 1, "on: {http: {}}\n"+chargeOne)
		f.save("nightly", 1, "on:\n  schedule: {cron: \"0 2 * * *\", zone: Europe/Berlin}\nsteps:\n  - {id: rest, sleep: {for: 1h}}\n")
		f.save("shipped", 1, "on:\n  event: {name: order.paid}\n"+`steps:
  - id: charge
    uses: bank.charge
    with: {amount: 1, reference: "event-${{ event.data.order }}"}
    effect: {key: "${{ event.id }}-ship"}
`)
		servers := []*served{
			f.start("serve", "--create", "--listen", "127.0.0.1:0", "--output", "json", "--at-once", "3", "--name", "one"),
			f.start("serve", "--listen", "127.0.0.1:0", "--output", "json", "--at-once", "3", "--name", "two"),
		}
		servers[0].says("nightly@1: schedule 0 2 * * * Europe/Berlin, next 2")
		f.rewind("nightly", 48*time.Hour)
		if code, got := servers[1].post("/events/order.paid", "pay_1", `{"order":"4417"}`); code != 202 {
			t.Fatalf("the event answers %d %v", code, got)
		}
		var group sync.WaitGroup
		for i := range 12 {
			for _, s := range servers {
				group.Go(func() {
					id := fmt.Sprintf("inv-%d", i)
					if code, got := s.post("/workflows/pay/runs", id, fmt.Sprintf(`{"id":%q}`, id)); code != 200 && code != 202 {
						t.Errorf("%s answers %d %v", id, code, got)
					}
				})
			}
		}
		group.Wait()
		f.reaches("nightly", "waiting")
		f.reaches("shipped", "completed")
		until(t, 60*time.Second, "all are paid", func() bool {
			done := 0
			for _, r := range f.runs("pay") {
				if r.State == semel.RunCompleted {
					done++
				}
			}
			return done == 12
		})
		counts := map[string]int{}
		for _, e := range f.bank.Effects() {
			counts[e.Reference]++
		}
		for reference, n := range counts {
			if n != 1 {
				t.Errorf("%s was charged %d times", reference, n)
			}
		}
		if len(counts) != 13 {
			t.Errorf("%d charges, want 13: %v", len(counts), counts)
		}
		if code, got := servers[0].post("/workflows/pay/runs", "inv-1", `{"id":"inv-2"}`); code != 422 || fmt.Sprint(got["fields"]) != "[input.id]" {
			t.Errorf("another input answers %d %v", code, got)
		}
		if code, _ := servers[0].post("/workflows/pay/runs", "inv-99", `{"idd":"inv-2"}`); code != 400 {
			t.Errorf("a wrong input answers %d", code)
		}
		if code, _ := servers[0].post("/workflows/nightly/runs", "x", `{}`); code != 404 {
			t.Errorf("a workflow without HTTP trigger answers %d", code)
		}
		shown := f.semel(0, "workflow", "show", "nightly")
		if !strings.Contains(shown, "next        ") || !strings.Contains(shown, "cron: \"0 2 * * *\"") {
			t.Errorf("it is shown as\n%s", shown)
		}
	})
}

// rewind moves a schedule back, as if nobody had been there meanwhile.
func (f *office) rewind(workflow string, d time.Duration) {
	f.Helper()
	store, err := shiftable(f.Context(), f.db)
	if err != nil {
		f.Fatal(err)
	}
	defer store.Close()
	runs := store.(semel.Runs)
	all, err := runs.Schedules(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range all {
		if s.Workflow != workflow {
			continue
		}
		if err := runs.Fire(f.Context(), semel.Firing{Workflow: s.Workflow, Name: s.Name, Seen: s.Seen, Last: s.Seen.Add(-d), NextAt: s.Seen.Add(-d)}); err != nil {
			f.Fatal(err)
		}
	}
}

// TestSIGTERMEndsStepsAndHandsOver: what is under way is recorded, and another
// process goes on.
func TestSIGTERMEndsStepsAndHandsOver(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, slowly(2*time.Second))
		f.save("pay", 1, chargeOne+`  - id: second
    uses: bank.charge
    with: {amount: 1, reference: "${{ inputs.id }}-2"}
    effect: {key: "${{ inputs.id }}-second"}
`)
		first := f.start("serve", "--create")
		f.semel(0, "run", "start", "pay", "--key", "a", "--field", "id=inv-1")
		until(t, 20*time.Second, "the charge is under way", func() bool { return len(f.bank.Requests()) > 0 || f.bank.Count(sandbox.Charges, "inv-1") > 0 })
		if code := first.end(syscall.SIGTERM); code != exitCompleted {
			t.Fatalf("it ended with %d:\n%s", code, first.said())
		}
		first.says("stopping: nothing more is claimed")
		if shown := f.semel(0, "op", "list", "--output", "json"); !strings.Contains(shown, `"state":"completed"`) || strings.Contains(shown, `"state":"unknown"`) {
			t.Errorf("the charge is not recorded: %s", shown)
		}
		f.start("serve")
		f.reaches("pay", "completed")
		for _, reference := range []string{"inv-1", "inv-1-2"} {
			if n := f.bank.Count(sandbox.Charges, reference); n != 1 {
				t.Errorf("%s was charged %d times", reference, n)
			}
		}
	})
}

// TestDrainHasAnEnd: a step that takes longer is left to the end of the lease,
// and that is said.
func TestDrainHasAnEnd(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, slowly(6*time.Second))
		f.save("pay", 1, chargeOne)
		s := f.start("serve", "--create", "--drain", "200ms")
		f.semel(0, "run", "start", "pay", "--key", "a", "--field", "id=inv-1")
		until(t, 20*time.Second, "the charge has happened", func() bool { return f.bank.Count(sandbox.Charges, "inv-1") > 0 })
		if code := s.end(syscall.SIGTERM); code != exitInProgress {
			t.Errorf("it ended with %d, want %d:\n%s", code, exitInProgress, s.said())
		}
		s.says("1 runs did not come to a step within 200ms")
	})
}

// TestChangedFiles: a run goes on with the version that it began with, and a
// change under the same version holds it and is shown.
func TestChangedFiles(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, sandbox.Options{})
		wait := "  - id: ready\n    wait: {event: ready, match: \"${{ inputs.id }}\"}\n"
		after := `  - id: after
    uses: bank.charge
    with: {amount: 1, reference: "%s"}
`
		f.save("old", 1, chargeOne+wait+fmt.Sprintf(after, "old-1"))
		f.save("same", 1, chargeOne+wait+fmt.Sprintf(after, "same-1"))
		first := f.start("serve", "--create")
		f.semel(0, "run", "start", "old", "--key", "a", "--field", "id=a")
		f.semel(0, "run", "start", "same", "--key", "b", "--field", "id=b")
		f.semel(0, "run", "start", "gone", "--key", "c")
		f.reaches("old", "waiting")
		f.reaches("same", "waiting")
		first.end(syscall.SIGTERM)

		f.save("old", 2, chargeOne+wait+fmt.Sprintf(after, "old-2"))
		f.save("same", 1, chargeOne+wait+fmt.Sprintf(after, "same-2"))
		second := f.start("serve", "--output", "json")
		second.says("runs that began with old@1 go on with that")
		second.says("1 run of gone@1: not executed here")
		f.save("old", 1, chargeOne)
		third := f.start("serve", "--drain", "0s")
		third.says("old@2 is registered, which this directory does not have")
		third.end(syscall.SIGTERM)
		f.semel(0, "event", "send", "ready", "--match", "a", "--id", "1")
		f.semel(0, "event", "send", "ready", "--match", "b", "--id", "2")
		f.reaches("old", "completed")
		held := f.reaches("same", "held")
		if !strings.Contains(held.Reason, "the definition of same@1 changed since the run began: step after: with.reference changed") {
			t.Errorf("it is held because %s", held.Reason)
		}
		second.says(`"news":"run_held"`)
		second.says(`run of same@1 with key "b" is held and needs a person`)
		counts := map[string]int{}
		for _, e := range f.bank.Effects() {
			counts[e.Reference]++
		}
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "old-1": 1}, counts); diff != "" {
			t.Errorf("charges (-want +got):\n%s", diff)
		}
	})
}

// TestASecondSignalEndsItAtOnce: while its request is not answered yet, and
// nothing is lost or repeated.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	f := newOffice(t, "sqlite:semel.db", sandbox.Options{})
	ended := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		f.bank.ServeHTTP(answer, r)
		<-ended
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	defer silent.Close()
	end := sync.OnceFunc(func() { close(ended) })
	defer end()
	write(t, f.dir, configName, "connections:\n  bank:\n    kind: http\n    base: "+silent.URL+"\n    key_header: Idempotency-Key\n    window: 24h\n    timeout: 5m\n    actions:\n      charge: {post: /v1/charges, required: [amount, reference]}\n")
	f.save("pay", 1, chargeOne)
	s := f.start("serve", "--create", "--drain", "2m")
	f.semel(0, "run", "start", "pay", "--key", "a", "--field", "id=inv-1")
	until(t, 20*time.Second, "the charge has happened", func() bool { return f.bank.Count(sandbox.Charges, "inv-1") > 0 })
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.says("a second signal ends it at once")
	code := s.end(syscall.SIGTERM)
	if by := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !by.Signaled() || by.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %d, want the signal to end it", code)
	}
	end()
	f.start("serve")
	f.reaches("pay", "completed")
	if n := f.bank.Count(sandbox.Charges, "inv-1"); n != 1 {
		t.Errorf("it was charged %d times, want once", n)
	}
}

// TestServeTellsWhatAPersonWants: a failed run, a held one, and the operation
// that holds it; nothing about an ordinary one.
func TestServeTellsWhatAPersonWants(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		always := func(fault sandbox.Fault) sandbox.Rate {
			return sandbox.Rate{First: 1, Later: 1, Mix: map[sandbox.Fault]int{fault: 1}}
		}
		f := newOffice(t, db, sandbox.Options{FaultsOn: map[sandbox.Resource]sandbox.Rate{
			sandbox.Charges: always(sandbox.Refuse), sandbox.Messages: always(sandbox.DropAfter),
		}})
		f.save("pay", 1, "owner: desk\n"+chargeOne)
		f.save("tell", 1, "owner: desk\nsteps:\n  - id: tell\n    uses: bank.tell\n    with: {text: hello}\n    effect: {key: \"${{ run.key }}-tell\"}\n")
		f.save("rest", 1, "steps: [{id: rest, sleep: {for: 1ms}}]\n")
		s := f.start("serve", "--create", "--output", "json")
		for _, workflow := range []string{"pay", "tell", "rest"} {
			input := "{}"
			if workflow == "pay" {
				input = `{"id":"inv-1"}`
			}
			f.semel(0, "run", "start", workflow, "--key", "k", "--input", input)
		}
		s.says(`operation with key "k-tell" needs a person (desk): `)
		s.says(`run of tell@1 with key "k" is held and needs a person: step tell: outcome unknown`)
		s.says(`run of pay@1 with key "k" failed: `)
		s.says(`"news":"operation_needs_person"`)
		f.reaches("rest", "completed")
		if strings.Contains(s.said(), `of rest@1 with key`) {
			t.Errorf("it tells about an ordinary run:\n%s", s.said())
		}
	})
}
