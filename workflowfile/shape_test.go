package workflowfile

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSchemaHasTheMembersOfTheReader: every member that is read is in the
// schema, and no other.
func TestSchemaHasTheMembersOfTheReader(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Type       any
			Properties map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for name, def := range schema.Defs {
		if def.Type == "object" {
			got[name] = slices.AppendSeq([]string{}, maps.Keys(def.Properties))
			slices.Sort(got[name])
		}
	}
	want := map[string][]string{}
	for name, members := range shapes {
		want[name] = slices.Sorted(slices.Values(members))
		if want[name] == nil {
			want[name] = []string{}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-reader +schema):\n%s", diff)
	}
}
