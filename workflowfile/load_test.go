package workflowfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/workflowfile"
)

// directory writes files and returns the path of w.yaml.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "w.yaml")
}

func TestFilesThatStepsName(t *testing.T) {
	path := directory(t, map[string]string{
		"w.yaml": `name: w
version: 1
inputs: {who: {type: string}}
steps:
  - {id: a, uses: sql.query, with: {at: ledger, file: duu.sql}}
  - {id: b, uses: sql.query, with: {at: ledger, file: ../w.yaml}}
  - {id: c, uses: sql.query, with: {at: ledger, file: "${{ inputs.who }}.sql"}}
  - {id: d, uses: sql.query, with: {at: ledger, file: out.sql}}
  - {id: e, uses: sql.query, with: {at: ledger, file: sql}}
  - {id: f, uses: sql.query, with: {at: ledger, file: sql/empty.sql}}
  - {id: g, uses: sql.query, with: {at: ledger, file: sql/good.sql, statement: select 1}}
  - {id: h, uses: sql.query, with: {at: ledger, statement: "select ${{ inputs.who }}"}}
  - {id: i, uses: claim.once, with: {at: ledger}, effect: {kind: absolute}}
  - {id: j, uses: sql.query, with: {at: ledger, file: bytes.sql}}
  - {id: k, uses: mail.send, with: {template: mail.txt}, effect: {key: k}}
  - {id: l, uses: mail.send, with: {template: large.txt}, effect: {key: "l-${{ run.key }}"}}
  - {id: m, uses: sql.query, with: {at: ledger, statement: 5}}
`,
		"sql/empty.sql": " \n", "sql/good.sql": "select 1", "bytes.sql": "\xff", "large.txt": strings.Repeat("x", workflowfile.MaxFile+1),
		"mail.txt": "Dear ${{ inputs.who }},\n\n  ä ${{ inputs.who }} ${{ inputs.whom }}\n${{\n  steps.k.result }}\n${{ [1] }}\nend ${{ inputs.who\n",
	})
	if err := os.Symlink("/etc/hostname", filepath.Join(filepath.Dir(path), "out.sql")); err != nil {
		t.Fatal(err)
	}
	d, problems, err := workflowfile.Load(path, checks)
	if d != nil || err != nil {
		t.Fatalf("it was accepted: %v", err)
	}
	got := strings.ReplaceAll(lines(problems), filepath.Dir(path)+"/", "")
	want, err := os.ReadFile("testdata/files.problems")
	if *update {
		err = os.WriteFile("testdata/files.problems", []byte(got), 0o600)
		want = []byte(got)
	}
	if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	if _, _, err := workflowfile.Load(filepath.Join(filepath.Dir(path), "none.yaml"), checks); err == nil {
		t.Error("a file that is not there was read")
	}
}

const twoFiles = `name: w
version: 1
inputs: {who: {type: string}}
steps:
  - {id: a, uses: sql.query, with: {at: ledger, file: a.sql}}
  - {id: b, uses: mail.send, with: {template: mail/b.txt}, effect: {key: "b-${{ inputs.who }}"}}
`

// TestFilesAreContent: the digest covers them, and the text of a definition
// holds them, whatever is in them.
func TestFilesAreContent(t *testing.T) {
	load := func(text, sql, mail string) semel.WorkflowDefinition {
		t.Helper()
		d, problems, err := workflowfile.Load(directory(t, map[string]string{"w.yaml": text, "a.sql": sql, "mail/b.txt": mail}), checks)
		if d == nil {
			t.Fatal(lines(problems), err)
		}
		return d.Workflow(newTown())
	}
	const sql, mail = "select 1\n# semel files []\n", "Dear ${{ inputs.who }}\n"
	old := load(twoFiles, sql, mail)
	if !bytes.Contains(old.Text, []byte(sql)) || !bytes.Contains(old.Text, []byte(mail)) {
		t.Errorf("the text lacks a file: %s", old.Text)
	}
	marked := "# semel files [{\"name\":\"x\",\"bytes\":3}]\n"
	for name, test := range map[string]struct {
		text, sql, mail string
		want            []string
	}{
		"nothing":   {twoFiles, sql, mail, nil},
		"line ends": {twoFiles, strings.ReplaceAll(sql, "\n", "\r\n"), "\ufeff" + mail, nil},
		"comment":   {marked + twoFiles, sql, mail, nil},
		"statement": {twoFiles, "select 2\n", mail, []string{"file a.sql changed"}},
		"template":  {twoFiles, sql, mail + "!", []string{"file mail/b.txt changed"}},
		"inline":    {strings.Replace(twoFiles, "file: a.sql", "statement: select 1", 1), sql, mail, []string{"file a.sql removed", "step a: with.file removed", "step a: with.statement added"}},
	} {
		changed := load(test.text, test.sql, test.mail)
		if diff := cmp.Diff(test.want, changed.Diff(old.Text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (old.Digest == changed.Digest) != (test.want == nil) {
			t.Errorf("%s: digests %s and %s", name, old.Digest, changed.Digest)
		}
		if diff := changed.Diff(changed.Text); diff != nil {
			t.Errorf("%s differs from itself: %q", name, diff)
		}
	}
	alone := parsed(t, "name: w\nversion: 1\nsteps: [{id: a, sleep: {for: 1s}}]\n").Workflow(newTown())
	if !strings.HasPrefix(string(alone.Text), "name: w\n") {
		t.Errorf("a file alone has the text %s", alone.Text)
	}
	if diff := alone.Diff([]byte("not: [a workflow")); diff != nil {
		t.Errorf("a text that nobody can read gives %q", diff)
	}
}
