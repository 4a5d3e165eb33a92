package social

import (
	"context"
	"errors"
	"fmt"

	"kith/storage"
)

// Favorite makes a post a favorite of a user. [storage.ErrPostUnknown] if the post does not exist, or if
// the user may not see it. stale: the author's side lags for a reason that waiting does not repair.
func (t *Relations) Favorite(ctx context.Context, people storage.Answerer, user storage.UserID, post storage.PostID) (changed storage.Changed, stale bool, err error) {
	if err := mayReach(ctx, people, NewAudience(user, t.HiddenUsers, nil), post.Author)[0]; err != nil {
		return changed, false, err
	}
	switch r := storage.PostLookups.Read(ctx, t.Store, post)[0]; {
	case r.Err != nil:
		return changed, false, r.Err
	case !r.Found:
		return changed, false, fmt.Errorf("%w: %d of user %s", storage.ErrPostUnknown, post.Number, post.Author)
	}
	changed, stale, err = t.favorite(ctx, user, post, storage.Favorited)
	if errors.Is(err, storage.ErrForbidden) {
		err = fmt.Errorf("%w: %w", storage.ErrPostUnknown, err)
	}
	return changed, stale, err
}

// Unfavorite ends a favorite, also of a post that no longer exists. For a post of a hidden user it does not tell whether there
// was one: a user who has been deleted has none.
func (t *Relations) Unfavorite(ctx context.Context, user storage.UserID, post storage.PostID) (changed storage.Changed, stale bool, err error) {
	changed, stale, err = t.favorite(ctx, user, post, storage.None)
	changed.Changed = changed.Changed && (post.Author == user || !t.HiddenUsers.Has(post.Author))
	return changed, stale, err
}

func (t *Relations) favorite(ctx context.Context, user storage.UserID, post storage.PostID, kind storage.EdgeType) (changed storage.Changed, stale bool, err error) {
	changes := []storage.EdgeChange{post.Favorite(kind, t.at())}
	result := t.Store.ChangeEdges(ctx, storage.Favorites, user, changes, storage.ChangeOptions{Peace: true, Inverse: t.Redundancy.Inline()})[0]
	if result.Err != nil {
		return changed, false, gone(user, result.Err)
	}
	changed = result.Value
	return changed, changed.Changed && t.propagate(ctx, changed.Written()), nil
}

// FavoritedByPlace is the place of a favorite among those of its post.
func FavoritedByPlace(e storage.Edge) storage.Place {
	return storage.Place{CreatedAt: e.UpdateTime, Number: int64(e.From)}
}
