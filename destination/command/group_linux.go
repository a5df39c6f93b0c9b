package command

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// awaitExit returns when the program has exited, before it is reaped.
func awaitExit(cmd *exec.Cmd) (reap func() error) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return cmd.Wait
		}
	}
}

// onlyZombies reports whether every member of a killed group is dead and waits
// only for its new parent, which may take its time, to reap it.
func onlyZombies(group int) bool {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return false
	}
	dead := 0
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		// pid (name) state ppid pgrp ... with num_threads as the 20th of all
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 18 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if string(fields[0]) != "Z" || string(fields[17]) != "1" {
			return false
		}
		dead++
	}
	return dead > 0 // none seen: this /proc shows other processes
}
