package idset

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
)

// TestBinaryFormsAreReadBack writes with one directory and reads with another.
func TestBinaryFormsAreReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		random := drawRandom(t)
		c, d := drawCrowd(t, random, 10, 10_000)
		ids := drawSome(t, c, random, "share")
		data := AppendSet(nil, Build(d, ids))
		other := NewDirectory()
		s, err := ParseSet(other, data, len(ids))
		if err != nil || !slices.Equal(s.IDs(), ids) {
			t.Fatalf("%d ids are read back as others: %v", len(ids), err)
		}
		if len(ids) > 0 {
			if _, err := ParseSet(other, data, len(ids)-1); !errors.Is(err, ErrMalformed) {
				t.Fatalf("more users than expected: %v", err)
			}
		}
		list := drawPositions(t, c, random)
		data = AppendTimeline(nil, BuildTimeline(d, list))
		line, err := ParseTimeline(other, data, len(list))
		if err != nil || !slices.Equal(everything(line), list) {
			t.Fatalf("%d positions are read back as others: %v", len(list), err)
		}
	})
}

// TestBinaryFormsStayAsTheyAre: what is stored must be read by every later version.
func TestBinaryFormsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	ids := []storage.UserID{1, 2, 3, 1000, math.MaxInt64}
	flakes := make([]storage.UserID, 40)
	for i := range flakes {
		flakes[i] = storage.UserID(1000*i+7)<<24 | storage.UserID(1024+i%2)
	}
	d := NewDirectory()
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"chunk":     {AppendChunk(nil, ids), storedChunk},
		"flakes":    {AppendChunk(nil, flakes[:34]), storedFlakes},
		"set":       {AppendSet(nil, Build(d, ids)), storedSet},
		"empty set": {AppendSet(nil, Build(d, nil)), "c200"},
		"timeline":  {AppendTimeline(nil, BuildTimeline(d, []storage.Position{{UpdateTime: 9, Peer: 5}, {UpdateTime: 9, Peer: 4}, {UpdateTime: 1, Peer: 6}})), storedTimeline},
	} {
		if got := hex.EncodeToString(c.data); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestMalformedFormsAreRefused cuts and flips every byte of each form, and writes forms
// that only their contents give away.
func TestMalformedFormsAreRefused(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8, 9))
	c := flakeIDs(5000, random)
	d := NewDirectory()
	positions := make([]storage.Position, 3000)
	for i := range positions {
		positions[i] = storage.Position{UpdateTime: storage.Micros(5000 - i), Peer: c[i]}
	}
	set, line := AppendSet(nil, Build(d, c[:3000])), AppendTimeline(nil, BuildTimeline(d, positions))
	for name, data := range map[string][]byte{"set": set, "list": line} {
		for i := range data {
			flipped := slices.Clone(data)
			flipped[i] ^= 1 << (i % 8)
			for _, bad := range [][]byte{data[:i], flipped, append(slices.Clone(data), data[i])} {
				if err := refusal(name, bad); !errors.Is(err, ErrMalformed) {
					t.Fatalf("%s, byte %d: %v", name, i, err)
				}
			}
		}
	}
	for name, body := range map[string][]byte{
		"no ids":             {formChunk, 0, 0, 5},
		"id 0":               {formChunk, 1, 0, 0},
		"too many ids":       binary.AppendUvarint([]byte{formChunk}, ChunkSize+1),
		"17 makers":          append([]byte{formChunk, 1, 17}, make([]byte, 40)...),
		"makers disordered":  {formChunk, 1, 2, 5, 0, 5, 0, 1},
		"id 2^63":            binary.AppendUvarint([]byte{formChunk, 1, 0}, 1<<63),
		"id past 2^63":       append(binary.AppendUvarint([]byte{formChunk, 2, 0}, math.MaxInt64), 0),
		"65 bits":            append([]byte{formChunk, 2, 0, 1, 65}, make([]byte, 9)...),
		"distance overflows": append([]byte{formChunk, 2, 0, 1, 64}, bytes.Repeat([]byte{0xff}, 8)...),
		"bytes left":         {formChunk, 1, 0, 5, 0},
	} {
		if ids, err := ParseChunk(c[:1:1], checked(body)); !errors.Is(err, ErrMalformed) || len(ids) != 1 {
			t.Errorf("%s: %d ids, %v", name, len(ids)-1, err)
		}
	}
	for name, body := range map[string][]byte{
		"no positions":   {formStretch, 0, 0, 5, 5},
		"twice the same": {formStretch, 2, 0, 5, 5, 0, 0},
		"user 0":         {formStretch, 1, 0, 5, 0, 0, 0},
		"negative time":  {formStretch, 1, 0, 5, 5, 3, 7, 0},
		"out of order":   {formStretch, 2, 0, 5, 5, 0, 1, 2}, // of the same time, the greater id second
	} {
		if got, err := ParseStretch(nil, checked(body)); !errors.Is(err, ErrMalformed) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	one := AppendChunk(nil, []storage.UserID{5})
	twice := []byte{formSet, 2}
	for range 2 {
		twice = append(append(twice, byte(len(one))), one...)
	}
	if _, err := ParseSet(d, twice, 10); !errors.Is(err, ErrMalformed) {
		t.Errorf("a set with the same chunk twice: %v", err)
	}
}

// refusal is the error of reading something into a directory, which must stay as it is.
func refusal(form string, data []byte) error {
	d := NewDirectory()
	var err error
	if form == "set" {
		_, err = ParseSet(d, data, 1<<20)
	} else {
		_, err = ParseTimeline(d, data, 1<<20)
	}
	if d.Len() != 0 {
		return errors.New("the directory has learned of somebody")
	}
	return err
}

// checked puts the right checksum behind.
func checked(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

func FuzzParseChunk(f *testing.F) {
	f.Add(AppendChunk(nil, []storage.UserID{1, 2, 3, 1000, math.MaxInt64}))
	f.Add(AppendChunk(nil, denseIDs(ChunkSize)))
	f.Add(AppendChunk(nil, flakeIDs(300, rand.New(rand.NewPCG(1, 1)))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, rechecked(data)} {
			ids, err := ParseChunk(nil, data)
			if err != nil {
				if !errors.Is(err, ErrMalformed) || ids != nil {
					t.Fatal(ids, err)
				}
				continue
			}
			if len(ids) == 0 || len(ids) > ChunkSize || ids[0] < 1 || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
				t.Fatalf("%d", ids)
			}
			if again, err := ParseChunk(nil, AppendChunk(nil, ids)); err != nil || !slices.Equal(again, ids) {
				t.Fatalf("%d are read back as %d: %v", ids, again, err)
			}
		}
	})
}

func FuzzParseStretch(f *testing.F) {
	list := make([]storage.Position, 200)
	for i := range list {
		list[i] = storage.Position{UpdateTime: storage.Micros(1000 - i/2*3), Peer: storage.UserID(500 - i)}
	}
	f.Add(AppendStretch(nil, list))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, rechecked(data)} {
			got, err := ParseStretch(nil, data)
			if err != nil {
				if !errors.Is(err, ErrMalformed) || got != nil {
					t.Fatal(got, err)
				}
				continue
			}
			if len(got) == 0 || len(got) > ChunkSize || !slices.IsSortedFunc(got, storage.Position.Compare) {
				t.Fatalf("%v", got)
			}
			if again, err := ParseStretch(nil, AppendStretch(nil, got)); err != nil || !slices.Equal(again, got) {
				t.Fatalf("%v are read back as %v: %v", got, again, err)
			}
		}
	})
}

// FuzzParseSet also puts right checksums into the frames, so that the fuzzer comes to
// what lies behind them.
func FuzzParseSet(f *testing.F) {
	d := NewDirectory()
	f.Add(AppendSet(nil, Build(d, nil)))
	f.Add(AppendSet(nil, Build(d, []storage.UserID{1, 2, 3, 1000, math.MaxInt64})))
	f.Add(AppendSet(nil, Build(d, denseIDs(3*ChunkSize))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, reframed(data)} {
			const most = 10_000
			d := NewDirectory()
			s, err := ParseSet(d, data, most)
			if err != nil {
				if !errors.Is(err, ErrMalformed) || d.Len() != 0 {
					t.Fatal(d.Len(), err)
				}
				continue
			}
			if s.Len() > most || s.Len() != len(s.IDs()) {
				t.Fatalf("%d users, %d yielded", s.Len(), len(s.IDs()))
			}
			if again, err := ParseSet(NewDirectory(), AppendSet(nil, s), most); err != nil || !slices.Equal(again.IDs(), s.IDs()) {
				t.Fatalf("%d are read back as others: %v", s.IDs(), err)
			}
		}
	})
}

func rechecked(data []byte) []byte {
	if len(data) < 4 {
		return data
	}
	return checked(slices.Clone(data[:len(data)-4]))
}

func reframed(data []byte) []byte {
	if len(data) == 0 {
		return data
	}
	out := slices.Clone(data)
	rest := out[1:]
	_, size := binary.Uvarint(rest)
	if size <= 0 {
		return out
	}
	for rest = rest[size:]; len(rest) > 0; {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			break
		}
		frame := rest[size : size+int(n)]
		if n >= 4 {
			binary.LittleEndian.PutUint32(frame[n-4:], crc32.Checksum(frame[:n-4], castagnoli))
		}
		rest = rest[size+int(n):]
	}
	return out
}
