package workflowfile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/semeltest"
	"github.com/semel-dev/semel/workflowfile"
)

// loaded is a workflow file with whatever connections it uses.
func loaded(t testing.TB, path string) *workflowfile.Definition {
	t.Helper()
	d, problems, err := workflowfile.Load(path, workflowfile.Checks{Cron: checks.Cron})
	if d == nil {
		t.Fatal(lines(problems), err)
	}
	return d
}

// anywhere makes calls to no destination in particular.
type anywhere struct{}

func (anywhere) Call(connection, action string, with map[string]any) (semel.Call, error) {
	body, err := json.Marshal(with)
	name := connection + "." + action
	return semel.Call{
		Action: name, Contract: semel.Contract{Protection: semel.Keyed, Window: time.Hour}, Destination: house{newTown(), name},
		Request: semel.Request{Connection: connection, Action: name, Kind: "call", MediaType: "application/json", Body: body},
	}, err
}

// paths are the steps of a list and of those within, as far as they leave a
// record, with the action of each.
func paths(steps []*workflowfile.Step, prefix string) map[string]string {
	all := map[string]string{}
	for _, s := range steps {
		all[prefix+s.ID] = ""
		if s.Uses != nil {
			all[prefix+s.ID] = s.Uses.Connection + "." + s.Uses.Action
		}
		if s.Each != nil {
			maps.Copy(all, paths(s.Each.Steps, prefix+s.ID+"/"))
		}
	}
	return all
}

var itemKey = regexp.MustCompile(`\[[^]]*\]`)

// play runs a definition with a sample, and returns the steps that it reached.
func play(t *testing.T, d *workflowfile.Definition, s workflowfile.Sample) (semel.Run, map[string]int) {
	t.Helper()
	w := semeltest.New(t, d.Workflow(anywhere{}))
	for path, action := range paths(d.Steps, "") {
		if action != "" {
			w.On(action, semeltest.Completed(s.Answer(path)))
		}
	}
	for _, e := range s.Events {
		w.Send(e.Name, e.Match, e.Data)
	}
	run := w.Run(d.SampleRun("sample", s))
	for range 10 {
		switch {
		case strings.Contains(run.Reason, "approv"):
			w.Approve(run)
		case strings.Contains(run.Reason, "waits for event"):
			w.Advance(100 * time.Hour)
		}
		run = w.Await(run)
	}
	reached := map[string]int{}
	for _, step := range w.Steps(run) {
		if strings.HasSuffix(step.Path, "]") {
			continue // an item
		}
		reached[itemKey.ReplaceAllString(step.Path, "")]++
	}
	return run, reached
}

// TestSampleReachesEveryStep: with what is inferred alone, the workflow
// completes, and every step of it was there, for two items of each list.
func TestSampleReachesEveryStep(t *testing.T) {
	for path, want := range map[string]map[string]int{
		"../examples/billing/nightly_billing.yaml": {"due": 1, "bill": 1, "bill/charge": 2, "bill/mark_paid": 2, "bill/receipt": 2},
		"../examples/helpdesk-yaml/sla.yaml":       {"overdue": 1, "breached": 1, "breached/claim": 2, "breached/escalate": 2, "breached/notify": 2},
		"../demo/billing/nightly_billing.yaml":     {"due": 1, "bill": 1, "bill/charge": 1, "bill/transfer": 1, "bill/mark_paid": 2, "bill/receipt": 2},
		"testdata/good/publishing.yaml":            {"ask": 1, "publish": 1, "approve-announce": 1, "announce": 1, "groups": 1, "groups/members": 1, "groups/members/note": 2},
		"testdata/good/outreach.yaml":              {"first": 1, "pause": 1, "reply": 1, "second": 1, "later": 1},
		"testdata/sample/ticked.yaml":              {"report": 1},
		"testdata/sample/started.yaml":             {"charge": 1, "lines": 1, "lines/packed": 2, "lines/tell": 2, "pause": 1, "until": 1},
		"testdata/sample/refunds.yaml":             {"ask": 1, "refund": 1, "reply": 1, "remind": 1},
		"testdata/sample/ways.yaml":                {"rows": 1, "row": 1, "row/card": 1, "row/transfer": 1, "row/cash": 1, "row/large": 1, "row/parts": 3, "row/parts/part": 6, "row/none": 1, "open": 1, "open/note": 3, "last": 1},
	} {
		t.Run(strings.TrimPrefix(path, "../"), func(t *testing.T) {
			d := loaded(t, path)
			s := d.Sample()
			if s.Unsure != nil {
				t.Errorf("unsure: %q", s.Unsure)
			}
			run, reached := play(t, d, s)
			if run.State != semel.RunCompleted {
				t.Errorf("run is %s: %s", run.State, run.Reason)
			}
			delete(reached, "resolve-inputs")
			if diff := cmp.Diff(want, reached); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			for p := range paths(d.Steps, "") {
				if reached[p] == 0 {
					t.Errorf("step %s was not reached", p)
				}
			}
			if diff := cmp.Diff(s, loaded(t, path).Sample()); diff != "" {
				t.Errorf("another time it differs:\n%s", diff)
			}
		})
	}
}

// shownSample is a sample as text, one member a line.
func shownSample(t testing.TB, s workflowfile.Sample) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "starts by %s\ninput %s\n", s.Trigger.Kind, s.Input)
	if e := s.Trigger.Event; e != nil {
		fmt.Fprintf(&b, "starts with %s %s\n", e.Name, e.Data)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Answers)) {
		fmt.Fprintf(&b, "%s: %s\n", path, s.Answers[path])
	}
	for _, e := range s.Events {
		fmt.Fprintf(&b, "%s gets %s(%s) %s\n", e.Path, e.Name, e.Match, e.Data)
	}
	for _, u := range s.Unsure {
		fmt.Fprintf(&b, "unsure: %s\n", u)
	}
	return b.String()
}

func TestSampleGoldens(t *testing.T) {
	for path := range files(t, "testdata/sample/*.yaml") {
		d := loaded(t, path)
		got := shownSample(t, d.Sample())
		golden := strings.TrimSuffix(path, ".yaml") + ".sample"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", path, diff, err)
		}
	}
}

// TestSampleMakesConditionsTrue, one by one.
func TestSampleMakesConditionsTrue(t *testing.T) {
	for _, condition := range []string{
		"result.ok", "!result.ok", "result.ok == false", "result.n == 5", "5 < result.n", "result.n >= 0.10 && result.n < 0.11",
		"result.n > 9007199254740993123", "result.n in [7, 8]", "!(result.n in [101, 102])", "result.name != 'name-1'",
		"result.state == 'a' || result.state == 'b'", "'vip' in result.tags", "!('vip' in result.tags)", "'key' in result.map && result.map.key > 1",
		"has(result.a)", "!has(result.a)", "has(result.a.b) && !has(result.a.c)", "result.a == null", "result.a != null && result.a.b == 'x'",
		"result.list == []", "result.list != []", "size(result.list) == 3", "result.list.size() > 4", "result.list[0].x == 1", "result['odd name'] == 'x'",
		"result.list.exists(l, l.x == 'y')", "!result.list.exists(l, l.x == 'y')", "result.list.all(l, l.x > 3)", "!result.list.all(l, l.x > 3)",
		"result.list.filter(l, l.x == 1).size() > 0", "result.list.map(l, l.x)[0] > 1", "result.list.exists_one(l, true) || true",
		"result.name.startsWith('ab')", "result.name.endsWith('ab') && result.name.contains('a')", "!result.name.contains('name')",
		"string(result.n) == '7'", "int(result.n) > 500", "result.name.lowerAscii() == 'abc'", "result.name + 'x' != ''", "result.a.n > result.b.n", "result.a.n == result.b.n",
		"(result.ok ? result.n : 2) == 101 || true", "result.ok ? result.a == 'x' : result.b == 'y'", "result.n * 2 > 1", "-result.n < 0",
		"timestamp(result.at) > timestamp('2000-01-01T00:00:00Z')", "duration(result.pause) > duration('1m')", "result == 'done'", "result == null", "result == 7.50",
	} {
		text := strings.ReplaceAll(condition, "result", "steps.first.result")
		d := workflow(t, "\nsteps:\n  - {id: first, uses: stock.reserve}\n  - id: then\n    if: |\n      "+text+"\n    uses: mail.send\n")
		if s := d.Sample(); s.Unsure != nil {
			t.Errorf("%s: %s, unsure: %q", condition, s.Answers["first"], s.Unsure)
		}
	}
}
