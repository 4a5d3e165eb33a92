package judge

import (
	"fmt"
	"slices"

	"kith/storage"
)

// Items judges a user's changes of edges that name items, one after another, see [storage.ItemChanger]. The rows of the changes are
// known, and with [storage.ItemOptions].Peace those between the user and the other ends. Of each kind, outgoing has how many edges
// leave the user. It returns when the user has changed something itself; 0: not at all.
func (j *Judge) Items(
	side storage.Side, user storage.UserID, changes []storage.ItemChange, o storage.ItemOptions, outgoing map[int64]int64, results []storage.Result[storage.Changed],
) (active storage.Micros) {
	for i, ch := range changes {
		if ch.With && results[i-1].Err != nil {
			results[i] = storage.Result[storage.Changed]{Err: results[i-1].Err}
			continue
		}
		if results[i] = j.item(side, user, ch, o, outgoing); results[i].Value.Changed && !ch.IfDue {
			active = max(active, ch.At)
		}
	}
	return active
}

func (j *Judge) item(side storage.Side, user storage.UserID, ch storage.ItemChange, o storage.ItemOptions, outgoing map[int64]int64) storage.Result[storage.Changed] {
	pair := storage.Pair{From: user, To: ch.To, Post: ch.Item}
	old, _ := j.row(side, pair)
	unchanged := storage.Result[storage.Changed]{Value: storage.Changed{Row: old}, Found: true}
	var detail storage.Detail
	var tooLong error
	was := j.Details[pair]
	if ch.Type != storage.None {
		detail, tooLong = ch.Detail.Apply(was)
	}
	switch {
	case tooLong != nil:
		return storage.Result[storage.Changed]{Err: tooLong}
	case ch.IfDue && (old.Type == storage.None || was.EndsAt == 0 || was.EndsAt > ch.At):
		return unchanged
	case old.Type == ch.Type && detail == was:
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
		j.Details[pair] = detail
	}
	written := j.propagate([]storage.Written{{Row: storage.Row{Side: side, Edge: j.Now(side, pair)}}})
	changed := storage.Changed{Row: written[0].Edge, Side: side, Changed: true, Inverse: written[0].Inverse, Kept: old.Type == ch.Type}
	return storage.Result[storage.Changed]{Value: changed, Found: true}
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
