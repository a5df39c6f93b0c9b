package workflowfile_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/semel-dev/semel/workflowfile"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(workflowfile.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workflow.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("workflow.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads a workflow file as an editor does.
func asJSON(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	s := compiledSchema(t)
	for path, data := range files(t, "testdata/good/*.yaml") {
		if err := s.Validate(asJSON(t, data)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaAndParseRefuseTheSame mistakes of structure.
func TestSchemaAndParseRefuseTheSame(t *testing.T) {
	s := compiledSchema(t)
	const head = "name: a\nversion: 1\n"
	step := func(members string) string { return head + "steps: [{id: a, " + members + "}]\n" }
	good := []string{
		step(`uses: payments.charge`),
		step(`uses: payments.charge, if: true, approve: {valid: 1h30m}`),
		step(`uses: payments.charge, accept: [{code: two_effects, reason: the mail is wanted}]`),
		step(`sleep: {for: "${{ run.key }}"}`),
		head + "on: {schedule: {cron: '0 2 * * *'}, http: {}}\n" + step(`sleep: {for: 1s}`)[len(head):],
	}
	bad := []string{
		"version: 1\nsteps: [{id: a, sleep: {for: 1s}}]\n",
		"name: a\nsteps: [{id: a, sleep: {for: 1s}}]\n",
		"name: A\nversion: 1\nsteps: [{id: a, sleep: {for: 1s}}]\n",
		"name: a\nversion: 0\nsteps: [{id: a, sleep: {for: 1s}}]\n",
		head, head + "steps: []\n", head + "steps: {}\n", head + "steps: [text]\n",
		head + "steps: [{sleep: {for: 1s}}]\n",
		step(`x: 1`), step(`if: "true"`), step(`uses: charge`),
		step(`uses: payments.charge, sleep: {for: 1s}`),
		step(`wait: {event: x}, approve: {step: a}`),
		step(`sleep: {for: 1s}, with: {}`), step(`sleep: {for: 1s}, timeout: 1s`), step(`sleep: {for: 1s}, retry: {attempts: 1}`),
		step(`sleep: {for: 1s}, effect: {key: x}`), step(`sleep: {for: 1s}, steps: [{id: b, sleep: {for: 1s}}]`),
		step(`uses: payments.charge, with: []`), step(`uses: payments.charge, timeout: 30`),
		step(`uses: payments.charge, effect: {}`), step(`uses: payments.charge, effect: {kind: strange}`),
		step(`uses: payments.charge, effect: {on_unknown: pay}`), step(`uses: payments.charge, effect: {on_failed: pay}`),
		step(`uses: payments.charge, retry: {}`), step(`uses: payments.charge, retry: {attempts: 0}`),
		step(`uses: payments.charge, retry: {attempts: 2, backoff: 3}`),
		step(`sleep: {for: 1s}, accept: []`), step(`sleep: {for: 1s}, accept: {code: no_owner, reason: x}`),
		step(`sleep: {for: 1s}, accept: [{code: no_owner}]`), step(`sleep: {for: 1s}, accept: [{reason: x}]`),
		step(`sleep: {for: 1s}, accept: [{code: syntax, reason: x}]`), step(`sleep: {for: 1s}, accept: [{code: no_owner, reason: " "}]`),
		step(`sleep: {}`), step(`sleep: {for: 3}`), step(`sleep: {for: 3d}`), step(`sleep: {for: 1s, until: "2030-01-31T09:00:00Z"}`),
		step(`wait: {}`), step(`wait: {event: x, timeout: 3}`), step(`wait: {event: x, match: [a]}`),
		step(`approve: {}`), step(`approve: {step: A}`), step(`uses: payments.charge, approve: {by: [a]}`),
		step(`each: {in: "[1]", as: x, key: x}`),
		step(`each: {as: x, key: x}, steps: [{id: b, sleep: {for: 1s}}]`),
		step(`each: {in: "[1]", key: x}, steps: [{id: b, sleep: {for: 1s}}]`),
		step(`each: {in: "[1]", as: x}, steps: [{id: b, sleep: {for: 1s}}]`),
		step(`each: {in: "[1]", as: x, key: x, at_once: 0}, steps: [{id: b, sleep: {for: 1s}}]`),
		step(`each: {in: "[1]", as: in, key: x}, steps: [{id: b, sleep: {for: 1s}}]`),
		step(`sleep: {for: 1s}`) + "on: []\n", step(`sleep: {for: 1s}`) + "on: {schedule: {}}\n",
		step(`sleep: {for: 1s}`) + "on: {schedule: {cron: '0 2 * * *', missed: never}}\n",
		step(`sleep: {for: 1s}`) + "on: {event: {}}\n", step(`sleep: {for: 1s}`) + "on: {http: {path: x}}\n",
		step(`sleep: {for: 1s}`) + "inputs: {a: {}}\n", step(`sleep: {for: 1s}`) + "inputs: {A: {type: string}}\n",
		step(`sleep: {for: 1s}`) + "inputs: {a: {type: text}}\n", step(`sleep: {for: 1s}`) + "inputs: {a: {type: string, format: uri}}\n",
		step(`sleep: {for: 1s}`) + "on_failure: []\n", step(`sleep: {for: 1s}`) + "owner: ''\n",
	}
	for _, file := range good {
		if err := s.Validate(asJSON(t, []byte(file))); err != nil {
			t.Errorf("the schema refuses %q: %v", file, err)
		}
		if d, problems := workflowfile.Parse("a.yaml", []byte(file), checks); d == nil {
			t.Errorf("Parse refuses %q:\n%s", file, lines(problems))
		}
	}
	for _, file := range bad {
		if _, problems := workflowfile.Parse("a.yaml", []byte(file), checks); !workflowfile.HasErrors(problems) {
			t.Errorf("Parse accepts %q", file)
		}
		if s.Validate(asJSON(t, []byte(file))) == nil {
			t.Errorf("the schema accepts %q", file)
		}
	}
}
