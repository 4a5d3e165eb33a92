package faults_test

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// Pauses are longer than the leases of movers and replicators, which have 6 s, and of gateways, which have 10 s. The long
// ones are also longer than those of ids, a minute.
const (
	pauseTime     = 11 * time.Second
	longPauseTime = 65 * time.Second
)

// pause lets a process stand still for longer than its leases (SIGSTOP). Others have taken its work when it goes on.
func (r *running) pause(n *node, random *rand.Rand) fault {
	length := pauseTime
	if testenv.AllTests() {
		length += time.Duration(random.Int64N(int64(longPauseTime - pauseTime)))
	}
	var stopped *life
	var from time.Time
	return fault{
		name: n.name + " paused",
		begin: func(t testing.TB) {
			r.slow.Store(true)
			from = time.Now()
			stopped = n.now.Swap(nil) // clients ask others from now on
			stopped.wasWell(t)
			stopped.Signal(syscall.SIGSTOP)
		},
		repair: func(testing.TB) {
			time.Sleep(time.Until(from.Add(length)))
			stopped.Signal(syscall.SIGCONT)
			r.outages = append(r.outages, outage{from, time.Now()})
			n.now.Store(stopped)
			r.slow.Store(false)
		},
	}
}

// Slow links are those on which a neighbour's transaction takes 16 s: for longer than nothing may arrive.
const (
	linkSpeed      = 512 << 10 // bytes a second
	neighbourBytes = 16 * linkSpeed
)

// slowLocation is that of the store over slow links to its servers.
func (d *deployment) slowLocation(t testing.TB) string {
	t.Helper()
	at := d.location()
	for _, s := range d.servers {
		at = strings.ReplaceAll(at, s.Addr(), testenv.SlowLink(t, s.Addr(), linkSpeed))
	}
	return at
}

// linkSlowly gives the first gateway and the replicators of the mode binlog slow links to the servers, if the schedule has
// neighbours. The second gateway is as near to them as before.
func (r *running) linkSlowly(t testing.TB) {
	t.Helper()
	if r.neighbours == 0 {
		return
	}
	at := r.slowLocation(t)
	r.gateways[0].kill(t)
	r.gateways[0] = r.serving("gateway 0", "--no-replicate", "--store", at)
	if r.mode == "binlog" {
		for _, n := range r.replicators {
			n.kill(t)
		}
		r.replicators = []*node{r.replicating("kith replicate", "--store", at), r.serving("replicator", "--store", at)}
	}
	for _, n := range r.nodes() {
		if n.now.Load() == nil {
			n.start(t)
		}
	}
}

// neighbour writes a large transaction into a database of a server that is not the store's.
func (r *running) neighbour(s *testenv.MariaDBServer) fault {
	return fault{
		name: "neighbour",
		begin: func(t testing.TB) {
			s.Exec(t, "CREATE DATABASE IF NOT EXISTS neighbour")
			db := s.Open(t, "neighbour")
			_, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS files (id INT AUTO_INCREMENT PRIMARY KEY, content MEDIUMBLOB)")
			must.OK(t, err)
			tx, err := db.BeginTx(t.Context(), nil)
			must.OK(t, err)
			const row = 64 << 10
			for range neighbourBytes / row {
				_, err := tx.ExecContext(t.Context(), "INSERT INTO files (content) VALUES (REPEAT('x', ?))", row)
				must.OK(t, err)
			}
			must.OK(t, tx.Commit())
		},
		repair: func(testing.TB) {},
	}
}

// isAtWork waits until a mover has come to where it is to stand still: half of them while buckets move, most of which time it
// waits to switch, or while it keeps the rows that it is about to remove, and the others at any time. It returns false if the mover
// ends before.
func (m *movers) isAtWork(l *life) bool {
	states := []string{"state >= 0", "state IN (1, 4)", "state = 3", "state >= 0"}[m.random.IntN(4)] // leaving or arriving; left
	for !l.EndsWithin(5 * time.Millisecond) {
		var there int
		err := m.shards[0].QueryRow("SELECT COUNT(*) FROM kith_buckets WHERE " + states).Scan(&there)
		if err == nil && there > 0 {
			return !l.EndsWithin(time.Duration(m.random.IntN(1500)) * time.Millisecond)
		}
	}
	return false
}

// pauseMover lets a mover stand still for longer than its lease, lets another one take its moves up, or take them back and begin
// the same again, and then lets it go on beside that one. It reports whether the first has done its work.
func (m *movers) pauseMover(t *testing.T, l *life) bool {
	l.Signal(syscall.SIGSTOP)
	time.Sleep(pauseTime)
	args := []string{"shards", "resume", "--keep", "2s"}
	if m.random.IntN(2) == 0 {
		m.command("shards", "abort")(t).Wait(t) // it fails if the move is decided
		if s, ok := m.status(t); ok && len(s.Moves) == 0 && len(s.Shards) > 1 {
			args = m.next(s)
		}
	}
	other := m.command(args...)(t)
	other.EndsWithin(time.Duration(m.random.IntN(3000)) * time.Millisecond)
	l.Signal(syscall.SIGCONT)
	m.phases["paused in "+phaseOf(l.Stderr())]++
	end := l.Wait(t)
	if also := other.Wait(t); end.Code != 0 && also.Code != 0 {
		m.said = strings.Join(args, " ") + ": " + also.Stderr
	}
	return end.Code == 0
}

// clockSkew is how many seconds the clocks of processes are ahead or behind: less than the 30 s that a token may seem to be of
// the future.
const clockSkew = 25

// skewClocks sets the clocks of the processes forward and back in turn.
func (r *running) skewClocks(t testing.TB) {
	t.Helper()
	if !r.skewed {
		return
	}
	ahead := kithtest.Skewed(t)
	for i, n := range r.nodes() {
		n.kill(t)
		n.options = ahead(clockSkew - i%2*2*clockSkew)
		n.start(t)
	}
}
