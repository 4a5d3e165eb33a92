package faults_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestMoves is the short schedule; see [TestLongMoves].
func TestMoves(t *testing.T) {
	t.Parallel()
	moves(t, schedule{operations: 400, connections: 8, users: 300, gatewayKills: 1, serverKills: 1, window: time.Second}, 3, 1)
}

// TestLongMoves adds a database on a second server to a store of one database. Half of the buckets are
// moved there, and some are moved back, while clients write through two gateways. The mover, gateways
// and both servers are killed at random times, movers and gateways stand still for longer than their leases, and each second mover
// has slow links: 50 seeds.
//
//	KITH_TEST_LONG=1 KITH_TEST_SEED=… go test ./internal/faults -run TestLongMoves -v
func TestLongMoves(t *testing.T) {
	testenv.Long(t)
	for range 50 {
		moves(t, schedule{operations: 1200, connections: 8, users: 300, gatewayKills: 1, serverKills: 2, pauses: 1, window: time.Second}, 8, 3)
	}
}

func moves(t *testing.T, s schedule, moverKills, moverPauses int) {
	testenv.NotOn(t, "a store on TiDB is one shard", "tidb")
	// TestMoversAreKilled of sqlstore moves a store without replicators.
	t.Run("binlog", func(t *testing.T) { t.Parallel(); s.runMoves(t, moverKills, moverPauses) })
}

// runMoves writes, moves and kills until everything is written and moved.
func (s schedule) runMoves(t *testing.T, moverKills, moverPauses int) {
	servers := ownServers(t)
	dsns := servers.FreshDatabases(t, 1)
	d := assemble(t, servers, dsns[:1], nil, "binlog", s.users)
	d.twoGateways("--no-replicate")
	d.replicators = []*node{d.replicating("kith replicate"), d.serving("replicator")}
	d.start(t)
	t.Cleanup(func() {
		for _, n := range d.nodes() {
			if l := n.now.Load(); l != nil && t.Failed() {
				t.Logf("%s says: %s", l.name, l.Stderr())
			}
		}
	})
	r := &running{schedule: s, deployment: d, seed: seedOf(t)}
	wait := r.write(t)
	m := &movers{deployment: d, add: dsns[1], slow: d.slowLocation(t), random: rand.New(rand.NewPCG(r.seed, 1<<33)), kills: moverKills, pauses: moverPauses}
	moved := make(chan struct{})
	go func() { defer close(moved); m.work(t) }()
	r.inject(t, r.faults())
	wait()
	<-moved
	if t.Failed() {
		return
	}

	d.grown(t, dsns[1])
	h := newHistory()
	for _, result := range r.results {
		must.OK(t, result.note(h))
	}
	r.failuresHaveReasons(t)
	r.quiet(t, h)
	r.allWell(t)
	found := r.tables(t) // every row is on the shard that owns it
	different := h.judge(t, found)
	r.countsAreExact(t)
	h.explain(t, found, different)
	if len(different) > 0 {
		t.Errorf("%d of %d edges differ, the first is %v; %s", len(different), len(found.forward), different[0], h.story(t, different[0]))
	}
	r.summarize(t, h, found, different, r.faults())
	t.Logf("the mover lived %d times, and was killed %d times, in the phases %v", m.lives, m.killed, m.phases)
}

// movers are the lives of `kith shards`, until all buckets are where they should be.
type movers struct {
	*deployment
	add    string
	slow   string // where the store is over slow links
	random *rand.Rand
	kills  int // how many are left
	pauses int // likewise

	lives, killed int
	phases        map[string]int // the phases in which movers were killed, as far as they had reported them
	said          string         // what the last mover that failed has printed
}

// status is what `kith shards status --output json` prints.
type status struct {
	Shards []struct{ Buckets int }
	Moves  []json.RawMessage
}

// work takes one step after another until there is none left.
func (m *movers) work(t *testing.T) {
	m.phases = map[string]int{}
	back := false
	for deadline := time.Now().Add(2 * patience); ; {
		if time.Now().After(deadline) {
			t.Errorf("the buckets have not been moved within %s; the last words of a mover: %s", 2*patience, m.said)
			return
		}
		s, ok := m.status(t)
		if !ok {
			time.Sleep(50 * time.Millisecond) // a server is down
			continue
		}
		switch {
		case len(s.Moves) > 0 && m.random.IntN(4) == 0:
			m.life(t, "shards", "abort")
		case len(s.Moves) > 0:
			m.life(t, "shards", "resume", "--keep", "2s")
		case len(s.Shards) == 1:
			m.life(t, "shards", "add", m.add)
		case s.Shards[1].Buckets == 0:
			m.life(t, m.next(s)...)
		case !back:
			back = m.life(t, m.next(s)...)
			back = back || s.Shards[1].Buckets < 512
		default:
			return
		}
	}
}

// status is false while a server is down.
func (m *movers) status(t *testing.T) (s status, ok bool) {
	end := m.command("shards", "status", "--output=json")(t).Wait(t)
	return s, end.Code == 0 && json.Unmarshal([]byte(end.Stdout), &s) == nil
}

// next is the move that comes next: first to the added shard, then some buckets back.
func (m *movers) next(s status) []string {
	if s.Shards[1].Buckets == 0 {
		return []string{"shards", "split", "--from", "0", "--to", "1", "--keep", "2s"}
	}
	return []string{"shards", "move", "--from", "1", "--to", "0", "--buckets", "700-800", "--keep", "2s"}
}

// life runs a command to its end, or kills it at some time before. It reports whether the command has
// done its work.
func (m *movers) life(t *testing.T, args ...string) bool {
	m.lives++
	if m.lives%2 == 0 {
		args = append(args, "--store", m.slow)
	}
	l := m.command(args...)(t)
	if m.pauses > 0 && m.random.IntN(2) == 0 && m.isAtWork(l) {
		m.pauses--
		return m.pauseMover(t, l)
	}
	if m.kills > 0 && !l.EndsWithin(time.Duration(m.random.IntN(2500))*time.Millisecond) {
		m.kills--
		m.killed++
		l.killed.Store(true)
		l.Kill(t)
		m.phases[phaseOf(l.Stderr())]++
		return false
	}
	end := l.Wait(t)
	if end.Code != 0 {
		m.said = strings.Join(args, " ") + ": " + end.Stderr
		time.Sleep(300 * time.Millisecond) // usually because the previous mover died less than 6 s ago
	}
	return end.Code == 0
}

// phaseOf is the last phase that a mover has reported.
func phaseOf(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	words := strings.Fields(lines[len(lines)-1])
	if i := slices.Index(words, "%,"); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return "the beginning"
}

// grown lets the test read both databases, by the present map of the store.
func (d *deployment) grown(t testing.TB, added string) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: d.location()})
	must.OK(t, err)
	defer store.Close()
	check.Equal(t, "moves that are left", store.Moves(), nil)
	now := storage.NewShardMap(1)
	now.Set(store.Map().Now())
	d.shardMap = now
	d.lookIn(t, added)
}

// `kith shards add` that is cut off from its server once the shard is listed says that it can be run again, and then it can.
func TestCutOffShardIsAddedAgain(t *testing.T) {
	t.Parallel()
	servers := testenv.SharedMariaDB(t, 1)
	dsns := servers.FreshDatabases(t, 2)
	way := testenv.NewLink(t, servers[0].Addr())
	for i := range dsns {
		dsns[i] = strings.Replace(dsns[i], servers[0].Addr(), way.Addr, 1)
	}
	run := kithtest.Args("shards", "add", dsns[1], "--store", "mysql:"+dsns[0])
	kithtest.Ends(t, 0, kithtest.Args("migrate", "--store", "mysql:"+dsns[0]))
	way.SilenceAt("INTO kith_shards")
	listed := way.SilenceAt("FROM kith_shards")
	command := kithtest.Launch(t, run)
	select {
	case <-listed:
	case <-time.After(patience):
		t.Fatalf("it has not read the list again: %s", command.Stderr())
	}
	way.Cut()
	command.Wait(t).Fails(t, "cut off", 1, "run the same command again")
	way.Mend(t)
	check.Has(t, "again", kithtest.Ends(t, 0, run).Stdout, " is shard 1.")
}
