package check_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/semel-dev/semel/check"
	"github.com/semel-dev/semel/workflowfile"
)

// sarifSchema is that of OASIS, without its descriptions.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile("testdata/sarif-2.1.0.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var inFile = check.Finding{
	Code: workflowfile.CodeOwner, Severity: workflowfile.SeverityWarning, Workflow: "pay@1", Step: "charge",
	File: "flows/a pay.yaml", Line: 5, Column: 9, Message: "nobody is named", Fix: "add owner",
}

func accepted(f check.Finding, reason string) check.Finding {
	f.Accepted = reason
	return f
}

func log(t *testing.T, findings ...check.Finding) (text []byte, results []map[string]any) {
	t.Helper()
	data, err := check.SARIF(findings, "..")
	if err != nil {
		t.Fatal(err)
	}
	var l struct {
		Runs []struct{ Results []map[string]any }
	}
	if err := json.Unmarshal(data, &l); err != nil {
		t.Fatal(err)
	}
	return data, l.Runs[0].Results
}

func TestSARIFIsWhatTheStandardSays(t *testing.T) {
	inGo := inFile
	inGo.File, inGo.Line, inGo.Column = "", 0, 0
	broken := check.Problem(workflowfile.Problem{File: "flows/b.yaml", Severity: workflowfile.SeverityError, Code: workflowfile.CodeSyntax, Message: "not YAML"})
	data, results := log(t, inFile, accepted(inFile, "the desk looks each morning"), inGo, broken)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := sarifSchema(t).Validate(doc); err != nil {
		t.Error(err)
	}
	want := map[string]any{
		"ruleId": "no_owner", "ruleIndex": 11.0, "level": "warning",
		"message": map[string]any{"text": "nobody is named. To mend it: add owner."},
		"locations": []any{map[string]any{
			"physicalLocation": map[string]any{
				"artifactLocation": map[string]any{"uri": "check/flows/a%20pay.yaml", "uriBaseId": "%SRCROOT%"},
				"region":           map[string]any{"startLine": 5.0, "startColumn": 9.0},
			},
			"logicalLocations": []any{map[string]any{"fullyQualifiedName": "pay@1/charge"}},
		}},
		"partialFingerprints": results[0]["partialFingerprints"],
	}
	if diff := cmp.Diff(want, results[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	suppressed := []any{map[string]any{"kind": "inSource", "status": "accepted", "justification": "the desk looks each morning"}}
	if diff := cmp.Diff(suppressed, results[1]["suppressions"]); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
}

func TestFingerprintsFollowTheFindingAndNotItsLine(t *testing.T) {
	moved, other := inFile, inFile
	moved.Line, other.Step = 50, "refund"
	_, here := log(t, inFile)
	_, there := log(t, moved, moved, other)
	print := func(r map[string]any) any { return r["partialFingerprints"].(map[string]any)["semelCheck/v1"] }
	if print(here[0]) != print(there[0]) {
		t.Errorf("%v became %v when its line moved", print(here[0]), print(there[0]))
	}
	if print(there[0]) == print(there[1]) || print(there[0]) == print(there[2]) {
		t.Errorf("two findings have one fingerprint: %v, %v, %v", print(there[0]), print(there[1]), print(there[2]))
	}
}

func TestSARIFRefusesAnUnknownCode(t *testing.T) {
	unknown := inFile
	unknown.Code = "strange"
	if _, err := check.SARIF([]check.Finding{unknown}, "."); err == nil {
		t.Error("no error")
	}
}
