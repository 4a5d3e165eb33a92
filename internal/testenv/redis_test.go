package testenv_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/internal/testenv"
)

func TestRedisIsPrivateAndEmpty(t *testing.T) {
	first, second := testenv.Redis(t), testenv.Redis(t)
	if want := "redis://" + first.Addr() + "/0"; first.URL() != want {
		t.Errorf("URL is %s, want %s", first.URL(), want)
	}
	redis(t, first, "SET k one")
	if got := redis(t, second, "GET k"); got != "$-1" {
		t.Errorf("the second server answers %q", got)
	}

	first.Kill(t)
	first.Restart(t)
	if got := redis(t, first, "GET k"); got != "$-1" {
		t.Errorf("without persistence, after a kill: %q", got)
	}
}

func TestRedisAppendOnlyKeepsDataOverKill(t *testing.T) {
	server := testenv.Redis(t, testenv.AppendOnly...)
	redis(t, server, "SET n 7")
	server.Kill(t)
	server.Restart(t)
	if got := redis(t, server, "INCR n"); got != ":8" {
		t.Errorf("after a kill, INCR of 7 answers %q, want :8", got)
	}
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
