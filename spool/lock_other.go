//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

func lock(*os.File) (locked bool, err error) {
	return false, fmt.Errorf("lock evidence: %w on this system", errors.ErrUnsupported)
}

func isStrange(fs.FileInfo) bool { return false }

func isQuota(error) bool { return false }
