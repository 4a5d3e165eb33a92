package sim

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"kith/cluster"
)

// server is a Redis behind a network: what it sends and receives takes its time, and may be cut.
type server struct {
	*world
	redis *miniredis.Miniredis
	run   atomic.Int64 // which process it is

	mu    sync.Mutex
	conns map[*conn]bool
	down  bool                   // nobody can connect
	hangs map[*gateway]time.Time // until when nothing comes out of it to a gateway; nil stands for all
}

// conn is a connection of a gateway: its near end, and the end at the Redis.
type conn struct {
	of       *gateway
	near, at net.Conn
}

func newServer(w *world) *server {
	s := &server{world: w, redis: miniredis.NewMiniRedis(), conns: map[*conn]bool{}, hangs: map[*gateway]time.Time{}}
	s.redis.ClockTTL(true)
	first, err := s.redis.Dial()
	if err != nil {
		panic(err)
	}
	_ = first.Close()
	s.redis.Server().SetPreHook(func(c *redisserver.Peer, command string, _ ...string) bool {
		switch command {
		case "INFO": // which this library answers in part
			c.WriteBulk(fmt.Sprintf("run_id:%d\r\n", s.run.Load()))
		case "HELLO": // it is an old one, which only answers
			c.WriteError("ERR unknown command")
		default:
			return false
		}
		return true
	})
	return s
}

// client is a gateway's way to the server.
func (s *server) client(g *gateway) *cluster.Redis {
	return cluster.NewRedis(&redis.UniversalOptions{
		Addrs:           []string{"127.0.0.1:6379"},
		MinRetryBackoff: -1, MaxRetryBackoff: -1, // which the library draws
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.down || g.dead.Load() {
				return nil, io.ErrClosedPipe
			}
			at, err := s.redis.Dial()
			if err != nil {
				return nil, err
			}
			client, near := net.Pipe()
			c := &conn{of: g, near: near, at: at}
			s.conns[c] = true
			s.pass(c, near, at, 2*time.Millisecond, "to redis")
			s.pass(c, at, near, 3*time.Millisecond, "from redis")
			return client, nil
		},
	})
}

// pass passes on what comes from one end to the other, in its order. Nothing leaves the server while it hangs.
func (s *server) pass(c *conn, from, to net.Conn, most time.Duration, what string) {
	due := make(chan []byte, 1<<12)
	go func() {
		defer s.drop(c)
		defer close(due)
		for {
			text := make([]byte, 1<<14)
			n, err := from.Read(text)
			if err != nil {
				return
			}
			due <- text[:n]
		}
	}()
	go func() {
		defer s.drop(c)
		for text := range due {
			s.delay(most, c.of.name, what)
			for from == c.at && s.hanging(c.of) > 0 {
				time.Sleep(s.hanging(c.of))
			}
			if _, err := to.Write(text); err != nil {
				return
			}
		}
	}()
}

// cut ends the connections of a gateway; nil stands for all.
func (s *server) cut(g *gateway) {
	s.mu.Lock()
	var all []*conn
	for c := range s.conns {
		if g == nil || c.of == g {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		s.drop(c)
	}
}

// lose is a restart without what was in memory.
func (s *server) lose() {
	s.run.Add(1)
	s.redis.FlushAll()
	s.cut(nil)
}

// drop ends a connection.
func (s *server) drop(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	_, _ = c.near.Close(), c.at.Close()
}

// hang lets nothing out to a gateway, or to all, for a time.
func (s *server) hang(g *gateway, lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs[g] = later(s.hangs[g], time.Now().Add(lasts))
}

func (s *server) hanging(g *gateway) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(later(s.hangs[nil], s.hangs[g]))
}
