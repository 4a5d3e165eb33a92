package social

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

// Favored is the outcome of a favorite, or of its end.
type Favored struct {
	Row     storage.Edge // as it is now; UpdateTime 0 if there is none
	Changed bool
	Inverse bool // the author's side was written, too
	Stale   bool // the author's side lags for a reason that waiting does not repair
}

// Favorite makes a post a favorite of a user. [storage.ErrPostUnknown] if the post does not exist, or if
// the user may not see it.
func (t *Relations) Favorite(ctx context.Context, people Followers, user storage.UserID, post storage.PostID) (Favored, error) {
	if post.Author != user && t.HiddenUsers.Has(post.Author) {
		return Favored{}, fmt.Errorf("%w: its author is hidden", storage.ErrPostUnknown)
	}
	if err := mayReach(ctx, people, user, post.Author); err != nil {
		return Favored{}, err
	}
	switch r := t.Store.Posts(ctx, []storage.PostID{post})[0]; {
	case r.Err != nil:
		return Favored{}, r.Err
	case !r.Found:
		return Favored{}, fmt.Errorf("%w: %d of user %s", storage.ErrPostUnknown, post.Number, post.Author)
	}
	f, err := t.favorite(ctx, user, post, storage.Favorited)
	if errors.Is(err, storage.ErrForbidden) {
		err = fmt.Errorf("%w: %w", storage.ErrPostUnknown, err)
	}
	return f, err
}

// Unfavorite ends a favorite, also of a post that no longer exists. Favorites of posts of hidden users
// stay as they are: no one sees them.
func (t *Relations) Unfavorite(ctx context.Context, user storage.UserID, post storage.PostID) (Favored, error) {
	if post.Author != user && t.HiddenUsers.Has(post.Author) {
		return Favored{}, nil
	}
	return t.favorite(ctx, user, post, storage.None)
}

func (t *Relations) favorite(ctx context.Context, user storage.UserID, post storage.PostID, kind storage.EdgeType) (f Favored, err error) {
	changes := []storage.ItemChange{storage.Favorite(post, kind, t.at())}
	result := t.Store.ChangeItems(ctx, storage.Favorites, user, changes, storage.ItemOptions{Peace: true, Inverse: t.Redundancy.Inline()})[0]
	if result.Err != nil {
		return Favored{}, gone(user, result.Err)
	}
	changed := result.Value
	f = Favored{Row: changed.Row, Changed: changed.Changed, Inverse: changed.Inverse}
	if changed.Changed {
		f.Stale = t.Redundancy.Propagate(ctx, changed.Written()) != nil
	}
	return f, nil
}

// FavoritedByPlace is the place of a favorite among those of its post.
func FavoritedByPlace(e storage.Edge) storage.Place {
	return storage.Place{CreatedAt: e.UpdateTime, Number: int64(e.From)}
}
