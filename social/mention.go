package social

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"kith/storage"
)

// A mention is an edge from the author of a post to a user whose handle stands in the text behind an @. It is made after the post, on the
// author's shard, and replicated to that of the user, who is told of it. Nobody learns whom a post mentions but from its text.

// MaxMentions is how many users a post mentions, the first ones that its text names.
const MaxMentions = 20

// named is an @ that stands behind nothing of a handle or an address, and a handle.
var named = regexp.MustCompile(`(?:^|[^\w.@])@(\w+)`)

// Mentioned lists the handles that a text names, folded, each once, at most MaxMentions. One with an @ behind it is of another network.
func Mentioned(text string) (handles []string) {
	for _, at := range named.FindAllStringSubmatchIndex(text, -1) {
		handle := storage.FoldHandle(text[at[2]:at[3]])
		if storage.ValidHandle(handle) && !strings.HasPrefix(text[at[1]:], "@") && !slices.Contains(handles, handle) && len(handles) < MaxMentions {
			handles = append(handles, handle)
		}
	}
	return handles
}

// Mention tells users that a post, which exists, names them, at the time at: each once, however often it is called. It is no error if one of them
// is unknown, hidden, the author, or in a block with it: nothing is written then.
func (t *Relations) Mention(ctx context.Context, people storage.Answerer, post storage.PostID, others []storage.UserID, at storage.Micros) error {
	_, errs := t.present(ctx, people, post.Author, others)
	var changes []storage.EdgeChange
	for i, other := range others {
		switch {
		case errs[i] == nil:
			changes = append(changes, storage.EdgeChange{To: other, Item: post.Number, Type: storage.Mentioned, At: at})
		case !errors.Is(errs[i], ErrSelf) && !errors.Is(errs[i], storage.ErrUserUnknown):
			return errs[i]
		}
	}
	if len(changes) == 0 {
		return nil
	}
	var written []storage.Written
	for _, r := range t.Store.ChangeEdges(ctx, storage.Favorites, post.Author, changes, storage.ChangeOptions{Peace: true, Inverse: t.Redundancy.Inline()}) {
		if r.Err != nil && !errors.Is(r.Err, storage.ErrForbidden) {
			return gone(post.Author, r.Err)
		}
		written = append(written, r.Value.Written()...)
	}
	t.propagate(ctx, written)
	return nil
}
