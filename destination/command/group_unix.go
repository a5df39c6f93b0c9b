//go:build unix

package command

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// lead makes the program the leader of a new session and process group.
func lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// signalGroup signals the program and its descendants. It must not be called
// once the program has been reaped.
func signalGroup(p *os.Process, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-p.Pid, s) // gone already is as good
	}
}

// groupGone reports whether no member of a reaped program's group is left.
func groupGone(p *os.Process) bool {
	return errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH)
}
