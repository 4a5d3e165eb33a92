package idset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// ErrMalformed: the bytes are not of the expected form, or not complete.
var ErrMalformed = errors.New("malformed id set")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal appends the CRC-32C of all bytes, big-endian.
func Seal(data []byte) []byte {
	return binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// Unseal checks and removes what [Seal] has appended. The error wraps [ErrMalformed].
func Unseal(data []byte) ([]byte, error) {
	body := len(data) - 4
	if body < 0 || binary.BigEndian.Uint32(data[body:]) != crc32.Checksum(data[:body], castagnoli) {
		return nil, fmt.Errorf("%w: the checksum of %d bytes is wrong", ErrMalformed, len(data))
	}
	return data[:body], nil
}

// packSize is how many numbers are packed in one width.
const packSize = 128

// appendPack packs up to packSize numbers: a byte with the width of the widest in bits, then each
// number in that many bits, from the lowest bit of the first byte on.
func appendPack(to []byte, values []uint64) []byte {
	var all uint64
	for _, v := range values {
		all |= v
	}
	width := bits.Len64(all)
	to = append(to, byte(width))
	word, used := uint64(0), 0 // what is not written yet, and how many bits it has
	for _, v := range values {
		word |= v << used
		if used += width; used >= 64 {
			to = binary.LittleEndian.AppendUint64(to, word)
			used -= 64
			word = v >> (width - used) // 0 if all of it is written
		}
	}
	for ; used > 0; used -= 8 {
		to = append(to, byte(word))
		word >>= 8
	}
	return to
}

// scanner reads a binary form. It keeps its first error; everything read after that is 0.
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

func (s *scanner) byte() byte {
	b := s.bytes(1)
	if s.err != nil {
		return 0
	}
	return b[0]
}

// fixed reads 8 bytes.
func (s *scanner) fixed() uint64 {
	b := s.bytes(8)
	if s.err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
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

// number reads a uvarint no greater than most.
func (s *scanner) number(most uint64) uint64 {
	n, size := binary.Uvarint(s.left)
	if size <= 0 || n > most {
		s.fail("a number is cut off or greater than %d", most)
		return 0
	}
	s.left = s.left[size:]
	return n
}

// unpack reads as many numbers as values has, which appendPack wrote.
func (s *scanner) unpack(values []uint64) {
	width := s.width()
	at := s.left // also beyond the pack: 9 bytes are read at once if there are that many
	s.bytes((len(values)*width + 7) / 8)
	if s.err != nil {
		clear(values)
		return
	}
	mask := uint64(1)<<width - 1
	bit := 0
	for i := range values {
		from, shift := at[bit/8:], bit%8
		if len(from) < 9 {
			from = append(make([]byte, 0, 16), from...)[:9]
		}
		values[i] = (binary.LittleEndian.Uint64(from)>>shift | uint64(from[8])<<(64-shift)) & mask
		bit += width
	}
}

func (s *scanner) width() int {
	width := int(s.byte())
	if width > 64 {
		s.fail("%d bits a number", width)
		return 0
	}
	return width
}

// end returns the first error, or an error if bytes are left.
func (s *scanner) end() error {
	if s.err == nil && len(s.left) > 0 {
		s.fail("%d bytes too many", len(s.left))
	}
	return s.err
}
