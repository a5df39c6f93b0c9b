//go:build !linux

package demo

import "syscall"

// tied does nothing here: a worker ends when its standard input does.
func tied() *syscall.SysProcAttr { return nil }
