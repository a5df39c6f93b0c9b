package sqldest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/semel-dev/semel"
	sqldest "github.com/semel-dev/semel/destination/sql"
)

// endless inserts an effect when it has counted further than a test waits.
const endless = `insert into effect (name, manner)
	with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000000)
	select 'killed', count(*) from n`

// C29 B: a process that is killed in the middle of its transaction has had no
// effect, and the lookup of the next one says so.
func TestKilledProcessHasNoEffect(t *testing.T) {
	each(t, func(t *testing.T, w world) {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildIsKilled$", "-test.v")
		child.Env = append(os.Environ(), "SEMEL_TEST_CHILD="+w.url)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "begun" {
		}
		time.Sleep(100 * time.Millisecond)
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := child.Wait(); !errors.As(err, new(*exec.ExitError)) {
			t.Fatalf("the child ended with %v", err)
		}
		if w.name == "postgres" { // the server notices when it next speaks to the client
			w.exec(t, `select pg_terminate_backend(pid) from pg_stat_activity where query like 'insert into effect%' and datname = current_database() and pid <> pg_backend_pid()`)
		}
		d := open(t, w.url, sqldest.Options{})
		s := send(t, d, "killed", 1, sqldest.VerbExec, endless)
		if ev := d.Look(t.Context(), unknown(s)); ev.Kind != semel.EvAbsent || w.effects(t, "killed") != 0 {
			t.Errorf("got %+v and %d effects, want absent and none", ev, w.effects(t, "killed"))
		}
	})
}

// TestChildIsKilled is the process that TestKilledProcessHasNoEffect kills.
func TestChildIsKilled(t *testing.T) {
	address := os.Getenv("SEMEL_TEST_CHILD")
	if address == "" {
		t.Skip("it runs as a child only")
	}
	d := open(t, address, sqldest.Options{})
	s := send(t, d, "killed", 1, sqldest.VerbExec, endless)
	s.Begin = func() error { fmt.Println("begun"); return nil }
	t.Fatalf("it ended: %+v", d.Send(context.Background(), s))
}
