package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// HealthcheckCmd is `kith healthcheck`: what the HEALTHCHECK of an image that holds nothing else can run.
type HealthcheckCmd struct {
	Addr      string        `basic:"" bound:"address" default:"127.0.0.1:8080" env:"KITH_ADDR" placeholder:"HOST:PORT" help:"Address of the gateway, if --admin-addr is not set. Default: ${default}."`
	AdminAddr string        `basic:"" bound:"address" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Admin address of the gateway or replicator."`
	Timeout   time.Duration `bound:"positive" default:"3s" help:"How long to wait for the answer. Default: ${default}."`
}

// Run asks /healthz of the process with the same settings on this machine. It prints nothing if the answer is 200.
func (c *HealthcheckCmd) Run(ctx context.Context) error {
	flag, addr := "addr", c.Addr
	if c.AdminAddr != "" {
		flag, addr = "admin-addr", c.AdminAddr
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(addr)+"/healthz", nil)
	if err != nil {
		return Misset(flag, err)
	}
	// Not by way of a proxy that the environment names.
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return Misset(flag, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Misset(flag, fmt.Errorf("/healthz answers %s", answer.Status))
	}
	return nil
}

// reachable is where a process of this machine asks a listener: one on all addresses is asked on localhost.
func reachable(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
