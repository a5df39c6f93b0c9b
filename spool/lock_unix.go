//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package spool

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lock takes f for this opening of it, without waiting. The lock ends when f is
// closed or its process dies.
func lock(f *os.File) (locked bool, err error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// isStrange reports whether a file belongs to neither this user nor root.
func isStrange(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

func isQuota(err error) bool { return errors.Is(err, syscall.EDQUOT) }
