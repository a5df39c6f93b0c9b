package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when a release is built; the module's own is used otherwise.
var version = ""

func newVersion(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Long: "Print the version of Semel and of Go.", Example: "  semel version", Args: noArguments,
		RunE: ours(func(*cobra.Command, []string) error {
			v := currentVersion()
			if sh.json() {
				return sh.print(map[string]string{"version": v, "go": runtime.Version()})
			}
			return sh.write(fmt.Appendf(nil, "semel %s (%s)\n", v, runtime.Version()))
		}),
	}
}

func currentVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
