package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"kith/gateway/quota"
)

// How long the HTTP server waits for its clients.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second // a body of 256 KiB at 9 kB/s
	idleTimeout       = 2 * time.Minute
	writeGrace        = 30 * time.Second // to send the answer, on top of the request's own time
	maxHeaderBytes    = 64 << 10         // queries by GET are part of it
)

// Serve answers on a listener until the context is done, and for [Config.StopDelay] after that.
// Then it accepts no more connections, ends the subscriptions, lets the requests under way finish
// for at most drain, and cuts the rest. It returns nil if everything ended by itself, and closes
// the listener in any case.
//
// Requests do not see that the context is done: they have their own deadlines.
func Serve(ctx context.Context, cfg Config, listener net.Listener, drain time.Duration) error {
	cfg = cfg.withDefaults()
	bounds := newAdmission(cfg)
	arriving := newArrivals(listener, cfg.MaxConnections, cfg.Metrics)
	server := arriving.server(newHandler(cfg, bounds), readTimeout+cfg.RequestTimeout+writeGrace, cfg.Logger)
	if cfg.H2C {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		server.HTTP2 = boundsOfHTTP2()
		server.Handler = arriving.streams(server.Handler)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(arriving) }()

	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	cfg.stopping.Store(true)
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-time.After(cfg.StopDelay):
	}
	err := shutdown(server, bounds.Limiter, drain)
	<-ended //nolint:errcheck // it says that the server was shut down
	return err
}

// server is a server for these connections, which waits for its clients for a bounded time.
func (a *arrivals) server(handler http.Handler, writeTimeout time.Duration, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         a.changed,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

func shutdown(server *http.Server, open *quota.Limiter, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	open.Stop()
	err := server.Shutdown(ctx)
	if err == nil {
		err = open.Wait(ctx) // the server knows nothing of WebSockets
	}
	if err != nil {
		err = fmt.Errorf("requests were cut off after %s (--drain): %w", drain, err)
		return errors.Join(err, server.Close())
	}
	return nil
}
