package faults_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/expected"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
	"kith/reconcile"
	"kith/storage"
)

// smallest is a graph that is gone over again and again while it is written to: 400 users with some 4,000 edges.
var smallest = testgraph.Shape{Users: 400, Least: 2, Seed: 1}

// TestLongDamageIsFoundAndRepaired damages a graph without the store and the binlogs noticing. A full
// scan finds exactly that damage while others write, and repairs it. Then all known facts about the
// graph are asked for again over GraphQL. There are more than a million edges, 1,000 damages and 200 writes a second.
//
// With fewer, package reconcile asks for the same: of damage in TestFullFindsExactlyTheDamageAndRepairsIt, beside writers in
// TestWritersMakeNoFindings.
func TestLongDamageIsFoundAndRepaired(t *testing.T) {
	testenv.Long(t)
	testgraph.Each(t, testgraph.Large, "ego-twitter", damageIsFoundAndRepaired)
}

func damageIsFoundAndRepaired(t *testing.T, data testgraph.Graph) {
	const damages, perSecond = 1000, 200
	g := loadGraph(t, testenv.SharedMariaDB(t, 2), data)
	answers := expected.Of(t, data)
	// A gateway that replicates would propagate the damage.
	gateway := kithtest.Start(t, kithtest.Args("--store", g.location(), "--no-replicate", "--statement-timeout=30s", "--request-timeout=60s"))
	before := g.rows(t, storage.Forward)
	damaged := g.vandal(t, 20, storage.Inverse).damageInverse(damages)
	kinds := map[reconcile.Kind]int{}
	for _, d := range damaged {
		kinds[d.kind]++
	}
	wrong := answers.WrongPairs(t, gateway)
	t.Logf("%d damages: %v; %d of %d expected answers about pairs are wrong", len(damaged), kinds, wrong, len(answers.Pairs))
	check.Least(t, "damages that show in the expected answers", wrong, 1)

	stop := g.load(t, perSecond)
	began := time.Now()
	r := g.scan(t, reconcile.FullConfig{})
	t.Logf("dry run: %.1f s, %d and %d rows, %d of %d groups read", r.Seconds, r.Rows[0], r.Rows[1], r.GroupsRead, r.Groups)
	exactly(t, "a dry run", r, damaged)

	r, runs := g.scanInPieces(t)
	t.Logf("in %d pieces: %.1f s", runs, r.Seconds)
	exactly(t, "a dry run in pieces", r, damaged)

	r = g.scan(t, reconcile.FullConfig{Repair: true})
	exactly(t, "the repair", r, damaged)
	check.Equal(t, "what is left", r.Left(), 0)
	exactly(t, "after the repair", g.scan(t, reconcile.FullConfig{}), nil)
	took := time.Since(began).Seconds()
	n := stop()
	t.Logf("%d writes meanwhile, %.0f/s", n, float64(n)/took)
	check.Least(t, "writes in a second", float64(n)/took, perSecond/10.0)
	g.whole(t)
	check.That(t, slices.Equal(ofData(g.rows(t, storage.Inverse)), before), "follower is not the graph of the file any more")
	g.takeBack(t)
	// Other processes hear of the last of it after those who have written it.
	until(t, "the gateway has heard that the load's edges are gone", func() bool { return answers.WrongPairs(t, gateway) == 0 })
	answers.Hold(t, gateway)

	g.vandal(t, 21, storage.Forward).damageForward(damages / 2)
	after := allowed(g.rows(t, storage.Forward))
	if r = g.scan(t, reconcile.FullConfig{Repair: true}); r.Left() != 0 || r.Total() < damages/2 {
		t.Errorf("of the forward side: %d found, %d left", r.Total(), r.Left())
	}
	left := slices.DeleteFunc(g.rows(t, storage.Forward), func(e storage.Edge) bool { return e.Type == storage.None })
	check.That(t, slices.Equal(left, after), "the repair has changed the forward side, and not only ended follows that a block forbids")
	g.whole(t)
}

// scan is a full scan without pauses.
func (g *graph) scan(t testing.TB, cfg reconcile.FullConfig) reconcile.Report {
	t.Helper()
	r, err := reconcile.Full(t.Context(), g.fullConfig(cfg))
	must.OK(t, err)
	return r
}

func (g *graph) fullConfig(cfg reconcile.FullConfig) reconcile.FullConfig {
	cfg.Store, cfg.MaxLoad, cfg.Window = g.Store, 1, time.Second
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// scanInPieces stops a dry run again and again, at random points, and continues it.
func (g *graph) scanInPieces(t testing.TB) (r reconcile.Report, runs int) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 5))
	for runs = 1; ; runs++ {
		must.Most(t, "runs until the scan comes to its end", runs, 500)
		ctx, cancel := context.WithCancel(t.Context())
		left := 1 + random.IntN(30)
		cfg := g.fullConfig(reconcile.FullConfig{Owners: len(g.users) / 15, SaveEvery: time.Nanosecond})
		cfg.OnProgress = func(reconcile.Progress) {
			if left--; left == 0 {
				cancel()
			}
		}
		r, err := reconcile.Full(ctx, cfg)
		cancel()
		switch {
		case err == nil && runs < 3:
			t.Errorf("the scan was ended %d times only", runs-1)
			fallthrough
		case err == nil:
			return r, runs
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		}
	}
}
