package workflowfile_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel/workflowfile"
)

// TestSchemaNamesWhatCanBeAccepted: no code is missing in an editor.
func TestSchemaNamesWhatCanBeAccepted(t *testing.T) {
	var schema struct {
		Defs struct {
			Accept struct {
				Properties struct {
					Code struct{ Enum []workflowfile.Code }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(workflowfile.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(workflowfile.Acceptable(), schema.Defs.Accept.Properties.Code.Enum); diff != "" {
		t.Errorf("(-codes +schema):\n%s", diff)
	}
}
