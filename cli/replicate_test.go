package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) {
	if os.Getenv("KITH_TEST_PROGRAM") != "" { // this process is the program: see TestShellsComplete
		os.Exit(Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	testenv.Main(m)
}

// replicate runs `kith replicate` until the context is done.
func replicate(ctx context.Context, store *sqlstore.Store, arguments ...string) error {
	var program struct {
		Settings
		Replicate ReplicateCmd `cmd:""`
	}
	parser, err := kong.New(&program, Vars, kong.Writers(io.Discard, io.Discard),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(store))
	if err != nil {
		return err
	}
	k, err := parser.Parse(append([]string{"replicate"}, arguments...))
	if err != nil {
		return err
	}
	if err := program.Check(); err != nil {
		return err
	}
	k.Bind(&program.Settings)
	program.noteTold(k)
	if err := program.Replicate.Prepare(&program.Settings, k); err != nil {
		return err
	}
	if err := program.join(ctx, store); err != nil {
		return err
	}
	return k.Run()
}

func TestReplicateCommand(t *testing.T) {
	testenv.NeedsBinlog(t)
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)
	location := "mysql:" + strings.Join(dsns, ";")
	store := opened.Store(t, sqlstore.Config{Location: location})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	addr := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- replicate(ctx, store, "--store", location, "--admin-addr", addr) }()

	edge := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}
	must.All(t, store.Apply(t.Context(), storage.Forward, []storage.Edge{edge}, storage.IfNewer))
	must.OKSoon(t, func() error {
		r := storage.EdgeLookups[storage.Inverse].Read(t.Context(), store, edge.Pair())[0]
		if r.Value != edge {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	must.OKSoon(t, func() error {
		answer, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), `"ready":true,"checks":[{"name":"replication","ok":true,`) ||
			strings.Count(string(body), `"state":"tailing"`) != 1 {
			return fmt.Errorf("%s: %s, %v", answer.Status, body, err)
		}
		return nil
	})
	answer, err := http.Get("http://" + addr + "/metrics")
	must.OK(t, err)
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); !strings.Contains(string(text), "kith_replication_lag_seconds{") || strings.Contains(string(text), "kith_cache_enabled") {
		t.Errorf("no lag among the metrics, or a cache, which a replicator has not:\n%s", text)
	}
	cancel()
	err = <-ended
	check.That(t, err == nil, "%v", err)
}

func TestReplicateIsForBinlog(t *testing.T) {
	err := replicate(t.Context(), nil, "--redundancy", "sync")
	check.That(t, err != nil && strings.Contains(err.Error(), "--redundancy"), "%v", err)
}
