package social

import (
	"context"
	"fmt"
	"time"

	"kith/storage"
)

// Posts are the rules of posts and comments. A post is for every viewer who may see its author: not
// for users in a block with the author, and for nobody while the author is hidden. Posts of a locked author are for
// its followers alone.
type Posts struct {
	Store storage.Store
	// IDs makes the numbers of posts and comments, which are unique in the store.
	IDs interface {
		Next(ctx context.Context) (storage.UserID, error)
	}
	HiddenUsers HiddenUsers // nil: nobody is hidden
	Now         func() time.Time
}

// Publish publishes a post, which has been checked, once for each key of the author. It gives the post its number and its time.
// [storage.ErrPostUnknown] if that post has been deleted since.
func (p *Posts) Publish(ctx context.Context, author storage.UserID, n storage.PostRow) (storage.Post, bool, error) {
	number, err := p.begin(ctx, author)
	if err != nil {
		return storage.Post{}, false, err
	}
	n.PostID, n.At = storage.PostID{Author: author, Number: number}, storage.MicrosOf(p.Now())
	post, published, err := p.Store.Publish(ctx, n)
	return post, published, gone(author, err)
}

// begin makes a number for what a user is about to write.
func (p *Posts) begin(ctx context.Context, user storage.UserID) (int64, error) {
	id, err := p.IDs.Next(ctx)
	if err != nil {
		err = fmt.Errorf("make a number for what user %s writes: %w", user, err)
	}
	return int64(id), err
}

// Edit changes a user's own post. [storage.ErrForbidden] for one of another user,
// [storage.ErrPostUnknown].
func (p *Posts) Edit(ctx context.Context, user storage.UserID, id storage.PostID, change storage.PostChange) (storage.Post, bool, error) {
	if err := mine(user, id); err != nil {
		return storage.Post{}, false, err
	}
	return p.Store.EditPost(ctx, id, change, storage.MicrosOf(p.Now()))
}

// Delete deletes a user's own post. [storage.ErrForbidden] for one of another user.
func (p *Posts) Delete(ctx context.Context, user storage.UserID, id storage.PostID) (bool, error) {
	if err := mine(user, id); err != nil {
		return false, err
	}
	return p.Store.DeletePost(ctx, id)
}

func mine(user storage.UserID, id storage.PostID) error {
	if id.Author != user {
		return fmt.Errorf("%w: post %d is not of user %s", storage.ErrForbidden, id.Number, user)
	}
	return nil
}

// Comment writes a comment below a post, once for each key of the user and the post.
// [storage.ErrPostUnknown] also if the user may not see the post.
func (p *Posts) Comment(ctx context.Context, people storage.Answerer, user storage.UserID, post storage.PostID, key, text string) (storage.Comment, bool, error) {
	if err := mayReach(ctx, people, NewAudience(user, p.HiddenUsers, nil), post.Author)[0]; err != nil {
		return storage.Comment{}, false, err
	}
	// The user's own shard is not asked again, as it is for posts: a comment that a user writes while
	// it is being erased is not shown, because its writer is not found.
	switch r := storage.UserLookups.Read(ctx, people, user)[0]; {
	case r.Err != nil:
		return storage.Comment{}, false, r.Err
	case !r.Found:
		return storage.Comment{}, false, gone(user, storage.ErrUserUnknown)
	}
	number, err := p.begin(ctx, user)
	if err != nil {
		return storage.Comment{}, false, err
	}
	return p.Store.AddComment(ctx, storage.Comment{
		CommentID: storage.CommentID{Author: post.Author, Number: number},
		Post:      post.Number,
		By:        user,
		Key:       key,
		Text:      text,
		CreatedAt: storage.MicrosOf(p.Now()),
	})
}

// mayReach tells of each author whether an audience may see its posts: [storage.ErrPostUnknown] if it is hidden, or locked and the viewer does
// not follow it.
func mayReach(ctx context.Context, people storage.Answerer, a *Audience, authors ...storage.UserID) []error {
	errs := make([]error, len(authors))
	var follows []storage.Pair
	var at []int
	rows := storage.UserLookups.Read(ctx, people, authors...)
	for i, row := range rows {
		switch errs[i] = row.Err; {
		case a.IsAbsent(authors[i]):
			errs[i] = fmt.Errorf("%w: its author is hidden", storage.ErrPostUnknown)
		case row.Err == nil && a.NeedsFollow(PostsOf(authors[i]), row.Value):
			follows, at = append(follows, storage.Pair{From: a.Viewer, To: authors[i]}), append(at, i)
		}
	}
	for k, edge := range storage.EdgeLookups[storage.Forward].Read(ctx, people, follows...) {
		i := at[k]
		if errs[i] = edge.Err; edge.Err == nil && !a.Opens(PostsOf(authors[i]), rows[i].Value, edge.Value.Type == storage.Following) {
			errs[i] = fmt.Errorf("%w: user %s, its author, is locked", storage.ErrPostUnknown, authors[i])
		}
	}
	return errs
}

// latestBudget is how many posts, and how many comments, one page may examine.
const latestBudget = 1000

// Page is a page of a list.
type Page[T any] struct {
	Rows []T
	More bool // there are, or may be, others beyond the page's far end
	// End is the last place that was examined, if nothing at it is shown because the budget ended before the page was full;
	// otherwise it is zero.
	End storage.Place
}

// Show leaves out rows that must not be shown, and reads more rows until it has a page of the given size, and one more.
// Rows run newest first. read are those that have been read already: as many as asked, fewer if there are no more. Those that are
// read in addition come out of what is left.
func Show[T any](left *Allowance, read []T, asked, size int, shown func(T) bool, place func(T) storage.Place, more func(after storage.Place, limit int) ([]T, error)) (page Page[T], err error) {
	for examined := 0; ; {
		for _, row := range read {
			if !shown(row) {
				continue
			}
			if len(page.Rows) == size {
				page.More = true
				return page, nil
			}
			page.Rows = append(page.Rows, row)
		}
		examined += len(read)
		if len(read) < asked {
			return page, nil
		}
		last := place(read[len(read)-1])
		if examined >= latestBudget || left.spent() {
			page.More, page.End = true, last
			return page, nil
		}
		asked = max(asked, 100)
		if read, err = more(last, asked); err != nil {
			return page, err
		}
		left.take(entriesOfPost * len(read))
	}
}
