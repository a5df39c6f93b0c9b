package postgrestest

import (
	"errors"
	"os"
	"syscall"
)

// attributes make the system stop the server when the test process dies.
func attributes(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if a.other {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// lockFile creates and locks a file until the process ends or closes it. It
// returns an error when another process holds the lock.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The owner before may have deleted the file between our open and our lock.
	ours, errOurs := f.Stat()
	there, errThere := os.Stat(path)
	if err := errors.Join(errOurs, errThere); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if !os.SameFile(ours, there) {
		return nil, errors.Join(os.ErrNotExist, f.Close())
	}
	return f, nil
}
