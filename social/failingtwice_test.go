package social

import (
	"errors"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A list that a filter names twice, and of which a range is also read, is read once. So an error of that read is the
// error of the answer.
func TestAListThatIsNamedTwiceIsReadOnce(t *testing.T) {
	store := oracle.New()
	var edges []storage.Edge
	for to := storage.UserID(100); to < 110; to++ {
		edges = append(edges, storage.Edge{From: 1, To: to, Type: storage.Following, UpdateTime: 1})
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	one := Filter{On: []List{{storage.Forward, 1}}}
	query := PeopleQuery{Filter: Filter{Any: []Filter{one, one}}, First: 3}
	for good, reads := 0, 2; good < 3; good++ {
		f := &failing{Answerer: store, good: good, bad: 1}
		g := New(f, 4, nil)
		g.sizes.firstLook, g.sizes.packedFrom = 1, 1000
		page, err := g.People(t.Context(), query)
		hasFailed := good < reads
		check.That(t, hasFailed == errors.Is(err, errRead) && (hasFailed || len(page.IDs) > 0 && f.reads == reads), "read %d fails: %d reads, %+v, %v", good+1, f.reads, page, err)
	}
}
