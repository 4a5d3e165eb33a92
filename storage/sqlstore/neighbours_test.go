package sqlstore

import (
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// A list whose text is too long to be trusted is read row by row, and the others as usual.
func TestNeighboursOfALongList(t *testing.T) {
	onBothEngines(t, checkLongNeighbours)
}

func checkLongNeighbours(t *testing.T, location string) {
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: location, StatementTimeout: time.Minute, OnStatement: seen.record})
	must.OK(t, err)
	defer s.Close()
	want := map[storage.UserID][]storage.UserID{1: nil, 2: {7}, 3: nil}
	var edges []storage.Edge
	for i := range storage.UserID(60_000) { // of 19 characters each
		want[1] = append(want[1], 6_000_000_000_000_000_000+i)
	}
	for from, list := range want {
		for i, to := range list {
			edges = append(edges, storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: storage.Micros(1 + i*7919%60_000)})
		}
	}
	for chunk := range slices.Chunk(edges, 10_000) {
		must.All(t, s.Apply(t.Context(), storage.Forward, chunk, storage.IfNewer))
	}
	seen.reset()
	owners := []storage.UserID{1, 2, 3}
	for i, r := range storage.NeighbourLookups[storage.Forward].Read(t.Context(), s, owners...) {
		check.That(t, r.Err == nil && slices.Equal(r.Value, want[owners[i]]), "list of %d: %d users, %v; want %d", owners[i], len(r.Value), r.Err, len(want[owners[i]]))
	}
	statements := 3 // those with counts, the one without, and the long list row by row
	if s.db.Dialect.ScansSubqueries {
		statements--
	}
	check.Equal(t, "statements", len(seen.statements), statements)
}
