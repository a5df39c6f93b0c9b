package sandbox_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-dev/semel/sandbox"
)

// TestMain turns the test binary into a provider of its own where a test needs
// one to kill.
func TestMain(m *testing.M) {
	if path := os.Getenv("SANDBOX_TEST_LEDGER"); path != "" {
		serveUntilKilled(path)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(path string) {
	s, err := sandbox.New(sandbox.Options{LedgerPath: path, Delay: time.Hour})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, s))
}

func tempLedger(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger.jsonl") }

func TestKillRightAfterTheAnswerLosesNothing(t *testing.T) {
	path := tempLedger(t)
	provider := exec.Command(os.Args[0])
	provider.Env = append(os.Environ(), "SANDBOX_TEST_LEDGER="+path)
	provider.Stderr = os.Stderr
	out, err := provider.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(address) + "/v1/charges?fault="
	for key, fault := range map[string]string{"answered": "none", "lost": "drop_after", "late": "late"} {
		r, _ := http.NewRequest("POST", url+fault, strings.NewReader(`{"amount":1,"reference":"`+key+`"}`))
		r.Header.Set("Idempotency-Key", key)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
		}
	}
	if err := provider.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = provider.Wait() // it says that it was killed

	s := start(t, sandbox.Options{LedgerPath: path})
	wantCount(t, s, sandbox.Charges, "answered", 1)
	wantCount(t, s, sandbox.Charges, "lost", 1)
	wantIn(t, post(s, sandbox.Charges, `{"amount":1,"reference":"late"}`, "Idempotency-Key", "late"), 409, "in_use")
	if err := s.FinishLate(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"answered", "lost", "late"} {
		got := post(s, sandbox.Charges, `{"amount":1,"reference":"`+key+`"}`, "Idempotency-Key", key)
		if got.Status != 201 || !got.Replayed {
			t.Errorf("resend of %s: got %+v, want a replay", key, got)
		}
		wantCount(t, s, sandbox.Charges, key, 1)
	}
}

func TestRestartRemembersEverything(t *testing.T) {
	path := tempLedger(t)
	options := sandbox.Options{LedgerPath: path}
	before := start(t, options)
	post(before, sandbox.Charges, order, "Idempotency-Key", "k")
	post(before, sandbox.Charges, order, "Idempotency-Key", "k")
	post(before, sandbox.Charges, order, "Idempotency-Key", "declined", "Sandbox-Fault", "retained_error")
	post(before, sandbox.Transfers, order, "Sandbox-Fault", "partial")
	post(before, sandbox.Messages, order, "Sandbox-Fault", "late")
	get(before, "/v1/transfers?reference=r")
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}

	after := start(t, options)
	for what, pair := range map[string][2]any{
		"effects":  {after.Effects(), before.Effects()},
		"requests": {after.Requests(), before.Requests()},
		"summary":  {after.Summary(), before.Summary()},
	} {
		got, _ := json.Marshal(pair[0])
		want, _ := json.Marshal(pair[1])
		if string(got) != string(want) {
			t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
		}
	}
	if got := post(after, sandbox.Charges, order, "Idempotency-Key", "declined"); got.Status != 402 || !got.Replayed {
		t.Errorf("retained error: got %+v, want a replay", got)
	}
	if err := after.FinishLate(); err != nil {
		t.Fatal(err)
	}
	wantCount(t, after, sandbox.Messages, "r", 1) // what came late is not done again
	last := after.Requests()[6]
	if last.Number != 7 || last.Nth != 4 {
		t.Errorf("counting: got number %d, nth %d; want 7 and 4", last.Number, last.Nth)
	}
}

func TestRestartDoesNotProlongAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := sandbox.Options{LedgerPath: tempLedger(t), Window: time.Hour}
		s := start(t, options)
		post(s, sandbox.Charges, order, "Idempotency-Key", "k")
		_ = s.Close()
		time.Sleep(59 * time.Minute) // virtual
		s = start(t, options)
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); !got.Replayed {
			t.Errorf("inside the window: got %+v", got)
		}
		time.Sleep(time.Minute)
		if got := post(s, sandbox.Charges, order, "Idempotency-Key", "k"); got.Replayed {
			t.Errorf("after the window: got %+v", got)
		}
	})
}

func TestTornLastLineIsCutOff(t *testing.T) {
	path := tempLedger(t)
	s := start(t, sandbox.Options{LedgerPath: path})
	post(s, sandbox.Messages, order)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []int{1, len(whole) / 2, len(whole) - 1} { // the last is whole but for its end
		content := append(append([]byte{}, whole...), whole[:torn]...)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s := start(t, sandbox.Options{LedgerPath: path})
		wantCount(t, s, sandbox.Messages, "r", 1)
		post(s, sandbox.Messages, order)
		_ = s.Close()
		s = start(t, sandbox.Options{LedgerPath: path})
		wantCount(t, s, sandbox.Messages, "r", 2)
		_ = s.Close()
	}
}

func TestDamagedLineStopsTheStartAndIsKept(t *testing.T) {
	path := tempLedger(t)
	content := "{\"request\":{\"number\":1}}\nnot an entry\n{\"request\":{\"number\":2}}\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sandbox.New(sandbox.Options{LedgerPath: path})
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want an error naming line 2", err)
	}
	if after, _ := os.ReadFile(path); string(after) != content {
		t.Errorf("the file was changed to %q", after)
	}
}
