package gateway

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endSilent has the system end a connection whose client has confirmed nothing of what was sent for a time, or takes nothing. Otherwise TCP sends
// it again for a quarter of an hour. Where the system refuses, as for Multipath TCP, it does so.
func endSilent(conn net.Conn, after time.Duration) {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
			})
		}
	}
}
