package judge

import (
	"slices"

	"kith/storage"
)

// Diff is by how much a user's counts change, and the last day on which the change makes the user
// active.
type Diff struct {
	Following, Follower, Friend, Posts int64
	Favorites, Favorited               int64
	Active                             storage.Day
}

// Followed adds to the count of followers what the change of a row adds. A new follower makes the
// user active.
func (d *Diff) Followed(by int64, edge storage.Edge) {
	d.Follower += by
	if by > 0 {
		d.Active = max(d.Active, edge.UpdateTime.Day())
	}
}

// Diffs are the differences of the owners of changed rows, by user.
type Diffs map[storage.UserID]Diff

// counted are the changed rows, with what each adds to a count.
func (j *Judge) counted(yield func(at rowKey, diff int64) bool) {
	for at, was := range j.was {
		if !yield(at, Counted(j.rows[at].Type)-Counted(was.Type)) {
			return
		}
	}
}

// AddTo adds the differences that the changed rows make to the counts.
func (j *Judge) AddTo(diffs Diffs) {
	for at, diff := range j.counted {
		owner := at.side.Owner(at.pair)
		d := diffs[owner] // also if nothing differs: its version rises
		switch at.side {
		case storage.Forward:
			d.Following += diff
			d.Friend += j.friends(at.pair)
		case storage.Inverse:
			d.Followed(diff, j.rows[at])
			back := storage.Pair{From: at.pair.To, To: at.pair.From}
			if _, seen := j.was[rowKey{storage.Forward, back}]; !seen {
				d.Friend += j.friends(back)
			}
		case storage.Favorites:
			d.Favorites += diff
		case storage.FavoriteInbox:
			if j.Posts[at.pair.PostID()] {
				d.Favorited += diff
			}
		}
		d.Active = max(d.Active, j.acted[owner])
		diffs[owner] = d
	}
}

// friends is the difference that the changes make to the friend count of From on its shard: 1 if
// From and To now follow each other and did not before.
func (j *Judge) friends(pair storage.Pair) int64 {
	there := rowKey{storage.Forward, pair}
	back := rowKey{storage.Inverse, storage.Pair{From: pair.To, To: pair.From}}
	before := func(at rowKey) int64 {
		if was, changed := j.was[at]; changed {
			return Counted(was.Type)
		}
		return Counted(j.rows[at].Type)
	}
	return Counted(j.rows[there].Type)*Counted(j.rows[back].Type) - before(there)*before(back)
}

// Counted is what an edge of a type adds to its counts.
func Counted(t storage.EdgeType) int64 {
	return is(t, storage.Following)
}

// EndedFollows lists the follows that have ended and may have a mark, in the order of their key.
func (j *Judge) EndedFollows() []storage.Pair {
	var ended []storage.Pair
	for at, was := range j.was {
		if at.side == storage.Forward && was.Type == storage.Following && j.rows[at].Type != storage.Following &&
			(j.Marked == nil || j.Marked[at.pair]) {
			ended = append(ended, at.pair)
		}
	}
	slices.SortFunc(ended, storage.Forward.Compare)
	return ended
}

// KindDiffs are the differences that the changed rows make to the numbers of edges of kinds.
func (j *Judge) KindDiffs() map[storage.OwnerKind]storage.KindCount {
	diffs := make(map[storage.OwnerKind]storage.KindCount)
	for at, diff := range j.counted {
		if diff == 0 || at.side.Truth() != storage.Relations {
			continue
		}
		of := storage.OwnerKind{Owner: at.side.Owner(at.pair), Kind: at.pair.Item}
		n := diffs[of]
		if at.side == storage.Relations {
			n.Outgoing += diff
		} else {
			n.Incoming += diff
		}
		diffs[of] = n
	}
	return diffs
}

// PostDiffs are the differences that the changed rows make to the numbers of favorites of posts that
// exist. A difference may be 0: a favorite that ended and began again is at another place in lists.
func (j *Judge) PostDiffs() map[storage.PostID]int64 {
	diffs := make(map[storage.PostID]int64)
	for at, diff := range j.counted {
		post := at.pair.PostID()
		if _, exists := j.Posts[post]; exists && at.side == storage.FavoriteInbox {
			diffs[post] += diff
		}
	}
	return diffs
}
