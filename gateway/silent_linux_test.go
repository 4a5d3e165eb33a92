package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

// A client that has gone without a word, as a phone without a network does, answers no server-sent event: nothing but its TCP would. One that
// takes its comments stays.
func TestStreamsOfClientsThatAreGoneEnd(t *testing.T) {
	t.Parallel()
	l := newLive()
	cfg := l.config(gateway.Subscriptions{PingInterval: 200 * time.Millisecond})
	listener := loopback(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Serve(ctx, cfg, listener, 0) }()
	t.Cleanup(func() { stop(); <-ended })
	gone, stays := subscribedByHand(t, listener.Addr()), subscribedByHand(t, listener.Addr())
	go func() { _, _ = bufio.NewReader(stays).ReadString(0) }()
	must.Soon(t, "both are subscribed", func() bool { return l.began.Load() == 2 })
	dropAll(t, gone)
	must.Soon(t, "the subscription of the one that is gone has ended", func() bool { return l.ended.Load() > 0 })
	time.Sleep(time.Second)
	check.Equal(t, "subscriptions that have ended", l.ended.Load(), 1)
}

// subscribedByHand subscribes by server-sent events over a connection of its own.
func subscribedByHand(t *testing.T, at net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", at.String())
	must.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	body := `{"query":"` + followersQuery + `"}`
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return conn
}

// dropAll makes the system drop whatever arrives on a connection, without an answer.
func dropAll(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	must.OK(t, err)
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // of each packet, no byte is kept
	must.OK(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	}))
	must.OK(t, err)
}
