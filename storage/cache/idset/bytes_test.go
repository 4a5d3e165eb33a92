package idset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

func timeless(ids []storage.UserID) []storage.Position {
	positions := make([]storage.Position, len(ids))
	for i, id := range ids {
		positions[i].Peer = id
	}
	return positions
}

func peersOf(positions []storage.Position) []storage.UserID {
	return storage.Each(positions, func(p storage.Position) storage.UserID { return p.Peer })
}

func drawChunk(t *rapid.T) []storage.Position {
	c, _ := drawUniverse(t, drawRandom(t), 1, ChunkSize)
	positions := timeless(c[:rapid.IntRange(1, min(len(c), ChunkSize)).Draw(t, "n")])
	times := rapid.SampledFrom([]*rapid.Generator[int64]{
		rapid.Int64(), rapid.Int64Range(1_700_000_000_000_000, 1_700_000_900_000_000), rapid.Just(int64(5)),
		rapid.Map(rapid.IntRange(0, 50), func(n int) int64 { return int64(n / 50 * 1_700_000_000) }), // few are far from the others
	}).Draw(t, "times")
	for i := range positions {
		positions[i].UpdateTime = storage.Micros(times.Draw(t, "time"))
	}
	return positions
}

// TestChunksAreReadBack, with their times and without, one after another.
func TestChunksAreReadBack(t *testing.T) {
	t.Parallel()
	properties.Check(t, 100, func(t *rapid.T) {
		first, second := drawChunk(t), drawChunk(t)
		one := AppendChunk(nil, first)
		both := AppendChunk(slices.Clone(one), second)
		got, rest, err := ParseChunk(first[:1:1], both)
		must.That(t, err == nil && slices.Equal(got[1:], first), "%v are read back as %v: %v", first, got, err)
		got, rest, err = ParseChunk(nil, rest)
		must.That(t, err == nil && len(rest) == 0 && slices.Equal(got, second), "%v are read back as %v and %d bytes: %v", second, got, len(rest), err)
		ids, err := ParsePeers(peersOf(first[:1]), one)
		must.That(t, err == nil && slices.Equal(ids[1:], peersOf(first)), "the peers of %v are read back as %v: %v", first, ids, err)
		ids, err = ParsePeers(nil, both)
		must.That(t, errors.Is(err, ErrMalformed) && ids == nil, "what is behind a chunk is not seen: %v", err)
	})
}

// TestDamagedBytesAreRefused cuts the sealed bytes at every place and flips every byte.
func TestDamagedBytesAreRefused(t *testing.T) {
	t.Parallel()
	data := Seal(AppendChunk(nil, timeless(flakeIDs(1000, rand.New(rand.NewPCG(8, 9))))))
	body, err := Unseal(data)
	must.That(t, err == nil && len(body) == len(data)-4, "%d bytes, %v", len(body), err)
	for i := range data {
		flipped := slices.Clone(data)
		flipped[i] ^= 1 << (i % 8)
		for _, bad := range [][]byte{data[:i], flipped, append(slices.Clone(data), data[i])} {
			body, err := Unseal(bad)
			must.That(t, errors.Is(err, ErrMalformed) && body == nil, "byte %d: %v", i, err)
		}
	}
}

// TestMalformedChunksAreRefused, and nothing of them is appended.
func TestMalformedChunksAreRefused(t *testing.T) {
	t.Parallel()
	time := make([]byte, 8)
	chunk := func(n, first uint64, packs ...byte) []byte {
		body := binary.AppendUvarint([]byte{formChunk}, n)
		body = binary.AppendUvarint(body, first)
		return append(append(body, time...), packs...)
	}
	ones := bytes.Repeat([]byte{0xff}, 8)
	for name, data := range map[string][]byte{
		"nothing":            {},
		"another form":       append([]byte{formChunk + 1}, chunk(1, 5, 0, 0)[1:]...),
		"no ids":             chunk(0, 5),
		"id 0":               chunk(1, 0, 0, 0),
		"too many ids":       chunk(ChunkSize+1, 5, make([]byte, 2*17)...),
		"id 2^63":            chunk(1, 1<<63, 0, 0),
		"id past 2^63":       chunk(2, math.MaxInt64, 0, 0),
		"65 bits":            chunk(1, 5, append([]byte{65}, make([]byte, 20)...)...),
		"distance overflows": chunk(1, 5, append(append([]byte{64}, ones...), 0)...),
		"a pack is cut off":  chunk(2, 5, 0, 8, 1),
		"no times":           chunk(1, 5, 0),
	} {
		got, _, err := ParseChunk(make([]storage.Position, 1), data)
		check.That(t, errors.Is(err, ErrMalformed) && len(got) == 1, "%s: %d positions, %v", name, len(got)-1, err)
		ids, err := ParsePeers(make([]storage.UserID, 1), data)
		check.That(t, errors.Is(err, ErrMalformed) && len(ids) == 1, "%s: %d peers, %v", name, len(ids)-1, err)
	}
	got, rest, err := ParseChunk(nil, chunk(2, math.MaxInt64-1, 0, 0))
	check.That(t, err == nil && len(rest) == 0 && got[1].Peer == math.MaxInt64, "the greatest id: %v, %v", got, err)
}

func FuzzParseChunk(f *testing.F) {
	f.Add(AppendChunk(nil, timeless([]storage.UserID{1, 2, 3, 1000, math.MaxInt64})))
	f.Add(AppendChunk(nil, timeless(denseIDs(ChunkSize))))
	f.Add(AppendChunk(nil, timeless(flakeIDs(300, rand.New(rand.NewPCG(1, 1))))))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, rest, err := ParseChunk(nil, data)
		ids, alone := ParsePeers(nil, data[:len(data)-len(rest)])
		if err != nil {
			must.That(t, errors.Is(err, ErrMalformed) && got == nil, "%v, %v", got, err)
			return
		}
		must.That(t, alone == nil && slices.Equal(ids, peersOf(got)), "%v without times are %v, %v", got, ids, alone)
		must.That(t, len(ids) != 0 && len(ids) <= ChunkSize && ids[0] >= 1 && slices.IsSorted(ids) && len(slices.Compact(slices.Clone(ids))) == len(ids), "%d", ids)
		again, rest, err := ParseChunk(nil, AppendChunk(nil, got))
		must.That(t, err == nil && len(rest) == 0 && slices.Equal(again, got), "%v are read back as %v: %v", got, again, err)
	})
}
