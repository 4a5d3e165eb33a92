package wire

import (
	"encoding/binary"

	"kith/storage"
)

// AppendPost appends
//
//	byte     1 if there is such a post; otherwise 0, and no more
//	varints  when it was published, when it was edited, comments, favorites
//	text     after its length, as all texts here
//	uvarint  how many media there are; then for each its kind, its name and its URL
//	         the attributes, as the rest
func AppendPost(to []byte, p storage.Post) []byte {
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
	return append(to, p.Attributes...)
}

// ParsePost reads what AppendPost has written, with the version of the post's counts; the zero post if the value says that
// there is none. The texts are parts of the given one.
func ParsePost(id storage.PostID, value string, version int64) (storage.Post, error) {
	r := NewDecoder(value)
	switch r.Byte() {
	case 0:
		return storage.Post{}, r.End()
	case 1:
	default:
		return storage.Post{}, ErrMalformed
	}
	p := storage.Post{PostID: id}
	p.CreatedAt, p.EditedAt = storage.Micros(r.varint()), storage.Micros(r.varint())
	p.Counts = storage.PostCounts{Comments: r.varint(), Favorites: r.varint(), Version: version}
	p.Text = r.text()
	n := r.Uvarint()
	if n > storage.MaxMedia {
		return storage.Post{}, ErrMalformed
	}
	for range n {
		p.Media = append(p.Media, storage.Media{Kind: storage.MediaKind(r.Byte()), Name: r.text(), URL: r.text()})
	}
	p.Attributes = r.attributes()
	if r.End() != nil {
		return storage.Post{}, ErrMalformed
	}
	return p, nil
}

// AppendComments appends comments: for each its id, the number of its post, who wrote it, when, and its text.
func AppendComments(to []byte, comments []storage.Comment) []byte {
	for _, c := range comments {
		for _, n := range [...]int64{int64(c.Author), c.Number, c.Post, int64(c.By), int64(c.CreatedAt)} {
			to = binary.AppendVarint(to, n)
		}
		to = appendText(to, c.Text)
	}
	return to
}

// ParseComments reads what AppendComments has written in this process.
func ParseComments(data []byte) (comments []storage.Comment) {
	for r := NewDecoder(string(data)); r.More(); {
		id := storage.CommentID{Author: storage.UserID(r.varint()), Number: r.varint()}
		comments = append(comments, storage.Comment{
			CommentID: id, Post: r.varint(), By: storage.UserID(r.varint()), CreatedAt: storage.Micros(r.varint()), Text: r.text(),
		})
	}
	return comments
}
