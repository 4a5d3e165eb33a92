package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"syscall"
	"time"

	"kith/cluster"
	"kith/gateway"
)

// CheckAddress checks an address to listen on, as far as that is possible without listening.
func CheckAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %s: it is a host and a port, such as 127.0.0.1:8080", addr)
	}
	if port == "" {
		return fmt.Errorf("address %s: the port is missing; 0 is any free one", addr)
	}
	if n, err := strconv.Atoi(port); err == nil && n > math.MaxUint16 {
		return fmt.Errorf("address %s: a port is at most %d", addr, math.MaxUint16)
	}
	return nil
}

// listenTimeout bounds the look-up of the host's name.
const listenTimeout = 4 * time.Second

// Listen listens on an address, which a setting gives; nil if that is empty. The caller closes the listener.
func Listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = unusable{fmt.Errorf("%s is taken by another program: stop it, or choose another port", addr)}
	}
	return listener, Misset(flag, err)
}

// filesBesides is how many files a gateway has open besides connections of clients and shards.
const filesBesides = 200

// ownFiles is how many files a gateway has open besides connections of clients.
func ownFiles(settings *Settings, shards int) uint64 {
	return uint64(shards*(settings.ShardConns+max(2, settings.ShardConns/4)) + filesBesides)
}

// fitConnections lowers --max-connections to what the limit of open files leaves, at least half of it. Further connections
// would wait without an answer, and shards would get none.
func (c *ServeCmd) fitConnections(settings *Settings, shards int, logger *slog.Logger) {
	limit, err := openFiles()
	if err != nil {
		return
	}
	left := max(limit-min(limit, ownFiles(settings, shards)), limit/2)
	if asked := uint64(c.MaxConnections); left < asked {
		if c.MaxConnections = int(left); left < asked/2 {
			logger.Warn("the limit of open files leaves fewer connections than --max-connections", "files", limit, "connections", left, "max_connections", asked)
		}
	}
}

// serveAdmin shows the pages until it is stopped: they are also needed while the process drains.
func serveAdmin(listener net.Listener, pages gateway.Admin) (stop func()) {
	if listener == nil {
		return func() {}
	}
	return cluster.InBackground(func(ctx context.Context) { pages.Serve(ctx, listener) })
}
