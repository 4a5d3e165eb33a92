package idset

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"kith/storage"
)

// AppendStretch appends the binary form of 1 to [ChunkSize] positions, newest first,
// each once, of times that are not negative. O(n).
//
//	byte     0xC3
//	uvarint  n
//	byte     m, how many makers of ids there are; then m × 2 bytes
//	uvarint  the first time
//	uvarint  the smallest id, shortened
//	packs of 128: how much older than the one before (0 for the first), a width and bits;
//	         how far each shortened id is from the smallest, likewise
//	4 bytes  CRC-32C of all before
func AppendStretch(to []byte, positions []storage.Position) []byte {
	if len(positions) == 0 || len(positions) > ChunkSize {
		panic(fmt.Sprintf("idset: a stretch of %d positions", len(positions)))
	}
	start := len(to)
	ids := make([]storage.UserID, len(positions))
	least := storage.UserID(math.MaxInt64)
	for i, p := range positions {
		ids[i] = p.Peer
		least = min(least, p.Peer)
	}
	m := makersOf(ids)
	to = append(to, formStretch)
	to = binary.AppendUvarint(to, uint64(len(positions)))
	to = m.append(to)
	last, base := positions[0].UpdateTime, m.shorten(least)
	to = binary.AppendUvarint(to, uint64(last))
	to = binary.AppendUvarint(to, base)
	var older, people [packSize]uint64
	for len(positions) > 0 {
		n := min(packSize, len(positions))
		for i, p := range positions[:n] {
			older[i], last = uint64(last-p.UpdateTime), p.UpdateTime
			people[i] = m.shorten(p.Peer) - base
		}
		to = appendPack(to, older[:n])
		to = appendPack(to, people[:n])
		positions = positions[n:]
	}
	return seal(to, start)
}

// ParseStretch appends the positions of a stretch to a slice. The error wraps
// [ErrMalformed]; then nothing is appended. O(n).
func ParseStretch(to []storage.Position, data []byte) ([]storage.Position, error) {
	s := unseal(data, formStretch)
	left := int(s.number(ChunkSize))
	m := s.makers()
	time, base := s.number(math.MaxInt64), s.number(m.most())
	if left == 0 {
		s.fail("no positions")
	}
	all := to
	var older, people [packSize]uint64
	for left > 0 && s.err == nil {
		n := min(packSize, left)
		s.unpack(older[:n])
		s.unpack(people[:n])
		for i := 0; i < n && s.err == nil; i++ {
			if older[i] > time || people[i] > m.most()-base {
				s.fail("a time or an id is out of bounds")
				break
			}
			time -= older[i]
			p := storage.Position{UpdateTime: storage.Micros(time), Peer: m.restore(base + people[i])}
			if p.Peer == 0 || len(all) > len(to) && all[len(all)-1].Compare(p) >= 0 {
				s.fail("positions are out of order, or of user 0")
			}
			all = append(all, p)
		}
		left -= n
	}
	if err := s.end(); err != nil {
		return to, err
	}
	return all, nil
}

// Stretches yields the positions newest first, [ChunkSize] at a time. The slice is used
// again.
func (t *Timeline) Stretches() iter.Seq[[]storage.Position] {
	return func(yield func([]storage.Position) bool) {
		r := t.reader()
		stretch := make([]storage.Position, 0, min(t.n, ChunkSize))
		for p := r.end(); (place{}).less(p); {
			p = r.previous(p)
			if stretch = append(stretch, r.at(p)); len(stretch) == ChunkSize {
				if !yield(stretch) {
					return
				}
				stretch = stretch[:0]
			}
		}
		if len(stretch) > 0 {
			yield(stretch)
		}
	}
}

// AppendTimeline appends the binary form of a list: byte 0xC4, uvarint Len, and the
// stretches, newest first, each with its length in bytes as a uvarint before it. O(n).
func AppendTimeline(to []byte, t *Timeline) []byte {
	to = append(to, formTimeline)
	to = binary.AppendUvarint(to, uint64(t.n))
	var one []byte
	for positions := range t.Stretches() {
		one = AppendStretch(one[:0], positions)
		to = binary.AppendUvarint(to, uint64(len(one)))
		to = append(to, one...)
	}
	return to
}

// ParseTimeline reads a list of at most so many positions. The error wraps
// [ErrMalformed]; then the directory has not learned of anybody. O(n).
func ParseTimeline(dir *Directory, data []byte, most int) (*Timeline, error) {
	n, err := walkTimeline(data, most, func([]storage.Position) {})
	if err != nil {
		return nil, fmt.Errorf("read a list of %d bytes: %w", len(data), err)
	}
	all := make([]storage.Position, 0, n)
	if _, err := walkTimeline(data, most, func(part []storage.Position) { all = append(all, part...) }); err != nil {
		return nil, fmt.Errorf("read a list of %d bytes: %w", len(data), err)
	}
	return BuildTimeline(dir, all), nil
}

// walkTimeline visits the stretches, as walkSet does chunks.
func walkTimeline(data []byte, most int, visit func([]storage.Position)) (int, error) {
	s, n := unframe(data, formTimeline, most)
	found := 0
	var last storage.Position
	var part []storage.Position
	for len(s.left) > 0 && s.err == nil {
		var err error
		if part, err = ParseStretch(part[:0], s.frame()); err != nil {
			return 0, err
		}
		if found > 0 && last.Compare(part[0]) >= 0 {
			s.fail("stretches are out of order")
		}
		if found += len(part); found > n {
			s.fail("more than the %d positions it tells of", n)
		}
		last = part[len(part)-1]
		visit(part)
	}
	if s.err == nil && found != n {
		s.fail("%d of %d positions", found, n)
	}
	return n, s.err
}
