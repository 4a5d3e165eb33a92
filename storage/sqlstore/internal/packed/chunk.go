package packed

import (
	"fmt"

	"kith/storage"
	"kith/storage/cache/idset"
)

// maxChunk is how many follows a chunk may have.
const maxChunk = idset.ChunkSize

// packChunk is the binary form of 1 to maxChunk follows, by ascending peer, with a
// checksum.
func packChunk(follows []storage.Position) []byte {
	return idset.Seal(idset.AppendChunk(nil, follows))
}

// parseChunk appends the follows of a chunk. The error wraps [idset.ErrMalformed]; then
// nothing is appended.
func parseChunk(to []storage.Position, data []byte) ([]storage.Position, error) {
	body, err := idset.Unseal(data)
	if err != nil {
		return to, err
	}
	all, rest, err := idset.ParseChunk(to, body)
	if err == nil && len(rest) > 0 {
		return to, fmt.Errorf("%w: %d bytes too many", idset.ErrMalformed, len(rest))
	}
	return all, err
}

// parsePeers appends the peers of a chunk, without looking at their times. The error is as
// parseChunk's.
func parsePeers(to []storage.UserID, data []byte) ([]storage.UserID, error) {
	body, err := idset.Unseal(data)
	if err != nil {
		return to, err
	}
	return idset.ParsePeers(to, body)
}
