package reconcile

import (
	"context"

	"kith/storage"
)

// A count is one of the counts of a user or, if Of has a number, of a post or a kind.
type count struct {
	Which int
	Of    storage.PostID
}

func countOf(which int, user storage.UserID) count {
	return count{which, storage.PostID{Author: user}}
}

// explain computes by how much counts are off because rows of follower, favorite_inbox or relation_inbox are
// wrong: counts are updated by writes, and they are compared with these rows. A row that is missing or superfluous also
// removes or adds a friend if its owner follows back.
func (f *full) explain(ctx context.Context, found []Finding) (map[count]int64, error) {
	off := make(map[count]int64)
	var back []Key
	var diffs []int64
	var posts []storage.PostID
	for _, d := range found {
		diff := counted(d.Forward) - counted(d.Inverse)
		switch {
		case diff == 0:
		case d.Side == storage.Forward:
			off[countOf(followers, d.Forward.To)] += diff
			back, diffs = append(back, Key{storage.Forward, reversed(d.Pair())}), append(diffs, diff)
		case d.Side == storage.Favorites:
			of := count{ofPosts, d.Pair().PostID()}
			if _, known := off[of]; !known {
				posts = append(posts, of.Of)
			}
			off[of] += diff
		case d.Side == storage.Relations:
			off[count{incoming, storage.PostID{Author: d.Forward.To, Number: d.Forward.Post}}] += diff
		}
	}
	err := whileAway(ctx, func() error {
		rows := readRows(ctx, f.store, back, storage.Side.Truth)
		if err := errorOf(rows); err != nil {
			return err
		}
		for i, r := range rows {
			off[countOf(friends, back[i].Pair.From)] += diffs[i] * counted(r.Value)
		}
		return nil
	})
	if err != nil || len(posts) == 0 {
		return off, err
	}
	return off, whileAway(ctx, func() error {
		results := f.cfg.Store.Posts(ctx, posts)
		if err := errorOf(results); err != nil {
			return err
		}
		for i, r := range results {
			if r.Found { // a post that has been deleted counts no longer for its author
				off[countOf(favorited, posts[i].Author)] += off[count{ofPosts, posts[i]}]
			}
		}
		return nil
	})
}

// errorOf is the first error of results.
func errorOf[T any](results []storage.Result[T]) error {
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// counted is what an edge adds to a count.
func counted(e storage.Edge) int64 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}
