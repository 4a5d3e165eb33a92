//go:build !linux

package gateway

import (
	"net"
	"time"
)

// endSilent does nothing: other systems have no option that is like that of Linux.
func endSilent(net.Conn, time.Duration) {}
