package reconcile_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/files/exporter"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/reconcile"
	"kith/social"
	"kith/storage"
)

// A user who was made by hand with the id of a deleted one keeps a handle and cannot be exported. It is found, once, and deleted as
// others are: its edges end.
func TestAUserWithTheIDOfADeletedOneIsDeletedAgain(t *testing.T) {
	for name, graphOf := range map[string]func(*testing.T) *graph{
		"two files": func(t *testing.T) *graph { return newGraph(t, 5, 2, 20, 100) },
		"two MariaDB databases": func(t *testing.T) *graph {
			dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)
			return newGraphOn(t, 5, "mysql", dsns, dsns, 20, 100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graphOf(t)
			again, gone := g.apart[0], g.apart[1]
			hidden := accounts.NewHiddenUsers(g, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
			relations := social.NewRelations(social.Relations{Store: g, Redundancy: rulesOnly{}, HiddenUsers: hidden})
			states := &accounts.States{Store: g, Relations: relations, HiddenUsers: hidden, Now: time.Now}
			complete, err := states.Delete(t.Context(), gone)
			must.That(t, err == nil && complete, "%t, %v", complete, err)
			follow := storage.Edge{From: again, To: g.apart[2], Type: storage.Following, UpdateTime: 5}
			g.writeBoth(follow)
			g.exec(again, "INSERT INTO user_states (user_id, state, changed_at) VALUES (?, 3, 7)", int64(again))
			err = export(t, g)
			must.That(t, err != nil && strings.Contains(err.Error(), "damaged"), "exported: %v", err)

			// With a thing's id, it is only named: its deletion would end the thing's edges.
			thing := storage.Foreign(5)
			g.exec(thing, "INSERT INTO users (user_id, handle, name, created_at, updated_at) VALUES (?, 'thing', '', 1, 1)", int64(thing))
			damage := []trace{{kind: reconcile.Forbidden, user: again, pair: storage.Pair{From: again, To: again}}, {kind: reconcile.Forbidden, user: thing, pair: storage.Pair{From: thing, To: thing}}}
			sameTraces(t, scan(t, quick(g)).Findings, damage)
			cfg := quick(g)
			cfg.Repair = true
			r := scan(t, cfg)
			sameTraces(t, r.Findings, damage)
			check.Equal(t, "what is left", r.Left(), 1)
			check.Has(t, "what is found", r.Findings[1].String(), "user 4611686018427387909: it has the id of thing 5")
			g.exec(thing, "DELETE FROM users WHERE user_id = ?", int64(thing))
			check.Is(t, "an export", export(t, g), nil)
			sweep := &accounts.Sweeper{States: states, Leaser: g, Shards: g.Shards, Logger: slog.New(slog.DiscardHandler)}
			states.Now = func() time.Time { return time.Now().Add(time.Minute) } // it has been left for long
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			must.OK(t, hidden.Refresh(ctx))
			go sweep.Run(ctx)
			must.Soon(t, "the user is deleted", func() bool { return !storage.UserLookups.Read(ctx, g, again)[0].Found })
			check.Equal(t, "followers that are left", storage.CountLookups.Read(ctx, g, g.apart[2:3]...)[0].Value.Follower, 0)
			g.nothingIsFound()
			check.Is(t, "an export after the deletion", export(t, g), nil)
		})
	}
}

// rulesOnly is a redundancy mode in which only the rules write to other shards.
type rulesOnly struct{}

func (rulesOnly) Inline() bool                                       { return true }
func (rulesOnly) Propagate(context.Context, []storage.Written) error { return nil }

func export(t *testing.T, g *graph) error {
	e, err := exporter.Open(exporter.Config{Dir: filepath.Join(t.TempDir(), "copy")})
	if err == nil {
		defer e.Close()
		_, err = e.Run(t.Context(), g)
	}
	return err
}
