package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/cluster"
	"kith/gateway"
	"kith/reconcile"
	"kith/resolvers"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// ReconcileWatchCmd is `kith reconcile watch`.
type ReconcileWatchCmd struct {
	Gateways  []string      `arg:"" name:"url" help:"Gateways to ask, such as http://10.0.0.5:8080; all addresses of a name."`
	Window    time.Duration `bound:"positive" default:"75s" help:"How long an answer may be older than the tables. Default: ${default}."`
	MaxLoad   float64       `bound:"share" default:"0.01" placeholder:"SHARE" help:"Share of a core that it may use. Default: ${default}."`
	AdminAddr string        `basic:"" bound:"address" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Private address for /metrics, /healthz and /debug/pprof/. Default: none."`

	identity.SecretFlags `group:"identity"`
}

// started is when the process was.
var started = time.Now()

// Validate is called by kong.
func (c *ReconcileWatchCmd) Validate() error {
	for _, at := range c.Gateways {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.HasSuffix(u.Path, "/graphql") {
			return fmt.Errorf("%q is no address such as http://10.0.0.5:8080, without /graphql", at)
		}
	}
	return nil
}

// Run watches until the context is done.
func (c *ReconcileWatchCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	who, err := openIssuer(ctx, c.SecretFlags, time.Hour)
	if err != nil {
		return err
	}
	defer who.Close()
	registry := newRegistry()
	admin, err := Listen(ctx, "admin-addr", c.AdminAddr)
	if err != nil {
		return err
	}
	defer serveAdmin(admin, gateway.Admin{Metrics: registry})()
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	if err := hidden.Refresh(ctx); err != nil {
		return Misset("store", err)
	}
	defer cluster.InBackground(func(ctx context.Context) { hidden.Run(ctx, events.NewHub(nil)) })()
	token := func() (string, error) {
		return who.Issuer.IssueTo("kith reconcile watch", identity.ScopeAdmin, identity.ScopeActAs)
	}
	return reconcile.NewWatch(reconcile.WatchConfig{
		Store: store, Gateways: c.gateways(net.DefaultResolver.LookupHost, token), Tables: tables(store, hidden, logger), Hidden: hidden.IDs,
		Window: c.Window, CPU: processorTime, Share: c.MaxLoad, Metrics: registry, Logger: logger,
	}).Run(ctx)
}

// gateways looks for those behind the names each time: they come and go. A certificate is for a name, which is asked itself.
func (c *ReconcileWatchCmd) gateways(lookup func(context.Context, string) ([]string, error), token func() (string, error)) func(context.Context) map[string]reconcile.Asker {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableCompression: true}} // not by way of a proxy
	return func(ctx context.Context) map[string]reconcile.Asker {
		now := map[string]reconcile.Asker{}
		for _, at := range c.Gateways {
			u, _ := url.Parse(at)
			hosts, err := lookup(ctx, u.Hostname())
			if err != nil || u.Scheme == "https" {
				hosts = []string{u.Hostname()}
			}
			for _, host := range hosts {
				one := *u
				one.Host = net.JoinHostPort(host, cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
				now[one.String()] = asking(client, one.String(), u.Host, token)
			}
		}
		return now
	}
}

// asking asks a gateway by its address. host is what it is called.
func asking(client *http.Client, at, host string, token func() (string, error)) reconcile.Asker {
	return func(ctx context.Context, q reconcile.Question) ([]byte, error) {
		request, err := watchRequest(ctx, strings.TrimSuffix(at, "/")+"/graphql", q)
		if err != nil {
			return nil, err
		}
		signed, err := token()
		if err != nil {
			return nil, err
		}
		request.Host = host
		request.Header.Set("Authorization", "Bearer "+signed)
		if q.Viewer != 0 {
			request.Header.Set("Kith-Viewer", q.Viewer.String())
		}
		answer, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxWatched))
		if err == nil && answer.StatusCode != http.StatusOK { // such as 401: it has another secret
			err = fmt.Errorf("%s: %s", answer.Status, text[:min(len(text), 300)])
		}
		return text, err
	}
}

// maxWatched is how many bytes of an answer are read: a question has shorter ones.
const maxWatched = 16 << 20

// tables answers from the tables, as a gateway without a cache.
func tables(store *sqlstore.Store, hidden *accounts.HiddenUsers, logger *slog.Logger) reconcile.Asker {
	root := &resolvers.Resolver{Store: store, HiddenUsers: hidden, Feeds: &social.Feeds{Shards: store.Shards}}
	handler := gateway.New(gateway.Config{Schema: new(ServeCmd).shape().schemas(root).Schema, PerRequest: root.Attach, Logger: logger})
	return func(ctx context.Context, q reconcile.Question) ([]byte, error) {
		if q.Viewer != 0 {
			ctx = identity.With(ctx, identity.Viewer{ID: q.Viewer})
		}
		request, err := watchRequest(ctx, "http://tables/graphql", q)
		if err != nil {
			return nil, err
		}
		answer := &recorded{header: http.Header{}}
		handler.ServeHTTP(answer, request)
		return answer.Bytes(), nil
	}
}

// recorded is an answer that stays in memory.
type recorded struct {
	bytes.Buffer
	header http.Header
}

func (r *recorded) Header() http.Header { return r.header }
func (*recorded) WriteHeader(int)       {}

func watchRequest(ctx context.Context, at string, q reconcile.Question) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{"query": q.Query, "variables": map[string][]string{"from": storage.Each(q.From, storage.UserID.String), "to": storage.Each(q.To, storage.UserID.String)}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json")
	}
	return request, err
}
