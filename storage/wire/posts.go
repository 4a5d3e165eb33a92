package wire

import (
	"encoding/binary"

	"kith/storage"
)

// AppendPost appends
//
//	varints  the version of its counts, when it was published, when it was edited, comments, favorites
//	text     after its length, as all texts here
//	uvarint  how many media there are; then for each its kind, its name and its URL
//	         the attributes, as the rest
func AppendPost(to []byte, p storage.Post) []byte {
	for _, n := range [...]int64{p.Counts.Version, int64(p.CreatedAt), int64(p.EditedAt), p.Counts.Comments, p.Counts.Favorites} {
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

// ParsePost reads what AppendPost has written. The texts are parts of the given one.
func ParsePost(id storage.PostID, value string) (storage.Post, error) {
	r := NewDecoder(value)
	p := storage.Post{PostID: id, Counts: storage.PostCounts{Version: r.varint()}}
	p.CreatedAt, p.EditedAt = storage.Micros(r.varint()), storage.Micros(r.varint())
	p.Counts.Comments, p.Counts.Favorites = r.varint(), r.varint()
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
