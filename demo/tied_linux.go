package demo

import "syscall"

// tied makes a worker die with the demo, however that dies.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
