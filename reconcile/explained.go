package reconcile

import (
	"context"

	"kith/storage"
)

// countsOff is by how much the counts of a user are off, because of rows of follower
// that disagree: counts are kept by writes, and those rows are what they are compared
// with.
type countsOff struct{ Followers, Friends int32 }

// countsOff computes that from findings. A row that should be there, or should not,
// also adds a friend or takes one where its owner follows back.
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
		off[id] = countsOff{was.Followers + diffs[i], was.Friends + diffs[i]*counted(rows[i].Value)}
	}
	return off, nil
}

// counted is what an edge adds to a count.
func counted(e storage.Edge) int32 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}
