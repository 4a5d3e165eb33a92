package packed

import (
	"kith/internal/must"
	"kith/storage"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The binary form returns what was encoded, and no other bytes are accepted.
func TestPackedChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64(), rapid.Int64Range(1_700_000_000_000_000, 1_700_000_900_000_000), rapid.Just(int64(5))}).Draw(t, "times")
		ids := rapid.SliceOfNDistinct(rapid.Int64Range(1, 1<<63-1), 1, maxChunk, rapid.ID[int64]).Draw(t, "ids")
		slices.Sort(ids)
		var follows []storage.Position
		for _, id := range ids {
			follows = append(follows, storage.Position{UpdateTime: storage.Micros(times.Draw(t, "time")), Peer: storage.UserID(id)})
		}
		data := packChunk(follows)
		got, err := parseChunk(nil, data)
		must.That(t, err == nil && slices.Equal(got, follows), "got %v, %v\nwant %v", got, err, follows)
		broken := slices.Clone(data)
		broken[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		for _, data := range [][]byte{broken, data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")]} {
			got, err := parseChunk(nil, data)
			must.That(t, err != nil && len(got) == 0, "%d follows of a broken chunk, %v", len(got), err)
		}
	})
}
