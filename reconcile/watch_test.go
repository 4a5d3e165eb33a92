package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
)

// A gateway that does not answer is in the log once, and so is that it answers again: nothing else tells a wrong address.
func TestAGatewayThatDoesNotAnswerIsLogged(t *testing.T) {
	store := oracle.New()
	must.OK(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "ada", Name: "Ada"}})[0].Err)
	ctx, stop := context.WithCancel(t.Context())
	asked := 0
	ask := func(context.Context, reconcile.Question) ([]byte, error) {
		switch asked++; {
		case asked <= 8:
			return nil, errors.New("401 Unauthorized")
		case asked > 16:
			stop()
		}
		return []byte(`{"data":{"a":[]}}`), nil
	}
	var log strings.Builder
	watch := reconcile.NewWatch(reconcile.WatchConfig{
		Store: store, Gateways: func(context.Context) map[string]reconcile.Asker {
			return map[string]reconcile.Asker{"http://gateway:80": ask}
		}, Tables: ask,
		Hidden: func() []storage.UserID { return nil }, CPU: func() time.Duration { return 0 }, Share: 1,
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	must.OK(t, watch.Run(ctx))
	text := log.String()
	check.Equal(t, "how often it says that a gateway does not answer", strings.Count(text, "does not answer"), 1)
	check.Equal(t, "how often it says that a gateway answers again", strings.Count(text, "answers again"), 1)
	check.Has(t, "the log", text, "http://gateway:80", "401")
}
