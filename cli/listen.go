package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// CheckAddress checks an address to listen on, as far as that is possible without listening.
func CheckAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if port == "" {
		return fmt.Errorf("address %s: the port is missing; 0 is any free one", addr)
	}
	return nil
}

// listenTimeout bounds the look-up of the host's name.
const listenTimeout = 4 * time.Second

// Listen listens on an address, which a setting gives. The caller closes the listener.
func Listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = unusable{fmt.Errorf("%s is taken by another program: stop it, or choose another port", addr)}
	}
	if err != nil {
		return nil, Misset(flag, err)
	}
	return listener, nil
}
