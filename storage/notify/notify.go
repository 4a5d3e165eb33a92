// Package notify reports to caches every write to a store: after its commit, and before the writer
// goes on.
package notify

import (
	"context"
	"errors"
	"slices"
	"sync"

	"kith/storage"
)

// Write is what a write has changed.
type Write struct {
	// Rows are rows of edges as they are now, each on the side that it names: a row propagated to one
	// side only is listed for that side only. Some rows may be unchanged.
	Rows []storage.Row
	// Users have been created, erased or changed otherwise than by an edge.
	Users []storage.UserID
	// Counted are users of whom nothing but counts has changed, and otherwise than by an edge.
	Counted []storage.UserID
	// Published are posts that can be read, and Deleted posts that no longer exist. Their authors
	// are listed as well.
	Published []storage.PostAt
	Deleted   []storage.PostID
	// Posts have changed: one was published, edited or deleted, or its number of comments changed.
	// The number 0 stands for all posts of the author. Rows say which posts were favorited.
	Posts []storage.PostID
	// Commented are comments that can be read.
	Commented []storage.CommentID
	// Counts are counts that the write has left, for the users for whom the store had them at hand.
	// For a user whose profile was written they hold the row as well, if the store returned it.
	Counts map[storage.UserID]storage.UserChange
	// Doubted are users of whom anything may have changed, or may still change: a commit had no answer.
	Doubted []storage.UserID

	profile *storage.User // that one transaction has left
}

// profiled adds to the counts of a user the profile that the same transaction has left.
func (w *Write) profiled(user storage.User) {
	if one, known := w.Counts[user.ID]; known && one.Counts.Version > 0 {
		one.Profile = &user
		w.Counts[user.ID] = one
	}
}

// Store is a store that reports its writes.
type Store struct {
	storage.Store
	report func(context.Context, Write)
}

// Watch returns a store that calls report with every write through it. It may report a write more
// than once, and reports it even if the client has gone.
func Watch(store storage.Store, report func(context.Context, Write)) *Store {
	return &Store{Store: store, report: report}
}

// begin returns a context for a write that changes these users. The caller calls end with what the
// write has done, and with its errors.
func (s *Store) begin(ctx context.Context, users ...storage.UserID) (in context.Context, end func(Write, ...error)) {
	left := &counted{of: users}
	return storage.OnPosts(storage.OnCounted(ctx, left.add), left.addPosts), func(w Write, errs ...error) {
		if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, storage.ErrInDoubt) }) {
			w.Doubted = users
		}
		s.wrote(ctx, w, left)
	}
}

// All are the users of whom something has changed otherwise than by an edge.
func (w Write) All() []storage.UserID { return slices.Concat(w.Users, w.Counted) }

func (w Write) none() bool {
	return len(w.Rows)+len(w.Users)+len(w.Counted)+len(w.Posts)+len(w.Commented)+len(w.Doubted) == 0
}

// wrote reports a write, if there was one.
func (s *Store) wrote(ctx context.Context, w Write, left *counted) {
	w.Posts = append(w.Posts, left.changedPosts()...)
	if !w.none() {
		w.Counts = left.all()
		if w.profile != nil {
			w.profiled(*w.profile)
		}
		s.report(context.WithoutCancel(ctx), w)
	}
}

// counted collects the counts that the transactions of a write have left, and the posts that they
// have changed.
type counted struct {
	of    []storage.UserID // users whose counts the write changes, because it may share a transaction with other writes; none stands for all
	mu    sync.Mutex
	left  map[storage.UserID]storage.UserChange
	posts []storage.PostID
}

func (c *counted) addPosts(posts []storage.PostID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = append(c.posts, posts...)
}

func (c *counted) changedPosts() []storage.PostID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.posts
}

func (c *counted) add(changes []storage.UserChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == nil {
		c.left = make(map[storage.UserID]storage.UserChange, len(changes))
	}
	for _, one := range changes {
		if len(c.of) > 0 && !slices.Contains(c.of, one.User) {
			continue
		}
		if before, again := c.left[one.User]; again {
			one = one.And(before)
		}
		c.left[one.User] = one
	}
}

func (c *counted) all() map[storage.UserID]storage.UserChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// add adds forward rows, and the rows of their other sides if those were written too.
func (w *Write) add(written []storage.Written) {
	for _, one := range written {
		w.Rows = append(w.Rows, one.Row)
		if one.Inverse {
			w.Rows = append(w.Rows, storage.Row{Side: one.Side.Replica(), Edge: one.Edge})
		}
	}
}

// Apply implements [storage.EdgeWriter]. It also reports rows that were there before: their writer
// may have died before it could report them.
func (s *Store) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	ctx, end := s.begin(ctx, ends(edges)...)
	results := s.Store.Apply(ctx, side, edges, rule)
	w := Write{Rows: make([]storage.Row, 0, len(results))}
	for _, r := range results {
		if r.Err == nil && r.Value.Row.UpdateTime > 0 { // otherwise there is no such row
			w.Rows = append(w.Rows, storage.Row{Side: side, Edge: r.Value.Row})
			w.add(r.Value.Also)
		}
	}
	end(w, errorsOf(results)...)
	return results
}

// ChangeEdges implements [storage.EdgeChanger].
func (s *Store) ChangeEdges(ctx context.Context, from storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	users := make([]storage.UserID, 1, len(changes)+1)
	users[0] = from
	for _, c := range changes {
		users = append(users, c.To)
	}
	ctx, end := s.begin(ctx, users...)
	results := s.Store.ChangeEdges(ctx, from, changes, o)
	var w Write
	for _, r := range results {
		w.add(r.Value.Written())
	}
	end(w, errorsOf(results)...)
	return results
}

// ChangeRequest implements [storage.RequestChanger].
func (s *Store) ChangeRequest(ctx context.Context, request storage.Pair, change storage.RequestChange, o storage.RequestOptions) (storage.ChangedRequest, error) {
	ctx, end := s.begin(ctx, request.From, request.To)
	changed, err := s.Store.ChangeRequest(ctx, request, change, o)
	var w Write
	w.add(changed.Written)
	end(w, err)
	return changed, err
}

// CreateUsers implements [storage.UserWriter].
func (s *Store) CreateUsers(ctx context.Context, users []storage.User) []storage.Result[bool] {
	ids := make([]storage.UserID, len(users))
	for i, u := range users {
		ids[i] = u.ID
	}
	ctx, end := s.begin(ctx, ids...)
	results := s.Store.CreateUsers(ctx, users)
	var w Write
	for i, r := range results {
		if r.Value {
			w.Users = append(w.Users, users[i].ID)
		}
	}
	end(w, errorsOf(results)...)
	return results
}

// Register implements [storage.AccountStore].
func (s *Store) Register(ctx context.Context, user storage.User, passwordHash string) error {
	ctx, end := s.begin(ctx, user.ID)
	err := s.Store.Register(ctx, user, passwordHash)
	end(changed(user.ID, err == nil), err)
	return err
}

// SetPassword implements [storage.AccountStore].
func (s *Store) SetPassword(ctx context.Context, id storage.UserID, change storage.PasswordChange) (storage.Password, error) {
	ctx, end := s.begin(ctx, id)
	password, err := s.Store.SetPassword(ctx, id, change)
	end(changed(id, err == nil), err) // the user's UpdatedAt
	return password, err
}

// UpdateProfile implements [storage.AccountStore].
func (s *Store) UpdateProfile(ctx context.Context, id storage.UserID, change storage.ProfileChange, at storage.Micros) (storage.User, error) {
	ctx, end := s.begin(ctx, id)
	user, err := s.Store.UpdateProfile(ctx, id, change, at)
	w := changed(id, err == nil)
	w.profile = &user
	end(w, err)
	return user, err
}

// SetMark implements [storage.MarkWriter].
func (s *Store) SetMark(ctx context.Context, pair storage.Pair, change storage.MarkChange) (storage.EdgeMark, bool, error) {
	ctx, end := s.begin(ctx, pair.From)
	mark, is, err := s.Store.SetMark(ctx, pair, change)
	end(changed(pair.From, is), err)
	return mark, is, err
}

// AddBeside implements [storage.BesideWriter].
func (s *Store) AddBeside(ctx context.Context, kind storage.BesideKind, rows []storage.Beside) []storage.Result[bool] {
	owners := make([]storage.UserID, len(rows))
	for i, r := range rows {
		owners[i] = r.From
	}
	ctx, end := s.begin(ctx, owners...)
	results := s.Store.AddBeside(ctx, kind, rows)
	var w Write
	for i, r := range results {
		if r.Found && r.Value {
			w.Users = append(w.Users, owners[i])
		}
	}
	end(w, errorsOf(results)...)
	return results
}

// SetState implements [storage.StateStore].
func (s *Store) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	ctx, end := s.begin(ctx, user)
	is, err := s.Store.SetState(ctx, user, state, at)
	end(changed(user, err == nil), err)
	return is, err
}

// EndEdges implements [storage.StateStore].
func (s *Store) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	edges := make([]storage.Edge, len(rows))
	for i, row := range rows {
		edges[i] = row.Edge
	}
	ctx, end := s.begin(ctx, ends(edges)...)
	results := s.Store.EndEdges(ctx, user, rows, at)
	w := Write{Rows: make([]storage.Row, 0, 2*len(results))}
	for i, r := range results {
		if r.Value.UpdateTime > 0 {
			w.Rows = append(w.Rows, storage.Row{Side: rows[i].Side.Other(), Edge: r.Value})
		}
		if r.Found {
			w.Rows = append(w.Rows, storage.Row{Side: rows[i].Side, Edge: r.Value})
		}
	}
	end(w, errorsOf(results)...)
	return results
}

// Erase implements [storage.StateStore]. It reports the posts below which the user has commented one
// by one, as soon as the comments are gone: they may be many. It reports the user's own posts even
// if it fails, because some may be gone.
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	ctx, end := s.begin(ctx, user)
	err := s.Store.Erase(storage.OnPosts(ctx, func(posts []storage.PostID) {
		s.report(context.WithoutCancel(ctx), Write{Posts: posts})
	}), user, at)
	w := changed(user, err == nil)
	w.Posts = []storage.PostID{{Author: user}}
	end(w, err)
	return err
}

// Publish implements [storage.PostWriter]. It also reports a post that was there before: its writer
// may have died before it could report it.
func (s *Store) Publish(ctx context.Context, post storage.NewPost) (storage.Post, bool, error) {
	ctx, end := s.begin(ctx, post.Author)
	p, published, err := s.Store.Publish(ctx, post)
	w := recounted(post.Author, err == nil)
	if err == nil {
		w.Published, w.Posts = []storage.PostAt{p.At()}, []storage.PostID{p.PostID}
	}
	end(w, err)
	return p, published, err
}

// EditPost implements [storage.PostWriter]. It also reports a post that already had these values:
// its writer may have died before it could report it.
func (s *Store) EditPost(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
	ctx, end := s.begin(ctx, id.Author)
	p, changed, err := s.Store.EditPost(ctx, id, change, at)
	end(Write{Posts: []storage.PostID{id}}, err)
	return p, changed, err
}

// AddComment implements [storage.CommentWriter]. It also reports a comment that was there before, and
// its post: its writer may have died before it could report it.
func (s *Store) AddComment(ctx context.Context, comment storage.NewComment) (storage.Comment, bool, error) {
	ctx, end := s.begin(ctx, comment.Post.Author)
	c, added, err := s.Store.AddComment(ctx, comment)
	w := Write{Posts: []storage.PostID{comment.Post}}
	if err == nil {
		w.Commented = []storage.CommentID{c.CommentID}
	}
	end(w, err)
	return c, added, err
}

// DeleteComment implements [storage.CommentWriter]. The store reports which post the comment was
// on.
func (s *Store) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (bool, error) {
	ctx, end := s.begin(ctx, id.Author)
	deleted, err := s.Store.DeleteComment(ctx, id, by)
	end(Write{}, err)
	return deleted, err
}

// RestoreComments implements [storage.PostRestorer].
func (s *Store) RestoreComments(ctx context.Context, comments []storage.NewComment) []storage.Result[bool] {
	authors := make([]storage.UserID, len(comments))
	for i, c := range comments {
		authors[i] = c.Post.Author
	}
	ctx, end := s.begin(ctx, authors...)
	results := s.Store.RestoreComments(ctx, comments)
	end(Write{}, errorsOf(results)...)
	return results
}

// DeletePost implements [storage.PostWriter].
func (s *Store) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	ctx, end := s.begin(ctx, id.Author)
	deleted, err := s.Store.DeletePost(ctx, id)
	w := recounted(id.Author, err == nil)
	if err == nil {
		w.Deleted, w.Posts = []storage.PostID{id}, []storage.PostID{id}
	}
	end(w, err)
	return deleted, err
}

// RestorePosts implements [storage.PostRestorer].
func (s *Store) RestorePosts(ctx context.Context, posts []storage.PostRow) []storage.Result[bool] {
	authors := make([]storage.UserID, len(posts))
	for i, p := range posts {
		authors[i] = p.Author
	}
	ctx, end := s.begin(ctx, authors...)
	results := s.Store.RestorePosts(ctx, posts)
	var w Write
	for i, r := range results {
		if r.Value {
			w.Counted, w.Posts = append(w.Counted, authors[i]), append(w.Posts, posts[i].PostID)
			if !posts[i].Deleted {
				w.Published = append(w.Published, storage.PostAt{PostID: posts[i].PostID, CreatedAt: posts[i].At})
			}
		}
	}
	end(w, errorsOf(results)...)
	return results
}

// ChangeFavorite implements [storage.FavoriteChanger].
func (s *Store) ChangeFavorite(ctx context.Context, user storage.UserID, change storage.FavoriteChange, o storage.ChangeOptions) (storage.Changed, error) {
	ctx, end := s.begin(ctx, user, change.Post.Author)
	changed, err := s.Store.ChangeFavorite(ctx, user, change, o)
	var w Write
	w.add(changed.Written())
	end(w, err)
	return changed, err
}

// recounted is a write that has changed a user's counts, or nothing.
func recounted(user storage.UserID, is bool) (w Write) {
	if is {
		w.Counted = []storage.UserID{user}
	}
	return w
}

// changed is a write that has changed a user, or nothing.
func changed(user storage.UserID, is bool) (w Write) {
	if is {
		w.Users = []storage.UserID{user}
	}
	return w
}

// ends are the users at the ends of edges, each once.
func ends(edges []storage.Edge) []storage.UserID {
	users := make([]storage.UserID, 0, 2*len(edges))
	for _, e := range edges {
		users = append(users, e.From, e.To)
	}
	slices.Sort(users)
	return slices.Compact(users)
}

func errorsOf[V any](results []storage.Result[V]) (errs []error) {
	for _, r := range results {
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
	}
	return errs
}
