package idset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// ErrMalformed: bytes are not what they are taken for, or not whole.
var ErrMalformed = errors.New("malformed id set")

// The first byte of each binary form tells what it is and in which version. What has
// been stored is read for ever: a change of the layout takes a new number.
const (
	formChunk    = 0xC1 // ids
	formSet      = 0xC2 // chunks of ids
	formStretch  = 0xC3 // positions
	formTimeline = 0xC4 // stretches of positions
)

// ChunkSize is the most ids a chunk, or positions a stretch, may have in binary form.
const ChunkSize = 2048

// packSize is how many numbers are packed with one width.
const packSize = 128

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts the checksum of what has been written since start behind it.
func seal(to []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(to, crc32.Checksum(to[start:], castagnoli))
}

// appendPack packs up to packSize numbers: a byte with the width of the widest in bits,
// then each in that many bits, from the lowest bit of the first byte on.
func appendPack(to []byte, values []uint64) []byte {
	var all uint64
	for _, v := range values {
		all |= v
	}
	var words [packSize]uint64
	c := column{width: uint8(bits.Len64(all)), words: words[:]}
	for i, v := range values {
		c.put(i, v)
	}
	to = append(to, c.width)
	size := packBytes(len(values), c.width)
	for i := 0; i < size; i++ {
		to = append(to, byte(words[i/8]>>(i%8*8)))
	}
	return to
}

func packBytes(n int, width uint8) int { return (n*int(width) + 7) / 8 }

// scanner reads a binary form. Its first error stays, and everything behind it is 0.
type scanner struct {
	left []byte
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	s.left = nil
}

// unseal begins to read a form of one kind that ends with a checksum.
func unseal(data []byte, form byte) *scanner {
	s := &scanner{}
	switch {
	case len(data) < 5 || data[0] != form:
		s.fail("%d bytes do not begin with %#x", len(data), form)
	case binary.LittleEndian.Uint32(data[len(data)-4:]) != crc32.Checksum(data[:len(data)-4], castagnoli):
		s.fail("the checksum is wrong")
	default:
		s.left = data[1 : len(data)-4]
	}
	return s
}

func (s *scanner) byte() byte {
	b := s.bytes(1)
	if s.err != nil {
		return 0
	}
	return b[0]
}

func (s *scanner) bytes(n int) []byte {
	if n > len(s.left) {
		s.fail("it is cut off")
		return nil
	}
	b := s.left[:n]
	s.left = s.left[n:]
	return b
}

// number reads a uvarint of at most so much.
func (s *scanner) number(most uint64) uint64 {
	n, size := binary.Uvarint(s.left)
	if size <= 0 || n > most {
		s.fail("a number is cut off or greater than %d", most)
		return 0
	}
	s.left = s.left[size:]
	return n
}

// unpack reads what appendPack wrote of so many numbers.
func (s *scanner) unpack(values []uint64) {
	width := s.byte()
	if width > 64 {
		s.fail("%d bits a number", width)
	}
	packed := s.bytes(packBytes(len(values), width))
	if s.err != nil {
		return
	}
	var words [packSize]uint64
	for i, b := range packed {
		words[i/8] |= uint64(b) << (i % 8 * 8)
	}
	c := column{width: width, words: words[:]}
	for i := range values {
		values[i] = c.at(i)
	}
}

// end tells the first error, or that something is left.
func (s *scanner) end() error {
	if s.err == nil && len(s.left) > 0 {
		s.fail("%d bytes too many", len(s.left))
	}
	return s.err
}
