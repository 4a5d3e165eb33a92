package reconcile

import (
	"context"

	"kith/storage"
)

// countsOff is by how much a user's counts are off because rows of follower or of favorite_inbox are
// wrong: counts are updated by writes, and they are compared with these rows.
type countsOff struct{ Followers, Friends, Favorited int32 }

// countsOff computes this from findings. A row that is missing or superfluous also removes or adds
// a friend if its owner follows back.
func (f *full) countsOff(ctx context.Context, found []Finding) (map[storage.UserID]countsOff, error) {
	var users []storage.UserID
	var diffs []int32
	var back []Key
	for _, d := range found {
		diff := counted(d.Forward) - counted(d.Inverse)
		if d.Side != storage.Forward || diff == 0 {
			continue
		}
		users, diffs = append(users, d.Forward.To), append(diffs, diff)
		back = append(back, Key{storage.Forward, reversed(d.Pair())})
	}
	if len(users) == 0 {
		return nil, nil
	}
	var rows []storage.Result[storage.Edge]
	err := whileAway(ctx, func() error {
		rows = readRows(ctx, f.store, back, storage.Side.Truth)
		for _, r := range rows {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	off := make(map[storage.UserID]countsOff)
	for i, id := range users {
		was := off[id]
		off[id] = countsOff{Followers: was.Followers + diffs[i], Friends: was.Friends + diffs[i]*counted(rows[i].Value)}
	}
	return off, nil
}

// favoritesOff computes the same for the counts of posts, and adds to those of their authors. A post
// that has been deleted counts no longer for its author.
func (f *full) favoritesOff(ctx context.Context, found []Finding, off map[storage.UserID]countsOff) (map[storage.UserID]countsOff, map[storage.PostID]int32, error) {
	posts := make(map[storage.PostID]int32)
	var ids []storage.PostID
	for _, d := range found {
		diff := counted(d.Forward) - counted(d.Inverse)
		if d.Side != storage.Favorites || diff == 0 {
			continue
		}
		id := d.Pair().PostID()
		if _, known := posts[id]; !known {
			ids = append(ids, id)
		}
		posts[id] += diff
	}
	if len(ids) == 0 {
		return off, nil, nil
	}
	if off == nil {
		off = make(map[storage.UserID]countsOff)
	}
	err := whileAway(ctx, func() error {
		results := f.cfg.Store.Posts(ctx, ids)
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		for i, r := range results {
			if was := off[ids[i].Author]; r.Found {
				was.Favorited += posts[ids[i]]
				off[ids[i].Author] = was
			}
		}
		return nil
	})
	return off, posts, err
}

// counted is what an edge adds to a count.
func counted(e storage.Edge) int32 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}
