package model

import (
	"fmt"
	"time"

	"kith/storage"
)

// Post is a post that its viewer may see.
type Post struct {
	Row storage.Post

	Author *User // nil unless selected, or not read
	Files  Files

	Favorited storage.Result[bool] // whether the viewer has favorited it; not Found unless that was read
}

func (*Post) IsNode() {}

// ID is opaque to clients: docs/reference/posts.md says what it is made of.
func (p *Post) ID() string {
	return "post_" + p.Row.Author.String() + "_" + storage.UserID(p.Row.Number).String()
}

func (p *Post) Text() string         { return p.Row.Text }
func (p *Post) CreatedAt() time.Time { return p.Row.CreatedAt.Time() }

// EditedAt is nil for a post that was never edited.
func (p *Post) EditedAt() *time.Time { return moment(p.Row.EditedAt) }

func (p *Post) Attributes() storage.Attributes { return p.Row.Attributes }

func (p *Post) CommentCount() int32 { return CountOf(p.Row.Counts.Comments) }

func (p *Post) FavoritesReceivedCount() int32 { return CountOf(p.Row.Counts.Favorites) }

// ViewerHasFavorited is nil when nobody is signed in. It fails when the viewer's shard did not answer.
func (p *Post) ViewerHasFavorited() (*bool, error) {
	if !p.Favorited.Found || p.Favorited.Err != nil {
		return nil, p.Favorited.Err
	}
	return &p.Favorited.Value, nil
}

// Files are the files of a post, or why they cannot be shown.
type Files struct {
	List []*Media
	Err  error
}

var noFiles = []*Media{}

// FilesOf makes the files of a post from its row.
func FilesOf(row storage.Post) (f Files) {
	f.List = noFiles
	for _, m := range row.Media {
		kind, ok := mediaKinds[m.Kind]
		if !ok {
			return Files{noFiles, fmt.Errorf("post %d has media of kind %d", row.Number, m.Kind)}
		}
		f.List = append(f.List, &Media{Name: m.Name, URL: m.URL, Kind: kind})
	}
	return f
}

// Media are the files of the post.
func (p *Post) Media() ([]*Media, error) { return p.Files.List, p.Files.Err }

var mediaKinds = map[storage.MediaKind]MediaKind{
	storage.Image: MediaKindImage, storage.Video: MediaKindVideo, storage.Audio: MediaKindAudio, storage.Cover: MediaKindCover,
}

// StoredMedia are files as a client gives them.
func StoredMedia(given []*MediaInput) []storage.Media {
	list := make([]storage.Media, len(given))
	for i, m := range given {
		list[i] = storage.Media{Name: m.Name, URL: m.URL}
		for stored, kind := range mediaKinds {
			if kind == m.Kind {
				list[i].Kind = stored
			}
		}
	}
	return list
}

// Comment is a comment that its viewer may see.
type Comment struct {
	Row storage.Comment

	Author *User // nil unless selected, or not read
}

func (*Comment) IsNode() {}

// ID says where the comment is: stored with its post.
func (c *Comment) ID() string {
	return "cmt_" + c.Row.Author.String() + "_" + storage.UserID(c.Row.Number).String()
}

// PostID is the id of the post.
func (c *Comment) PostID() string {
	return "post_" + c.Row.Author.String() + "_" + storage.UserID(c.Row.Post).String()
}

func (c *Comment) Text() string         { return c.Row.Text }
func (c *Comment) CreatedAt() time.Time { return c.Row.CreatedAt.Time() }
