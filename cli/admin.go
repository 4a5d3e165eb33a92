package cli

import (
	"context"
	"net"
	"sync"

	"kith/gateway"
)

// admin is the address for operators, or none.
type admin struct{ listener net.Listener }

// listenAdmin listens on the address of --admin-addr; "" is none. The caller closes it.
func listenAdmin(ctx context.Context, addr string) (*admin, error) {
	if addr == "" {
		return &admin{}, nil
	}
	listener, err := Listen(ctx, "admin-addr", addr)
	if err != nil {
		return nil, err
	}
	return &admin{listener}, nil
}

// Addr is where it listens; nil if it does not.
func (a *admin) Addr() net.Addr {
	if a.listener == nil {
		return nil
	}
	return a.listener.Addr()
}

// Close stops listening.
func (a *admin) Close() {
	if a.listener != nil {
		_ = a.listener.Close() // it may have been closed by serve
	}
}

// serve shows the pages until it is stopped: they are also needed while the process drains.
func (a *admin) serve(pages gateway.Admin) (stop func()) {
	if a.listener == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { pages.Serve(ctx, a.listener) })
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
