package command_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/semel-dev/semel"
	"github.com/semel-dev/semel/destination/command"
	"github.com/semel-dev/semel/destination/destinationtest"
)

// The effect of a command is a line in a file of the effect's name.
func TestCommandKeepsTheContractOfDestinations(t *testing.T) {
	const act = `echo done >>"$1"; `
	scripts := map[destinationtest.Manner]string{
		destinationtest.Succeeds:    act,
		destinationtest.Refuses:     "exit 3",
		destinationtest.LosesAnswer: act + "kill -9 $$",
		destinationtest.Hangs:       act + "sleep 1000",
		destinationtest.Slow:        act + "sleep 0.3",
		destinationtest.Unreachable: act,
	}
	destinationtest.Test(t, func(t *testing.T) destinationtest.World {
		dir := t.TempDir()
		d := open(t, command.Options{NoEffectExit: []int{3}, Check: `test -e "$4"`})
		return destinationtest.World{
			Destination: d,
			Request: func(name string, m destinationtest.Manner) (semel.Request, semel.Contract, bool) {
				args := sh(scripts[m], "sh", filepath.Join(dir, name))
				if m == destinationtest.Unreachable {
					args[0] = "/no/such/shell"
				}
				return request(t, nil, args...), semel.Contract{Protection: semel.Lookup, CanLookUp: true}, true
			},
			Effects: func(name string) int {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
				return bytes.Count(b, []byte("\n"))
			},
			Close: func() error {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return d.Close(ctx)
			},
		}
	})
}
