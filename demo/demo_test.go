package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/demo"
	"github.com/semel-dev/semel/sandbox"
	"github.com/semel-dev/semel/store/postgres/postgrestest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain makes this program a worker, or the demo, when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "demo" {
		if err := start(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	postgrestest.Main(m)
}

// start is this program as a worker, or as the demo over a directory and a
// database.
func start(what string, args []string) error {
	if what == "worker" {
		return demo.Work(context.Background(), os.Stdin, os.Stdout, os.Stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	_, err := demo.Run(ctx, demo.Options{Dir: args[0], DB: args[1], Out: os.Stdout, Log: os.Stderr})
	return err
}

// databases runs a test on both stores. forget deletes the database that url
// names.
func databases(t *testing.T, test func(t *testing.T, dir, url string, forget func())) {
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, dir, "", func() {
			files, err := filepath.Glob(filepath.Join(dir, "demo.db*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("database files %v, %v", files, err)
			}
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := postgrestest.Shared(t).Database(t)
		test(t, t.TempDir(), url, func() {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			if _, err := conn.Exec(t.Context(), "drop schema semel cascade"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// effects counts the ledger with Semel, by resource and reference.
func effects(t *testing.T, dir string) map[sandbox.Resource]map[string]int {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{LedgerPath: filepath.Join(dir, "semel.ledger")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	counts := map[sandbox.Resource]map[string]int{sandbox.Charges: {}, sandbox.Transfers: {}, sandbox.Messages: {}}
	for _, e := range s.Effects() {
		counts[e.Resource][e.Reference]++
	}
	return counts
}

// intended reads from the file what each reference of the first n invoices is
// to cause.
func intended(t *testing.T, n int) map[sandbox.Resource][]string {
	t.Helper()
	file, err := os.ReadFile("invoices.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := map[sandbox.Resource][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(file)), "\n")[1 : n+1] {
		resource := sandbox.Charges
		if strings.Contains(line, ",transfer,") {
			resource = sandbox.Transfers
		}
		number, _, _ := strings.Cut(line, ",")
		want[resource] = append(want[resource], "invoice-"+number)
	}
	return want
}

// repeated lists what happened not exactly once.
func repeated(counts map[string]int, intended []string) []string {
	var wrong []string
	for _, reference := range intended {
		if counts[reference] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d times", reference, counts[reference]))
		}
	}
	for reference := range counts {
		if !slices.Contains(intended, reference) {
			wrong = append(wrong, reference+": not intended")
		}
	}
	return wrong
}

func mustRun(t *testing.T, o demo.Options) demo.Report {
	t.Helper()
	var log bytes.Buffer
	o.Log = &log
	if o.Out == nil {
		o.Out = &log
	}
	r, err := demo.Run(t.Context(), o)
	if err != nil || t.Failed() {
		words, _ := os.ReadFile(filepath.Join(o.Dir, "workers.log"))
		t.Fatalf("%v\n%s\n%s", err, &log, words)
	}
	return r
}

// TestNightAndItsDares: with Semel, everybody is charged once although answers
// get lost and workers die (M1, M3, M21, M22, M38); run again, nothing is sent
// (M24); with the database gone, payments still charges nobody twice (M6), and
// bank and mail, which know no keys, do.
func TestNightAndItsDares(t *testing.T) {
	const n = 40
	databases(t, func(t *testing.T, dir, url string, forget func()) {
		want := intended(t, n)
		o := demo.Options{Dir: dir, DB: url, Invoices: n, Lose: new(0.4), Kill: new(3), Seed: 7}

		first := mustRun(t, o)
		counts := effects(t, dir)
		for _, resource := range []sandbox.Resource{sandbox.Charges, sandbox.Transfers} {
			if wrong := repeated(counts[resource], want[resource]); wrong != nil {
				t.Errorf("%s: %v", resource, wrong)
			}
		}
		for reference, times := range counts[sandbox.Messages] {
			if times != 1 {
				t.Errorf("receipt for %s was sent %d times", reference, times)
			}
		}
		if !first.OK() || first.Charges != n || first.Completed != n || first.WorkersKilled != 3 || first.LostResponses == 0 {
			t.Errorf("with semel: %+v", first.Counts)
		}
		if first.Run.State != semel.RunHeld || first.Run.Done != n-first.Receipts.Unknown || first.Run.WentOn < 3 {
			t.Errorf("the run: %+v", first.Run)
		}
		paid := demo.Paid{Paid: n}
		if first.Ledger != paid {
			t.Errorf("the ledger: %+v", first.Ledger)
		}
		if r := first.Receipts; r.Unknown == 0 || r.Completed+r.Unknown != n || r.Duplicates != 0 || r.Missing != 0 {
			t.Errorf("receipts: %+v", r)
		}
		if first.Naive.Duplicates == 0 || first.Naive.AmountChargedTwice == "0.00" || first.Naive.WorkersKilled != 3 {
			t.Errorf("the usual way: %+v", first.Naive)
		}

		again := mustRun(t, demo.Options{Dir: dir, DB: url}) // takes up the settings of the night
		if again.RequestsThisRun != 0 {
			t.Errorf("run again: %d requests were sent", again.RequestsThisRun)
		}
		again.RequestsThisRun = first.RequestsThisRun
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("run again (-first +again):\n%s", diff)
		}

		forget()
		var screen bytes.Buffer
		forgotten := mustRun(t, demo.Options{Dir: dir, DB: url, Out: &screen})
		counts = effects(t, dir)
		if wrong := repeated(counts[sandbox.Charges], want[sandbox.Charges]); wrong != nil {
			t.Errorf("after the database was deleted: %v", wrong)
		}
		if forgotten.Ledger != paid || forgotten.Run.ID == first.Run.ID {
			t.Errorf("after the database was deleted: %+v, %+v; want another run, whose payments the receipts absorb", forgotten.Ledger, forgotten.Run)
		}
		if forgotten.RequestsThisRun == 0 || forgotten.OK() || forgotten.Duplicates == 0 {
			t.Errorf("after the database was deleted: %+v", forgotten)
		}
		if !strings.Contains(screen.String(), "The database remembered nothing of this night") {
			t.Errorf("the screen does not say that the database was deleted:\n%s", &screen)
		}
	})
}

// TestKilledDemoGoesOn: the demo itself is killed in the middle; its workers
// die with it, and the next run finishes the night (M1).
func TestKilledDemoGoesOn(t *testing.T) {
	databases(t, func(t *testing.T, dir, url string, _ func()) {
		const n = 60
		cmd := exec.Command(os.Args[0], "demo", "run", dir, url)
		if err := os.WriteFile(filepath.Join(dir, "night.json"), fmt.Appendf(nil,
			`{"id":"killed","invoices":%d,"lose":0.3,"kill":1,"seed":3,"usual":%q,"semel":%q}`, n, freeAddress(t), freeAddress(t)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		waitFor(t, "a charge with semel", func() bool {
			ledger, err := os.ReadFile(filepath.Join(dir, "semel.ledger"))
			return err == nil && bytes.Count(ledger, []byte("\n")) > n/4
		})
		if n := len(workersOf(t)); n == 0 && runtime.GOOS == "linux" {
			t.Error("there were no workers to lose")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		waitFor(t, "all workers to be gone", func() bool { return len(workersOf(t)) == 0 })

		r := mustRun(t, demo.Options{Dir: dir, DB: url})
		if !r.OK() || r.Completed != n || r.RequestsThisRun == 0 || r.Receipts.Duplicates != 0 || r.Receipts.Missing != 0 {
			t.Errorf("after the kill: %+v", r)
		}
		counts := effects(t, dir)
		for resource, references := range intended(t, n) {
			if wrong := repeated(counts[resource], references); wrong != nil {
				t.Errorf("%s: %v", resource, wrong)
			}
		}
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// workersOf lists the worker processes of this program.
func workersOf(t *testing.T) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(path string) bool {
		line, err := os.ReadFile(path)
		return err != nil || string(line) != os.Args[0]+"\x00demo\x00worker\x00"
	})
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

// TestInterruptedDemoGoesOn: Ctrl-C in the middle loses nothing.
func TestInterruptedDemoGoesOn(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if ledger, err := os.ReadFile(filepath.Join(dir, "semel.ledger")); err == nil && bytes.Count(ledger, []byte("\n")) > 10 {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	var out bytes.Buffer
	if _, err := demo.Run(ctx, demo.Options{Dir: dir, Invoices: 40, Out: &out}); !errors.Is(err, demo.ErrInterrupted) || out.Len() != 0 {
		t.Fatalf("interrupted: %v, and printed %q", err, &out)
	}
	if r := mustRun(t, demo.Options{Dir: dir}); !r.OK() || r.Completed != 40 || r.RequestsThisRun == 0 {
		t.Errorf("went on: %+v", r)
	}
}

// TestScreen: the screen of the default night, which the README shows.
func TestScreen(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	began := time.Now()
	mustRun(t, demo.Options{Dir: dir, Out: &out})
	t.Logf("the default night took %v", time.Since(began).Round(100*time.Millisecond))
	got := strings.ReplaceAll(out.String(), dir, "/home/you/.local/state/semel/demo")
	got = strings.ReplaceAll(got, "semel demo --dir /home/you/.local/state/semel/demo", "semel demo")
	seen := map[string]string{}
	got = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).ReplaceAllStringFunc(got, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("019ad000-0000-7000-8000-%012d", len(seen)+1)
		}
		return seen[id]
	})
	const golden = "testdata/screen.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("screen (-want +got), rewrite with -update:\n%s", diff)
	}
}

// TestReportIsOneLine: members that scripts read.
func TestReportIsOneLine(t *testing.T) {
	var out bytes.Buffer
	mustRun(t, demo.Options{Dir: t.TempDir(), Invoices: 3, Lose: new(0.0), Kill: new(0), JSON: true, Out: &out})
	got := regexp.MustCompile(`"id":"[0-9a-f-]{36}"`).ReplaceAllString(out.String(), `"id":"ID"`)
	counts := `"invoices":3,"completed":3,"failed":0,"unknown":0,"requests":3,"lost_responses":0,"workers_killed":0,"charges":3,"duplicates":0,"missing":0`
	want := "{" + counts + `,"receipts":{` + counts + `},"run":{"id":"ID","state":"completed","done":3,"went_on":0},"ledger":{"paid":3,"twice":0,"missing":0},"naive":{` + counts + `,"amount_charged_twice":0.00},"requests_this_run":6}` + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("the report is not JSON")
	}
}

// TestDemoStays: while it stays, the destinations answer; then it ends well.
func TestDemoStays(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &trigger{text: "Until Ctrl-C", act: cancel}
	r, err := demo.Run(ctx, demo.Options{Dir: t.TempDir(), Invoices: 2, Kill: new(0), Stay: true, Out: out})
	if err != nil || !r.OK() || ctx.Err() == nil {
		t.Errorf("stayed until %v: %+v, %v", ctx.Err(), r, err)
	}
}

// trigger acts when some text is written.
type trigger struct {
	text string
	act  func()
}

func (w *trigger) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.text)) {
		w.act()
	}
	return len(b), nil
}
