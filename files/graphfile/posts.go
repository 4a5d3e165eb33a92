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
	if err := fits(Posts, record); err != nil {
		return p, err
	}
	if p.Author, p.Number, err = parsePostID(record); err != nil {
		return p, err
	}
	p.Key = strings.TrimSpace(record[2])
	if err := accounts.CheckClientKey(p.Key); err != nil {
		return p, err
	}
	if p.At, err = parseTime([]byte(strings.TrimSpace(record[3]))); err != nil {
		return p, err
	}
	if text := strings.TrimSpace(record[4]); text != "" {
		if p.EditedAt, err = parseTime([]byte(text)); err != nil {
			return p, err
		}
	}
	if p.Deleted, err = parseTruth("deleted", record[5]); err != nil {
		return p, err
	}
	if p.Text, err = accounts.CheckText("text", record[6], 0, storage.MaxPostLength); err != nil {
		return p, err
	}
	if p.Media, err = parseMedia(record[7]); err != nil {
		return p, err
	}
	if p.Deleted && (p.Text != "" || p.Media != nil) {
		return p, errors.New("a deleted post has neither text nor media")
	}
	return p, nil
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
	edited, deleted, media := "", truths[0], ""
	if p.EditedAt > 0 {
		edited = string(AppendTime(nil, p.EditedAt))
	}
	if p.Deleted {
		deleted = truths[1]
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
	return []string{
		p.Author.String(), storage.UserID(p.Number).String(), p.Key, string(AppendTime(nil, p.At)), edited, deleted, p.Text, media,
	}, nil
}

// ParseComment reads a record. Keys and texts have to be as those that users write.
func ParseComment(record []string) (c storage.NewComment, err error) {
	if err := fits(Comments, record); err != nil {
		return c, err
	}
	if c.Post.Author, c.Post.Number, err = parsePostID(record); err != nil {
		return c, err
	}
	number, err := ParseID([]byte(strings.TrimSpace(record[2])))
	if err != nil {
		return c, err
	}
	c.Number = int64(number)
	if c.By, err = ParseID([]byte(strings.TrimSpace(record[3]))); err != nil {
		return c, err
	}
	c.Key = strings.TrimSpace(record[4])
	if err := accounts.CheckClientKey(c.Key); err != nil {
		return c, err
	}
	if c.At, err = parseTime([]byte(strings.TrimSpace(record[5]))); err != nil {
		return c, err
	}
	if c.Text, err = accounts.CheckText("text", record[6], 0, storage.MaxCommentLength); err == nil && c.Text == "" {
		err = errNoComment // one of a version before may have nothing to see
	}
	return c, err
}

// CommentRecord is the record of a comment, which [ParseComment] reads as the same.
func CommentRecord(c storage.NewComment) ([]string, error) {
	if c.Post.Author <= 0 || c.Post.Number <= 0 || c.Number <= 0 || c.By <= 0 || !writableTime(c.At) {
		return nil, fmt.Errorf("the row of comment %d below a post of user %d is damaged: no file can hold it", c.Number, c.Post.Author)
	}
	return []string{
		c.Post.Author.String(), storage.UserID(c.Post.Number).String(), storage.UserID(c.Number).String(), c.By.String(), c.Key,
		string(AppendTime(nil, c.At)), c.Text,
	}, nil
}

// ParseFavorite reads a record. A favorite that was taken back is of type [storage.None].
func ParseFavorite(record []string) (e storage.Edge, err error) {
	if err := fits(Favorites, record); err != nil {
		return e, err
	}
	if e.From, err = ParseID([]byte(strings.TrimSpace(record[0]))); err != nil {
		return e, err
	}
	if e.To, e.Post, err = parsePostID(record[1:]); err != nil {
		return e, err
	}
	if e.UpdateTime, err = parseTime([]byte(strings.TrimSpace(record[3]))); err != nil {
		return e, err
	}
	lasts, err := parseTruth("favorited", record[4])
	if lasts {
		e.Type = storage.Favorited
	}
	return e, err
}

// FavoriteRecord is the record of a row of `favorite`, which [ParseFavorite] reads as the same.
func FavoriteRecord(e storage.Edge) ([]string, error) {
	if !Writable(e) || e.Post <= 0 || e.Type != storage.None && e.Type != storage.Favorited {
		return nil, fmt.Errorf("the favorite of user %d of post %d of user %d is damaged (type %d, time %d): no file can hold it", e.From, e.Post, e.To, e.Type, e.UpdateTime)
	}
	lasts := truths[0]
	if e.Type == storage.Favorited {
		lasts = truths[1]
	}
	return []string{e.From.String(), e.To.String(), storage.UserID(e.Post).String(), string(AppendTime(nil, e.UpdateTime)), lasts}, nil
}

func parseTruth(column, text string) (bool, error) {
	i := slices.Index(truths, strings.ToLower(strings.TrimSpace(text)))
	if i < 0 {
		return false, fmt.Errorf("%s is one of %s", column, strings.Join(truths, ", "))
	}
	return i == 1, nil
}

// fits returns an error unless a record has the columns of a kind.
func fits(kind Kind, record []string) error {
	if columns := kind.Header(); len(record) != len(columns) {
		return fmt.Errorf("want %s", strings.Join(columns, ","))
	}
	return nil
}

// parsePostID reads two columns. Numbers of posts are as large as ids.
func parsePostID(record []string) (author storage.UserID, number int64, err error) {
	if author, err = ParseID([]byte(strings.TrimSpace(record[0]))); err != nil {
		return 0, 0, err
	}
	n, err := ParseID([]byte(strings.TrimSpace(record[1])))
	return author, int64(n), err
}

func parseMedia(text string) ([]storage.Media, error) {
	if text = strings.TrimSpace(text); text == "" {
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
