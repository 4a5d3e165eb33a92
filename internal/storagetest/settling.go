package storagetest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// settling: users block, follow and befriend each other while the resulting rows travel to the
// other side late, more than once and out of order. Once all have arrived, with what follows from
// them, both sides are equal, there is no follow and no pending request between two users if one
// blocks the other, and every count is exact.
type settling struct{ *harness }

// A post propagates forward rows to their other sides.
type post struct {
	mu   sync.Mutex
	rows []storage.Row
}

// send takes rows in. Sometimes it also takes a row whose other side was already written.
func (p *post) send(random *rand.Rand, rows []storage.Written) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range rows {
		if !row.Inverse || random.IntN(4) == 0 {
			p.rows = append(p.rows, row.Row)
		}
	}
}

// take picks some rows of one side, in any order, and leaves some of them to be picked again.
func (p *post) take(random *rand.Rand, most int) (side storage.Side, edges []storage.Edge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rows) == 0 {
		return 0, nil
	}
	random.Shuffle(len(p.rows), func(i, j int) { p.rows[i], p.rows[j] = p.rows[j], p.rows[i] })
	side = p.rows[0].Side
	var left []storage.Row
	for _, row := range p.rows {
		taken := row.Side == side && len(edges) < most
		if taken {
			edges = append(edges, row.Edge)
		}
		if !taken || random.IntN(4) == 0 {
			left = append(left, row)
		}
	}
	p.rows = left
	return side, edges
}

func (s settling) OnceAllHasArrivedItFitsTogether(t *testing.T) {
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(32, seed))
		users := idsOf(s.newUsers(t, 2+int(seed%3)))
		box := &post{}
		for n := range 80 {
			s.step(t, random, box, users, n)
		}
		s.settle(t, random, box)
		s.wantSettled(t, users)
		must.That(t, !t.Failed(), "seed %d", seed)
	}
}

func (s settling) SoItDoesWhereManyActAtOnce(t *testing.T) {
	for seed := range uint64(3) {
		users := idsOf(s.newUsers(t, 3))
		box := &post{}
		together(func(worker int) {
			random := rand.New(rand.NewPCG(100+seed, uint64(worker)))
			for n := range 25 {
				s.step(t, random, box, users, n)
			}
		})
		s.settle(t, rand.New(rand.NewPCG(32, seed)), box)
		s.wantSettled(t, users)
	}
}

// step does something between two users, or delivers some rows.
func (s settling) step(t *testing.T, random *rand.Rand, box *post, users []storage.UserID, n int) {
	at := at(n + random.IntN(20) - 10) // gateways' clocks differ
	one, inverse := random.Perm(len(users)), random.IntN(3) == 0
	from, to := users[one[0]], users[one[1]]
	switch random.IntN(4) {
	case 0:
		change := anyChange(random, to, 0)
		change.At = at
		results := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: inverse})
		if noErrorsBut(t, storage.ErrForbidden, results, 1) {
			box.send(random, results[0].Value.Written())
		}
	case 1:
		act := storage.Pending + storage.EdgeType(random.IntN(int(storage.Removed)))
		o := briefly
		o.Inverse, o.Pause = inverse, 0
		got, err := Request(t.Context(), s.store, storage.Pair{From: from, To: to}, storage.EdgeChange{Type: act, At: at}, o)
		check.That(t, err == nil || errors.Is(err, storage.ErrForbidden) || errors.Is(err, storage.ErrNoEdge), "act %d: %v", act, err)
		box.send(random, got.Written())
	default:
		s.deliver(t, random, box, 1+random.IntN(3))
	}
}

// deliver applies some rows and sends the rows that follow from them.
func (s settling) deliver(t *testing.T, random *rand.Rand, box *post, most int) (delivered bool) {
	side, edges := box.take(random, most)
	if len(edges) == 0 {
		return false
	}
	results := s.store.Apply(t.Context(), side.Replica(), edges, storage.IfNewer)
	if !noErrors(t, results, len(edges)) {
		return false
	}
	for _, result := range results {
		box.send(random, result.Value.Also)
	}
	return true
}

// settle delivers until nothing is left. Repeated reports must come to an end.
func (s settling) settle(t *testing.T, random *rand.Rand, box *post) {
	t.Helper()
	for range 1000 {
		if !s.deliver(t, random, box, 5) {
			return
		}
	}
	t.Fatalf("rows are still on their way, such as %+v", box.rows[0])
}

func (s settling) wantSettled(t *testing.T, users []storage.UserID) {
	t.Helper()
	blocks := func(from, to storage.UserID) bool {
		return s.rowOf(t, storage.Forward, storage.Pair{From: from, To: to}).Type == storage.Blocking
	}
	for _, from := range users {
		for _, to := range users {
			pair := storage.Pair{From: from, To: to}
			for _, side := range []storage.Side{storage.Forward, storage.Requests} {
				wantEqual(t, side.Replica().String(), s.rowOf(t, side.Replica(), pair), s.rowOf(t, side, pair))
			}
			if !blocks(from, to) && !blocks(to, from) {
				continue
			}
			row := s.rowOf(t, storage.Forward, pair)
			check.That(t, row.Type != storage.Following, "%+v lives in spite of a block", row)
			row = s.rowOf(t, storage.Requests, pair)
			check.That(t, row.Type != storage.Pending, "the request %+v lives in spite of a block", row)
		}
		want, got := s.countedAmong(t, from, users), s.countsOf(t, from)
		got.Version = 0
		wantEqual(t, "counts", got, want)
	}
}
