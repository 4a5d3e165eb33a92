package testenv_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

func TestRedisIsPrivateAndEmpty(t *testing.T) {
	first, second := testenv.Redis(t), testenv.Redis(t)
	check.Equal(t, "its URL", first.URL(), "redis://"+first.Addr()+"/0")
	redis(t, first, "SET k one")
	check.Equal(t, "the second server's answer", redis(t, second, "GET k"), "$-1")

	first.Kill(t)
	first.Restart(t)
	check.Equal(t, "the answer after a kill, without persistence", redis(t, first, "GET k"), "$-1")
}

func TestRedisAppendOnlyKeepsDataOverKill(t *testing.T) {
	server := testenv.Redis(t, testenv.AppendOnly...)
	redis(t, server, "SET n 7")
	server.Kill(t)
	server.Restart(t)
	check.Equal(t, "INCR of 7 after a kill", redis(t, server, "INCR n"), ":8")
}

// redis sends one command and returns the first line of the answer.
func redis(t *testing.T, server *testenv.RedisServer, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	must.OK(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "%s\r\n", command)
	must.OK(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	must.OK(t, err)
	return strings.TrimSpace(line)
}
