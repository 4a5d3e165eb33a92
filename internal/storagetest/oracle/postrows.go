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
		news = storage.PostPublished
	}
	s.change.AddPost(news, storage.PostAt{PostID: row.PostID, CreatedAt: row.At})
	return storage.Result[bool]{Value: true, Found: true}
}

func (s *Store) restoreComment(n storage.NewComment) storage.Result[bool] {
	if _, err := s.post(n.Post); err != nil {
		return storage.Result[bool]{}
	}
	if _, exists := s.comments[n.ID()]; exists {
		return storage.Result[bool]{Found: true}
	}
	for _, c := range s.comments {
		if c.on() == n.Post && c.By == n.By && c.key == n.Key {
			return storage.Result[bool]{Err: fmt.Errorf("client key %w", storage.ErrKeyTaken)}
		}
	}
	s.comments[n.ID()] = comment{storage.Comment{CommentID: n.ID(), Post: n.Post.Number, By: n.By, Text: n.Text, CreatedAt: n.At}, n.Key}
	s.countComments(n.Post, 1)
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
func (s *Store) commentRows() (rows []storage.NewComment) {
	for _, c := range s.comments {
		if _, err := s.post(c.on()); err == nil {
			rows = append(rows, storage.NewComment{Post: c.on(), Number: c.Number, By: c.By, Key: c.key, Text: c.Text, At: c.CreatedAt})
		}
	}
	slices.SortFunc(rows, func(a, b storage.NewComment) int { return a.ID().Compare(b.ID()) })
	return rows
}

// Posts implements [storage.ShardMoment].
func (m *moment) Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error) {
	page := slices.DeleteFunc(slices.Clone(m.posts), func(p storage.PostRow) bool { return p.PostID.Compare(after) <= 0 })
	return page[:min(limit, len(page))], ctx.Err()
}

// Comments implements [storage.ShardMoment].
func (m *moment) Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.NewComment, error) {
	page := slices.DeleteFunc(slices.Clone(m.comments), func(c storage.NewComment) bool { return c.ID().Compare(after) <= 0 })
	return page[:min(limit, len(page))], ctx.Err()
}
