package testenv

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/must"
)

// AppendOnly makes a Redis keep every write it has acknowledged over a Kill:
// testenv.Redis(t, testenv.AppendOnly...).
var AppendOnly = []string{"--appendonly", "yes", "--appendfsync", "always"}

// RedisServer is a private Redis, empty and without persistence unless asked.
type RedisServer struct{ *Server }

// Redis starts a server for t alone and removes it when t ends. More options of
// redis-server may follow; they win over the defaults.
func Redis(t testing.TB, options ...string) *RedisServer {
	t.Helper()
	bin := program(t, "redis-server")
	dir, err := serverDir("redis")
	must.OK(t, err)
	server := &RedisServer{&Server{
		kind:   "redis",
		bin:    bin,
		dir:    dir,
		args:   func(s *Server) []string { return append(redisArgs(s), options...) },
		answer: answersRedis,
	}}
	must.OK(t, server.start())
	t.Cleanup(func() {
		if err := server.remove(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// URL returns the server's address as "redis://127.0.0.1:port/0".
func (r *RedisServer) URL() string { return fmt.Sprintf("redis://%s/0", r.Addr()) }

func redisArgs(s *Server) []string {
	return []string{
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(s.port),
		"--unixsocket", s.Socket(),
		"--dir", filepath.Clean(s.dir),
		"--daemonize", "no",
		"--save", "",
		"--appendonly", "no",
	}
}

// answersRedis asks through the server's own socket, as answersMariaDB does. A
// server that still loads its data does not say PONG.
func answersRedis(s *Server) error {
	conn, err := net.DialTimeout("unix", s.Socket(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") {
		return fmt.Errorf("redis says %q", strings.TrimSpace(line))
	}
	return nil
}
