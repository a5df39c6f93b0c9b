//go:build !linux

package httpdest

import (
	"net"
	"time"
)

func limitUnacknowledged(*net.TCPConn, time.Duration) {}
