package rediscache

import (
	"encoding/binary"

	"kith/storage"
)

// A post is one value:
//
//	byte     'V'
//	8 bytes  the version of post_counts, big-endian; 0 if there is no such post
//	8 bytes  the stamp of the author under which it was stored
//	byte     1 if there is such a post; otherwise 0, and no more
//	varints  when it was published, when it was edited, comments, favorites
//	text     after its length, as all texts here
//	uvarint  how many media there are; then for each its kind, its name and its URL
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

func appendPost(to []byte, p storage.Post) []byte {
	if p.Number == 0 {
		return append(to, 0)
	}
	to = append(to, 1)
	for _, n := range [...]int64{int64(p.CreatedAt), int64(p.EditedAt), p.Counts.Comments, p.Counts.Favorites} {
		to = binary.AppendVarint(to, n)
	}
	to = appendText(to, p.Text)
	to = binary.AppendUvarint(to, uint64(len(p.Media)))
	for _, m := range p.Media {
		to = append(to, byte(m.Kind))
		to = appendText(appendText(to, m.Name), m.URL)
	}
	return to
}

// parsePost reads a value; the zero post if it says that there is none.
func parsePost(id storage.PostID, value string) (storage.Post, error) {
	if len(value) <= postHead {
		return storage.Post{}, errMalformed
	}
	r := decoder{left: value[postHead:]}
	switch r.byte() {
	case 0:
		return storage.Post{}, r.end()
	case 1:
	default:
		return storage.Post{}, errMalformed
	}
	p := storage.Post{PostID: id}
	p.CreatedAt, p.EditedAt = storage.Micros(r.varint()), storage.Micros(r.varint())
	p.Counts = storage.PostCounts{
		Comments: r.varint(), Favorites: r.varint(), Version: int64(binary.BigEndian.Uint64([]byte(value[1:9]))),
	}
	p.Text = r.text()
	n := r.uvarint()
	if n > storage.MaxMedia {
		return storage.Post{}, errMalformed
	}
	for range n {
		p.Media = append(p.Media, storage.Media{Kind: storage.MediaKind(r.byte()), Name: r.text(), URL: r.text()})
	}
	if r.end() != nil {
		return storage.Post{}, errMalformed
	}
	return p, nil
}
