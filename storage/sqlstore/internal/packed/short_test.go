package packed

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/cache/idset"
)

// A list is read back as it was, whatever is asked for of its tombstones, and no other bytes are accepted.
func TestShortLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SampledFrom([]storage.Side{storage.Forward, storage.Inverse}).Draw(t, "side")
		const owner, since = 7, 100
		var edges []storage.Edge
		var peers []storage.UserID
		for _, id := range slices.Sorted(slices.Values(rapid.SliceOfNDistinct(rapid.Int64Range(1, 1<<63-1), 0, 2100, rapid.ID[int64]).Draw(t, "ids"))) {
			p := side.Pair(owner, storage.UserID(id))
			e := storage.Edge{
				From: p.From, To: p.To, Type: rapid.SampledFrom([]storage.EdgeType{storage.None, storage.Following, storage.Following, storage.Blocking}).Draw(t, "type"),
				UpdateTime: storage.Micros(rapid.Int64Range(since, since+1000).Draw(t, "time")),
			}
			if edges = append(edges, e); e.Type == storage.Following {
				peers = append(peers, storage.UserID(id))
			}
		}
		data := AppendShort(side, edges, since)
		q := storage.ListQuery{Owner: owner, EndedSince: storage.Micros(rapid.Int64Range(since, since+1100).Draw(t, "asked"))}
		want := slices.DeleteFunc(slices.Clone(edges), func(e storage.Edge) bool { return e.Type == storage.None && e.UpdateTime < q.EndedSince })
		count := int64(len(peers))
		got, err := ParseShort(side, q, count, data)
		must.That(t, err == nil && slices.Equal(got, want), "got %v, %v\nwant %v", got, err, want)
		if got, err := ParseShortPeers(count, data); err != nil || !slices.Equal(got, peers) {
			t.Fatalf("got %v, %v\nwant %v", got, err, peers)
		}
		broken := slices.Clone(data)
		broken[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		for what, of := range map[string]struct {
			data  []byte
			count int64
			since storage.Micros
		}{
			"broken": {broken, count, since}, "cut": {data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")], count, since},
			"another count": {data, count + 1, since}, "older tombstones": {data, count, since - 1},
		} {
			_, err := ParseShort(side, storage.ListQuery{Owner: owner, EndedSince: of.since}, of.count, of.data)
			check.That(t, err != nil, "%s: accepted", what)
			_, err = ParseShortPeers(of.count, of.data)
			check.That(t, err != nil || what == "older tombstones", "%s: its peers are accepted", what)
		}
	})
}

// Bytes with a right checksum may still be no list. None of them panics, or is read beyond its end.
func FuzzParseShort(f *testing.F) {
	f.Add(AppendShort(storage.Forward, []storage.Edge{
		{From: 7, To: 8, Type: storage.Following, UpdateTime: 5}, {From: 7, To: 9, Type: storage.Blocking, UpdateTime: 6}, {From: 7, To: 10, UpdateTime: 6},
	}, 3))
	f.Add([]byte{formShort, 0, 200, 1})
	f.Add([]byte{formShort, 0, 0, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, idset.Seal(slices.Clip(data))} {
			got, err := ParseShort(storage.Forward, storage.ListQuery{Owner: 7, EndedSince: 1 << 62}, 1, data)
			peers, errOfPeers := ParseShortPeers(1, data)
			if err == nil && len(got) < 1 || errOfPeers == nil && len(peers) != 1 {
				t.Errorf("%v, %v; %v, %v", got, err, peers, errOfPeers)
			}
		}
	})
}
