package graphfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kith/accounts"
	"kith/storage"
)

// The kinds of files of what users have published, and of what they have favorited.
const (
	Posts     Kind = "posts"
	Comments  Kind = "comments"
	Favorites Kind = "favorites"
)

// maxMediaText is how many bytes the media of a post may take in a file: enough for the longest names and
// URLs, with every character escaped.
const maxMediaText = 1 << 16

var (
	errNoComment = fmt.Errorf("text has 1 to %d characters", storage.MaxCommentLength)
	errMedia     = errors.New(`media must be a JSON array of {"name", "url", "kind"}`)
	errLongMedia = fmt.Errorf("media take up to %d bytes", maxMediaText)
)

// mediaKinds are the words for what a file is, from [storage.Image] on.
var mediaKinds = []string{"image", "video", "audio", "cover"}

// mediaText is how a file holds the media of a post.
type mediaText struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Kind string `json:"kind"`
}

// ParsePost reads a record. Keys, texts and media have to be as those that users write.
func ParsePost(record []string) (p storage.PostRow, err error) {
	f := fieldsOf(Posts, record)
	p.Author, p.Number, p.Key = f.id(0), f.number(1), f.key(2)
	p.At, p.EditedAt, p.Deleted = f.time(3), f.timeOrNone(4), f.truth(5)
	p.Text = f.text(6, storage.MaxPostLength)
	p.Media, err = parseMedia(f.bare(7))
	f.check(err)
	if p.Deleted && (p.Text != "" || p.Media != nil) {
		f.check(errors.New("a deleted post has neither text nor media"))
	}
	return p, f.err
}

// PostRecord is the record of a post, which [ParsePost] reads as the same.
func PostRecord(p storage.PostRow) ([]string, error) {
	list := make([]mediaText, len(p.Media))
	damaged := p.Author <= 0 || p.Number <= 0 || !writableTime(p.At) || !writableTime(p.EditedAt)
	for i, m := range p.Media {
		if m.Kind < storage.Image || m.Kind > storage.Cover {
			damaged = true
			continue
		}
		list[i] = mediaText{m.Name, m.URL, mediaKinds[m.Kind-storage.Image]}
	}
	if damaged {
		return nil, fmt.Errorf("the row of post %d of user %d is damaged: no file can hold it", p.Number, p.Author)
	}
	edited, media := "", ""
	if p.EditedAt > 0 {
		edited = timeText(p.EditedAt)
	}
	if len(list) > 0 {
		var text bytes.Buffer
		spell := json.NewEncoder(&text)
		spell.SetEscapeHTML(false)
		if err := spell.Encode(list); err != nil {
			return nil, err
		}
		media = strings.TrimSpace(text.String())
	}
	return []string{p.Author.String(), numberText(p.Number), p.Key, timeText(p.At), edited, truthText(p.Deleted), p.Text, media}, nil
}

// ParseComment reads a record. Keys and texts have to be as those that users write.
func ParseComment(record []string) (c storage.NewComment, err error) {
	f := fieldsOf(Comments, record)
	c.Post.Author, c.Post.Number, c.Number, c.By = f.id(0), f.number(1), f.number(2), f.id(3)
	c.Key, c.At, c.Text = f.key(4), f.time(5), f.text(6, storage.MaxCommentLength)
	if c.Text == "" { // one of a version before may have nothing to see
		f.check(errNoComment)
	}
	return c, f.err
}

// CommentRecord is the record of a comment, which [ParseComment] reads as the same.
func CommentRecord(c storage.NewComment) ([]string, error) {
	if c.Post.Author <= 0 || c.Post.Number <= 0 || c.Number <= 0 || c.By <= 0 || !writableTime(c.At) {
		return nil, fmt.Errorf("the row of comment %d below a post of user %d is damaged: no file can hold it", c.Number, c.Post.Author)
	}
	return []string{c.Post.Author.String(), numberText(c.Post.Number), numberText(c.Number), c.By.String(), c.Key, timeText(c.At), c.Text}, nil
}

// ParseFavorite reads a record. A favorite that was taken back is of type [storage.None].
func ParseFavorite(record []string) (e storage.Edge, err error) {
	f := fieldsOf(Favorites, record)
	e.From, e.To, e.Post, e.UpdateTime = f.id(0), f.id(1), f.number(2), f.time(3)
	if f.truth(4) {
		e.Type = storage.Favorited
	}
	return e, f.err
}

// FavoriteRecord is the record of a row of `favorite`, which [ParseFavorite] reads as the same.
func FavoriteRecord(e storage.Edge) ([]string, error) {
	if !Writable(e) || e.Post <= 0 || e.Type != storage.None && e.Type != storage.Favorited {
		return nil, fmt.Errorf("the favorite of user %d of post %d of user %d is damaged (type %d, time %d): no file can hold it", e.From, e.Post, e.To, e.Type, e.UpdateTime)
	}
	return []string{e.From.String(), e.To.String(), numberText(e.Post), timeText(e.UpdateTime), truthText(e.Type == storage.Favorited)}, nil
}

func parseMedia(text string) ([]storage.Media, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxMediaText {
		return nil, errLongMedia
	}
	var list []mediaText
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil || decoder.More() {
		return nil, errMedia
	}
	var media []storage.Media
	for _, m := range list {
		kind := slices.Index(mediaKinds, m.Kind)
		if kind < 0 {
			return nil, fmt.Errorf("the kind of media is one of %s", strings.Join(mediaKinds, ", "))
		}
		media = append(media, storage.Media{Name: accounts.SeenOnly(m.Name), URL: accounts.SeenOnly(m.URL), Kind: storage.Image + storage.MediaKind(kind)})
	}
	return media, accounts.CheckMedia(media)
}
