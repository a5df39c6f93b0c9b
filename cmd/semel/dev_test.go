package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/semel-dev/semel/sandbox"
)

// TestDevReadsFilesOnSave: a file with errors keeps what it said, a change
// under the same version is for new runs and holds those that had begun, and a
// new version lets them go on.
func TestDevReadsFilesOnSave(t *testing.T) {
	stores(t, func(t *testing.T, db string) {
		f := newOffice(t, db, sandbox.Options{})
		wait := "  - id: ready\n    wait: {event: ready, match: \"${{ inputs.id }}\"}\n"
		f.save("pay", 1, chargeOne+wait)
		dev := f.start("dev", "--create", "--sandbox", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--db", db)
		dev.says("pay@1 of pay.yaml")
		f.semel(0, "run", "start", "pay", "--key", "a", "--field", "id=a")
		dev.says("pay@1 a    charge completed")
		dev.says("pay@1 a  waiting: ")

		f.save("pay", 1, "steps: [{id: charge, uses: bonk.charge}]\n")
		dev.says(`there is no connection "bonk"`)
		dev.says("pay.yaml has errors: pay@1 stays as it was")

		f.save("pay", 1, chargeOne+wait+"  - id: more\n    sleep: {for: 1h}\n")
		dev.says("pay@1 changed under the same version: new runs begin with it, and those that had begun are held")
		f.semel(0, "event", "send", "ready", "--match", "a", "--id", "1")
		dev.says("pay@1 a  held: the definition of pay@1 changed since the run began: step more added; give the changed definition a new version")

		f.save("pay", 2, chargeOne+wait+"  - id: more\n    sleep: {for: 1h}\n")
		dev.says("pay@1 is pay@2 now")
		f.semel(0, "run", "retry", "pay", "a", "--reason", "the change has a version of its own")
		dev.says("pay@1 a  completed")
		if n := f.bank.Count(sandbox.Charges, "a"); n != 1 {
			t.Errorf("it was charged %d times, want once", n)
		}

		f.save("late", 1, "on: {http: {}}\n"+chargeOne)
		dev.says("late@1 of late.yaml")
		write(t, f.dir, configName, "connections: {bank: {kind: htp}}\n")
		dev.says(`kind "htp" is unknown`)
		dev.says("semel.yaml has errors: everything stays as it was")
		f.semel(0, "run", "start", "late", "--key", "b", "--field", "id=b")
		dev.says("late@1 b  completed")
		if code := dev.end(syscall.SIGINT); code != exitCompleted {
			t.Errorf("Ctrl-C ended it with %d:\n%s", code, dev.said())
		}
		if said := dev.said(); strings.Count(said, `no connection "bonk"`) != 1 {
			t.Errorf("an error is said more than once, or not at all:\n%s", said)
		}
	})
}

// TestDevHasEverything: a database, a sandbox and a worker of its own, and it
// goes on when it is started again.
func TestDevHasEverything(t *testing.T) {
	f := newOffice(t, "", sandbox.Options{})
	dev := f.start("dev", "--sandbox", "127.0.0.1:0", "--listen", "127.0.0.1:0")
	dev.says("no workflow yet: save one as NAME.yaml")
	f.save("pay", 1, chargeOne)
	dev.says("pay@1 of pay.yaml")
	dev.end(syscall.SIGINT)
	f.db = "sqlite:.semel/dev.db"
	f.semel(0, "run", "start", "pay", "--key", "a", "--field", "id=a")
	f.db = ""
	again := f.start("dev", "--sandbox", "127.0.0.1:0", "--listen", "127.0.0.1:0")
	again.says("pay@1 a  completed")
	again.end(syscall.SIGTERM)
}
