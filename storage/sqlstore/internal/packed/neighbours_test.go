package packed

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/sqlstore/internal/db"
)

// Parts may come in any order. Parts that do not fit are refused, even if their number is right.
func TestPackedPeersFit(t *testing.T) {
	edge := func(peer storage.UserID, kind storage.EdgeType) storage.Edge {
		return storage.Edge{From: 100, To: peer, Type: kind}
	}
	for name, test := range map[string]struct {
		parts peers
		want  []storage.UserID // nil: they do not fit
	}{
		"nothing":                {peers{}, []storage.UserID{}},
		"chunks":                 {peers{parts: parts{count: 3}, ids: []storage.UserID{1, 2, 9}}, []storage.UserID{1, 2, 9}},
		"chunks in disorder":     {peers{parts: parts{count: 3}, ids: []storage.UserID{9, 1, 2}}, []storage.UserID{1, 2, 9}},
		"a change":               {peers{parts: parts{count: 2, changed: []storage.Edge{edge(2, storage.None)}}, ids: []storage.UserID{1, 2, 9}}, []storage.UserID{1, 9}},
		"two changes":            {peers{parts: parts{count: 4, changed: []storage.Edge{edge(1, storage.Following), edge(9, storage.Following)}}, ids: []storage.UserID{2, 4}}, []storage.UserID{1, 2, 4, 9}},
		"changes that are there": {peers{parts: parts{count: 2, changed: []storage.Edge{edge(2, storage.Following), edge(5, storage.None)}}, ids: []storage.UserID{1, 2}}, []storage.UserID{1, 2}},
		"changes alone":          {peers{parts: parts{count: 1, changed: []storage.Edge{edge(5, storage.Following)}}}, []storage.UserID{5}},
		"too many":               {peers{parts: parts{count: 2}, ids: []storage.UserID{1, 2, 9}}, nil},
		"too few":                {peers{parts: parts{count: 4}, ids: []storage.UserID{1, 2, 9}}, nil},
		"one twice":              {peers{parts: parts{count: 3}, ids: []storage.UserID{1, 1, 9}}, nil},
		"a broken chunk":         {peers{parts: parts{count: 1}, ids: []storage.UserID{1}, err: idset.ErrMalformed}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.parts.list()
			fits := test.want != nil
			check.That(t, fits == (err == nil) && (!fits || slices.Equal(got, test.want)), "got %v, %v; want %v", got, err, test.want)
		})
	}
}

// A list may be on a shard that has been added since it was asked for.
func TestNeighboursAreReadFromAShardThatIsNew(t *testing.T) {
	d, err := db.Open(t.Context(), db.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "a.db"), StatementTimeout: time.Minute})
	must.OK(t, err)
	defer d.Close()
	lists := New(d)
	defer lists.Close()
	results := lists.neighbours(t.Context(), storage.Forward, []storage.UserID{1}, func(storage.UserID) int {
		added, err := d.Add(t.Context(), filepath.Join(t.TempDir(), "b.db"))
		must.OK(t, err)
		return added
	})
	check.That(t, len(results) == 1 && results[0].Err == nil && !results[0].Found, "%+v", results)
}
