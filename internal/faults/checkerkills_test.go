package faults_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
	"kith/reconcile"
	"kith/storage"
)

// TestKilledCheckers kills the commands that reconcile again and again (kill -9), under load, at random
// moments and while they work. In the end nothing is skipped. See [TestLongKilledCheckers].
func TestKilledCheckers(t *testing.T) {
	t.Parallel()
	checkersAreKilled(t, killing{data: testgraph.Generate(t, smallest), damages: 100, scan: 3 * time.Second, perSecond: 100, fullLives: 2, lives: 3})
}

// TestLongKilledCheckers is the same with more than a million edges, 1,000
// damages, 200 writes a second, and more kills.
//
//	KITH_TEST_LONG=1 KITH_TEST_SEED=… go test ./internal/faults -run TestLongKilledCheckers -v
func TestLongKilledCheckers(t *testing.T) {
	testenv.Long(t)
	testgraph.Each(t, testgraph.Large, "ego-twitter", func(t *testing.T, g testgraph.Graph) {
		checkersAreKilled(t, killing{data: g, damages: 1000, scan: 20 * time.Second, perSecond: 200, fullLives: 12, lives: 40})
	})
}

// killing says how much there is to find, and how often the process that looks for it is killed.
type killing struct {
	data      testgraph.Graph // for full scans
	damages   int
	scan      time.Duration // about how long a full scan is to take
	perSecond int
	fullLives int // of full scans, before one may finish
	lives     int // of the modes that read logs
}

func checkersAreKilled(t *testing.T, k killing) {
	tests := map[string]func(*testing.T, killing){"full": killedFull}
	if k.data.Generated && testenv.HasBinlog() { // these modes see only what is written, so one small graph is enough
		tests["incremental"], tests["realtime"] = killedIncremental, killedRealtime
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// all is longer than any list of findings can be.
const all = "1000000"

// A repair that was killed, and then finishes, leaves no damage. In package reconcile, dry runs are cut into pieces.
func killedFull(t *testing.T, k killing) {
	g := loadGraph(t, testenv.SharedMariaDB(t, 2), k.data)
	// Pauses make the scan take as long on fast machines as on slow ones.
	load := g.scan(t, reconcile.FullConfig{}).Seconds / k.scan.Seconds()
	args := []string{"full", "--repair", "--output=json", "--list", all, "--window", "300ms", "--max-load", strconv.FormatFloat(load, 'f', 6, 64)}
	damaged := g.vandal(t, 22, storage.Inverse).damageInverse(k.damages)
	stop := g.load(t, k.perSecond)
	c := g.checker(t)
	work := func() func() bool { return c.work(t, damaged) }
	c.manyLives(t, k.fullLives, k.scan/2, work, args...)
	for tries := 0; !c.canGoOn(t); tries++ { // the last life may have finished, or may not have come far
		must.Most(t, "tries to kill a scan in its middle", tries, 5)
		c.oneLife(t, k.scan, func() bool { return c.canGoOn(t) }, args...)
	}
	left := g.differ(t, damaged)
	end := c.toItsEnd(t, 0, append(args, "--max-load=1")...) // nobody kills it, so it need not take long
	n := stop()
	r := reportOf(t, end)
	t.Logf("killed %d times, then %d rows differed still; the last run took %v; %d writes meanwhile", c.kills, left, end.Took.Round(time.Millisecond), n)
	check.That(t, r.Resumed, "the last run began anew")
	exactly(t, "after a killed repair", g.scan(t, reconcile.FullConfig{}), nil)
	g.whole(t)
}

// work returns a function that reports whether a full scan has saved its progress, or repaired
// anything, since work was called.
func (c *checker) work(t testing.TB, damaged []trace) func() bool {
	t.Helper()
	saved := func() string {
		value, _, err := c.LoadCheckpoint(t.Context(), "reconcile/full")
		must.OK(t, err)
		return string(value)
	}
	before, left := saved(), c.differ(t, damaged)
	return func() bool { return saved() != before || c.differ(t, damaged) < left }
}

// canGoOn reports whether a killed scan has left a checkpoint to continue from.
func (c *checker) canGoOn(t testing.TB) bool {
	t.Helper()
	_, found, err := c.LoadCheckpoint(t.Context(), "reconcile/full")
	must.OK(t, err)
	return found
}

// After many killed dry runs, the last one finds exactly the differences. After many killed repairs,
// the last one has repaired them.
func killedIncremental(t *testing.T, k killing) {
	g := loadGraph(t, testenv.SharedMariaDB(t, 2), testgraph.Generate(t, smallest))
	d, c := driftOf(t, g), g.checker(t)
	dryRun := []string{"incremental", "--output=json", "--list", all, "--window", "200ms"}
	repair := append(slices.Clone(dryRun), "--repair")
	c.toItsEnd(t, 0, dryRun...) // it begins here
	const span = 500 * time.Millisecond

	d.lose(t) // so every run has to wait for its window
	stop := d.load(t, k.perSecond)
	c.manyLives(t, k.lives, span, nil, dryRun...)
	n := stop()
	damaged := g.differing(t)
	t.Logf("%d edges of %d writes differ; dry runs were killed %d times", len(damaged), n, c.kills)
	exactly(t, "after killed dry runs", reportOf(t, c.toItsEnd(t, 1, dryRun...)), damaged)

	stop = d.load(t, k.perSecond)
	c.manyLives(t, k.lives, span, func() func() bool { return d.loss(t) }, repair...)
	n = stop()
	left := len(g.differing(t))
	t.Logf("%d writes; killed %d times, dry runs included, and %d edges still differed then", n, c.kills, left)
	c.toItsEnd(t, 0, repair...)
	g.whole(t)
}

// Each run repairs what killed runs before it have left. The incremental mode repairs what was too much
// for one run.
func killedRealtime(t *testing.T, k killing) {
	g := loadGraph(t, testenv.SharedMariaDB(t, 2), testgraph.Generate(t, smallest))
	d, c := driftOf(t, g), g.checker(t)
	// The mode saves its position every second. With lives and windows of about that length, positions
	// are saved while edges are waiting.
	realtime := []string{"realtime", "--window", "1s"}
	const span = 2500 * time.Millisecond
	c.toItsEnd(t, 0, "incremental")
	d.watched(t, c, realtime)
	c.toItsEnd(t, 0, "incremental", "--window", "200ms", "--repair") // repairs what was lost before

	stop := d.load(t, k.perSecond)
	c.manyLives(t, k.lives*2/3, span, func() func() bool { return d.loss(t) }, realtime...)
	n := stop()
	damaged := g.differing(t)
	last := c.start(t, realtime...)
	last.Until(t, "repair of all that killed lives have left", func() bool { return g.differ(t, damaged) == 0 })
	last.Kill(t)
	t.Logf("%d writes; killed %d times, and %d edges differed then", n, c.kills, len(damaged))
	g.whole(t)

	stop = d.load(t, k.perSecond)
	for range 3 {
		c.oneLife(t, span/2, nil, append(realtime, "--max-pending", "3")...)
	}
	n = stop()
	left := len(g.differing(t))
	t.Logf("with room for 3 edges, %d of %d writes were left", left, n)
	check.Least(t, "findings that were left to the incremental mode", left, 1)
	c.toItsEnd(t, 0, "incremental", "--window", "200ms", "--repair")
	g.whole(t)
}

// loss makes an edge that is missing on the inverse side, and returns a function that reports whether
// it exists there.
func (d *drift) loss(t testing.TB) func() bool {
	t.Helper()
	lost := d.lose(t)
	return func() bool { return d.repaired(t, lost) }
}

// watched makes the realtime mode continue from the present end of the logs.
func (d *drift) watched(t testing.TB, c *checker, realtime []string) {
	t.Helper()
	command := c.start(t, realtime...)
	defer command.Kill(t)
	lost := d.lose(t)
	again := time.Now()
	command.Until(t, "its first repair", func() bool {
		if time.Since(again) > 2*time.Second { // it does not see what was written before it began to watch
			lost, again = d.lose(t), time.Now()
		}
		return d.repaired(t, lost)
	})
}

// repaired reports whether an edge that was lost exists again.
func (g *graph) repaired(t testing.TB, e storage.Edge) bool {
	t.Helper()
	r := storage.EdgeLookups[storage.Inverse].Read(t.Context(), g, e.Pair())[0]
	must.OK(t, r.Err)
	return r.Found && r.Value == e
}
