package reconcile

import (
	"context"

	"kith/storage"
)

// countsOff is by how much a user's counts are off because rows of follower are wrong: counts are
// updated by writes, and they are compared with these rows.
type countsOff struct{ Followers, Friends int32 }

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
