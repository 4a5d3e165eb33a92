package judge

import (
	"fmt"
	"slices"

	"kith/storage"
)

// Item judges a user's change of an edge that names an item, see [storage.ItemChanger]. The rows of the change are known, and with
// [storage.ItemOptions].Peace those between the user and the other end. Of each kind, outgoing has how many edges leave the user.
func (j *Judge) Item(side storage.Side, user storage.UserID, ch storage.ItemChange, o storage.ItemOptions, outgoing map[int64]int64) storage.Result[storage.Changed] {
	pair := storage.Pair{From: user, To: ch.To, Post: ch.Item}
	old, _ := j.row(side, pair)
	unchanged := storage.Result[storage.Changed]{Value: storage.Changed{Row: old}, Found: true}
	detail := j.Details[pair]
	switch {
	case ch.IfDue && (old.Type == storage.None || detail.EndsAt == 0 || detail.EndsAt > ch.At):
		return unchanged
	case old.Type == ch.Type && (ch.Type == storage.None || detail == ch.Detail):
		return unchanged
	case old.Type == ch.Type:
		j.put(side, old) // its time stays
	case ch.Type == storage.None:
		j.turn(side, pair, storage.None, ch.At)
		outgoing[ch.Item]--
	case slices.Contains(j.NoLists, ch.Item):
		return storage.Result[storage.Changed]{Err: fmt.Errorf("%w: kind %d of user %s", storage.ErrListUnknown, ch.Item, user)}
	case o.Peace && user != ch.To && j.blocked(user, ch.To):
		return storage.Result[storage.Changed]{Err: forbidden(pair)}
	case o.Max > 0 && outgoing[ch.Item] >= o.Max:
		return storage.Result[storage.Changed]{Err: fmt.Errorf("%w: user %s has %d of kind %d", storage.ErrLimitReached, user, outgoing[ch.Item], ch.Item)}
	default:
		j.turn(side, pair, ch.Type, ch.At)
		outgoing[ch.Item]++
	}
	if side == storage.Relations {
		j.Details[pair] = ch.Detail
	}
	written := j.propagate([]storage.Written{{Row: storage.Row{Side: side, Edge: j.Now(side, pair)}}})
	return storage.Result[storage.Changed]{Value: storage.Changed{Row: written[0].Edge, Side: side, Changed: true, Inverse: written[0].Inverse}, Found: true}
}

// PostDiffs are the differences that the changed rows make to the numbers of favorites of posts that
// exist.
func (j *Judge) PostDiffs() map[storage.PostID]int64 {
	var diffs map[storage.PostID]int64
	for at, was := range j.was {
		if at.side != storage.FavoriteInbox {
			continue
		}
		diff := Counted(j.rows[at].Type) - Counted(was.Type)
		post := at.pair.PostID()
		if _, exists := j.Posts[post]; !exists || diff == 0 {
			continue
		}
		if diffs == nil {
			diffs = make(map[storage.PostID]int64)
		}
		diffs[post] += diff
	}
	return diffs
}
