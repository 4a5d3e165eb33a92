package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/reconcile"
	"kith/storage/sqlstore"
)

// A watch is given gateways, not where they answer GraphQL: there nothing would ever be answered.
func TestWatchedAddresses(t *testing.T) {
	for at, isGood := range map[string]bool{
		"http://10.0.0.5:8080": true, "https://example.org/kith": true,
		"10.0.0.5:8080": false, "http://10.0.0.5:8080/graphql": false,
	} {
		err := (&ReconcileWatchCmd{Gateways: []string{at}}).Validate()
		check.That(t, (err == nil) == isGood, "%s: %v", at, err)
	}
}

// TestAllGatewaysOfANameAreAsked: each by its own address, called as it was given, as long as the name leads to it.
func TestAllGatewaysOfANameAreAsked(t *testing.T) {
	serve := func(at string) string {
		listener, err := net.Listen("tcp", at)
		must.OK(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, at, " ", r.Host, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", len(body) > 0)
		})}}
		server.Start()
		t.Cleanup(server.Close)
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		return port
	}
	port := serve("127.0.0.1:0")
	serve("127.0.0.2:" + port)
	var addresses []string
	lookup := func(_ context.Context, host string) ([]string, error) {
		if host != "gateways" {
			return nil, errors.New("no such host")
		}
		return addresses, nil
	}
	c := &ReconcileWatchCmd{Gateways: []string{"http://gateways:" + port}}
	gateways := c.gateways(lookup, func() (string, error) { return "token", nil })
	for _, addresses = range [][]string{{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2"}, {"127.0.0.1"}} {
		now := gateways(t.Context())
		check.That(t, len(now) == len(addresses), "%v: %v", addresses, slices.Collect(maps.Keys(now)))
		for _, address := range addresses {
			answer, err := now["http://"+address+":"+port](t.Context(), reconcile.Question{Query: "{ x }"})
			at := map[string]string{"127.0.0.1": "127.0.0.1:0", "127.0.0.2": "127.0.0.2:" + port}[address]
			want := at + " gateways:" + port + " /graphql Bearer token true"
			check.That(t, err == nil && string(answer) == want, "%s: %s, %v; want %s", address, answer, err, want)
		}
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who is this?", http.StatusUnauthorized) }))
	defer refusing.Close()
	c.Gateways = []string{refusing.URL}
	for _, ask := range gateways(t.Context()) {
		_, err := ask(t.Context(), reconcile.Question{Query: "{ x }"})
		check.That(t, err != nil && err.Error() == "401 Unauthorized: who is this?\n", "a gateway that refuses the token: %v", err)
	}
	c.Gateways = []string{"https://gateways", "http://unknown", "http://[::1]:8080"}
	want := []string{"http://[::1]:8080", "http://unknown:80", "https://gateways:443"}
	check.Equal(t, "the gateways", slices.Sorted(maps.Keys(gateways(t.Context()))), want)
}

// TestAnEmptyStoreIsAudited: gateways are asked about a user whom it might have, so that an auditor with nothing to do is none that is idle.
func TestAnEmptyStoreIsAudited(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), StatementTimeout: 30 * time.Second})
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	ask := tables(store, hidden, slog.New(slog.DiscardHandler))
	registry := prometheus.NewRegistry()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	compared := func() (kinds int) {
		for of, n := range metered.All(t, registry) {
			if strings.HasPrefix(of, "kith_audit_compared_total ") && n > 0 {
				kinds++
			}
		}
		return kinds
	}
	rounds := 0
	watch := reconcile.NewWatch(reconcile.WatchConfig{
		Store: store, Tables: ask, Hidden: hidden.IDs, Window: time.Second, CPU: func() time.Duration { return 0 }, Share: 1, Metrics: registry, Logger: slog.Default(),
		Gateways: func(context.Context) map[string]reconcile.Asker {
			if rounds++; rounds == 3 {
				stop()
			}
			return map[string]reconcile.Asker{"a": ask}
		},
	})
	if err := watch.Run(ctx); err != nil || compared() != 4 {
		t.Errorf("%d kinds of answers are compared, %v", compared(), err)
	}
}
