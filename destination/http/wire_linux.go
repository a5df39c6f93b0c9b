package httpdest

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), in milliseconds.
const tcpUserTimeout = 0x12

func limitUnacknowledged(conn *net.TCPConn, d time.Duration) {
	control, err := conn.SyscallConn()
	if err != nil {
		return
	}
	ms := int(max(d, time.Millisecond).Milliseconds())
	_ = control.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, ms) // best effort
	})
}
