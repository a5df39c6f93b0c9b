package demo

import "syscall"

// tied makes a worker die with the demo, however that dies. Strictly it dies
// with the thread that started it, and Go ends only threads that are locked.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
