//go:build !unix

package command

import (
	"os"
	"os/exec"
	"syscall"
)

// Without process groups only the program itself can be ended, and nobody can
// tell whether a descendant is left.

func lead(*exec.Cmd) {}

func signalGroup(p *os.Process, sig os.Signal) {
	if sig == syscall.SIGTERM {
		sig = os.Kill
	}
	_ = p.Signal(sig) // gone already is as good
}

func groupGone(*os.Process) bool { return false }
