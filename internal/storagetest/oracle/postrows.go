package oracle

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

func (s *Store) restorePost(row storage.PostRow) storage.Result[bool] {
	if _, exists := s.users[row.Author]; !exists {
		return storage.Result[bool]{}
	}
	if s.posts[row.PostID] != nil {
		return storage.Result[bool]{Found: true}
	}
	for id, p := range s.posts {
		if id.Author == row.Author && p.key == row.Key {
			return storage.Result[bool]{Err: fmt.Errorf("client key %w", storage.ErrKeyTaken)}
		}
	}
	s.posts[row.PostID] = &post{
		Post: storage.Post{PostID: row.PostID, Text: row.Text, Media: slices.Clone(row.Media), CreatedAt: row.At, EditedAt: row.EditedAt, Counts: storage.PostCounts{Version: 1}, Attributes: row.Attributes},
		key:  row.Key, deleted: row.Deleted,
	}
	news := storage.PostDeleted
	if !row.Deleted {
		s.countPosts(row.Author, 1)
		s.activeOn(row.Author, row.At)
		news = storage.PostPublished
	}
	s.change.AddPost(news, storage.PostAt{PostID: row.PostID, CreatedAt: row.At})
	return storage.Result[bool]{Value: true, Found: true}
}

func (s *Store) restoreComment(n storage.Comment) storage.Result[bool] {
	if _, err := s.post(n.On()); err != nil {
		return storage.Result[bool]{}
	}
	if _, exists := s.comments[n.CommentID]; exists {
		return storage.Result[bool]{Found: true}
	}
	for _, c := range s.comments {
		if c.On() == n.On() && c.By == n.By && c.key == n.Key {
			return storage.Result[bool]{Err: fmt.Errorf("client key %w", storage.ErrKeyTaken)}
		}
	}
	c := comment{n, n.Key}
	c.Comment.Key = ""
	s.comments[n.CommentID] = c
	s.countComments(n.On(), 1)
	return storage.Result[bool]{Value: true, Found: true}
}

// postRows are all posts by author, then by number.
func (s *Store) postRows() (rows []storage.PostRow) {
	for id, p := range s.posts {
		row := storage.PostRow{PostID: id, Key: p.key, At: p.CreatedAt, EditedAt: p.EditedAt, Deleted: p.deleted}
		if !p.deleted {
			row.Text, row.Media, row.Attributes = p.Text, slices.Clone(p.Media), p.Attributes
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b storage.PostRow) int { return a.Compare(b.PostID) })
	return rows
}

// commentRows are all comments on posts that have not been deleted, by author, then by number.
func (s *Store) commentRows() (rows []storage.Comment) {
	for _, c := range s.comments {
		if _, err := s.post(c.On()); err == nil {
			c.Comment.Key = c.key
			rows = append(rows, c.Comment)
		}
	}
	slices.SortFunc(rows, func(a, b storage.Comment) int {
		return storage.PostID(a.CommentID).Compare(storage.PostID(b.CommentID))
	})
	return rows
}

// Posts implements [contents.Moment].
func (m *moment) Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error) {
	page := slices.DeleteFunc(slices.Clone(m.posts), func(p storage.PostRow) bool { return p.PostID.Compare(after) <= 0 })
	return page[:min(limit, len(page))], ctx.Err()
}

// Comments implements [contents.Moment].
func (m *moment) Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.Comment, error) {
	page := slices.DeleteFunc(slices.Clone(m.comments), func(c storage.Comment) bool { return storage.PostID(c.CommentID).Compare(storage.PostID(after)) <= 0 })
	return page[:min(limit, len(page))], ctx.Err()
}
