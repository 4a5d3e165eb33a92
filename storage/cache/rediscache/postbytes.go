package rediscache

import (
	"encoding/binary"

	"kith/storage"
	"kith/storage/cache/packing"
)

// A post is one value:
//
//	byte     'V'
//	8 bytes  the version of post_counts, big-endian; 0 if there is no such post
//	8 bytes  the stamp of the author under which it was stored
//	bytes    the post, see [packing.AppendPost]
//
// If there is no value, a mark may say what is known: 'M', 8 bytes with the lowest version that the
// post must have, and then the stamp, and the token of the look-up that is filling it.
//
// The stamp of an author is 8 random bytes under a key of its own. Posts that were stored under
// another stamp, or whose author has none any more, do not count: so one command removes all posts
// of an author.
const (
	stampLength = 8
	postHead    = 9 + stampLength
)

// parsePost reads a value. It returns the zero post if the value says that there is none.
func parsePost(id storage.PostID, value string) (storage.Post, error) {
	if len(value) <= postHead {
		return storage.Post{}, errMalformed
	}
	return packing.ParsePost(id, value[postHead:], int64(binary.BigEndian.Uint64([]byte(value[1:9]))))
}
