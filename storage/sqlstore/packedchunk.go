package sqlstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"

	"kith/storage"
	"kith/storage/idset"
)

// maxChunk is how many follows a chunk may have.
const maxChunk = idset.ChunkSize

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errChunk = errors.New("a packed chunk is malformed")
)

// appendChunk appends the binary form of 1 to maxChunk follows, by ascending peer: 6 bytes
// each for dense ids and times of some days.
//
//	uvarint  the length of the peers; then these, see [idset.AppendChunk]
//	8 bytes  the least time, big-endian
//	byte     w, 0 … 8
//	n times  the distance from it, in w bytes, little-endian
//	4 bytes  CRC-32C of all before, big-endian
func appendChunk(to []byte, follows []storage.Position) []byte {
	start := len(to)
	peers := make([]storage.UserID, len(follows))
	least, most := follows[0].UpdateTime, follows[0].UpdateTime
	for i, f := range follows {
		peers[i] = f.Peer
		least, most = min(least, f.UpdateTime), max(most, f.UpdateTime)
	}
	chunk := idset.AppendChunk(nil, peers)
	to = binary.AppendUvarint(to, uint64(len(chunk)))
	to = append(to, chunk...)
	to = binary.BigEndian.AppendUint64(to, uint64(least))
	width := (bits.Len64(uint64(most)-uint64(least)) + 7) / 8
	to = append(to, byte(width))
	for _, f := range follows {
		distance := uint64(f.UpdateTime) - uint64(least) // may wrap, and wraps back
		for range width {
			to = append(to, byte(distance))
			distance >>= 8
		}
	}
	return binary.BigEndian.AppendUint32(to, crc32.Checksum(to[start:], castagnoli))
}

// openChunk checks the sum of a chunk and takes the peers and the times apart. The error
// wraps errChunk.
func openChunk(data []byte) (peers, times []byte, err error) {
	body := len(data) - 4
	if body < 0 || crc32.Checksum(data[:body], castagnoli) != binary.BigEndian.Uint32(data[body:]) {
		return nil, nil, fmt.Errorf("%w: its sum is wrong", errChunk)
	}
	length, n := binary.Uvarint(data)
	rest := data[max(n, 0):body]
	if n <= 0 || length > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("%w: it is cut off", errChunk)
	}
	return rest[:length], rest[length:], nil
}

// parsePeers appends the peers of a chunk, without looking at their times. The error wraps
// errChunk; then nothing is appended.
func parsePeers(to []storage.UserID, data []byte) ([]storage.UserID, error) {
	peers, _, err := openChunk(data)
	if err != nil {
		return to, err
	}
	return unpackPeers(to, peers)
}

func unpackPeers(to []storage.UserID, peers []byte) ([]storage.UserID, error) {
	all, err := idset.ParseChunk(to, peers)
	if err != nil {
		return to, fmt.Errorf("%w: %w", errChunk, err)
	}
	return all, nil
}

// parseChunk appends the follows of a chunk. The error wraps errChunk; then nothing is
// appended. peers is room to work in, and given back.
func parseChunk(to []storage.Position, peers []storage.UserID, data []byte) ([]storage.Position, []storage.UserID, error) {
	packed, rest, err := openChunk(data)
	if err != nil {
		return to, peers, err
	}
	if peers, err = unpackPeers(peers[:0], packed); err != nil {
		return to, peers, err
	}
	if len(rest) < 9 || rest[8] > 8 || len(rest) != 9+len(peers)*int(rest[8]) {
		return to, peers, fmt.Errorf("%w: %d peers have not as many times", errChunk, len(peers))
	}
	least, width, times := binary.BigEndian.Uint64(rest), int(rest[8]), rest[9:]
	for i, peer := range peers {
		var distance uint64
		for j, b := range times[i*width : (i+1)*width] {
			distance |= uint64(b) << (8 * j)
		}
		to = append(to, storage.Position{UpdateTime: storage.Micros(least + distance), Peer: peer})
	}
	return to, peers, nil
}
