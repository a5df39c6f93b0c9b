//go:build !linux

package postgrestest

import (
	"os"
	"syscall"
)

// attributes are empty: this system does not stop a child when its parent
// dies, so that Main and the tests' own cleanup have to.
func attributes(account) *syscall.SysProcAttr { return nil }

// lockFile creates a file that must not exist. Nothing is swept by it: what a
// dead process left stays until someone deletes it.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}
