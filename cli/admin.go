package cli

import (
	"context"
	"net"
	"sync"

	"kith/gateway"
)

// listenAdmin listens on the address of --admin-addr, which is for operators; nil if there is none.
func listenAdmin(ctx context.Context, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	return Listen(ctx, "admin-addr", addr)
}

// serveAdmin shows the pages until it is stopped: they are also needed while the process drains.
func serveAdmin(listener net.Listener, pages gateway.Admin) (stop func()) {
	if listener == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { pages.Serve(ctx, listener) })
	return func() {
		cancel()
		serving.Wait()
	}
}

func checkAdminAddr(addr string) error {
	if addr == "" {
		return nil
	}
	if err := CheckAddress(addr); err != nil {
		return Misset("admin-addr", err)
	}
	return nil
}
