package workflowfile_test

import (
	"testing"

	"github.com/semel-dev/semel/workflowfile"
)

// TestRestoreReadsWhatAStoreKeeps: with the files that the steps name.
func TestRestoreReadsWhatAStoreKeeps(t *testing.T) {
	d := billing(t)
	kept := d.Workflow(newTown()).Text
	restored, problems := workflowfile.Restore("nightly_billing@1", kept, checks)
	if restored == nil {
		t.Fatal(lines(problems))
	}
	if restored.Digest != d.Digest || string(restored.Text) != string(d.Text) {
		t.Errorf("digest %s, want %s", restored.Digest, d.Digest)
	}
}
