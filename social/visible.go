package social

import "kith/storage"

// Who may see a list: always its owner; others as the owner has set it
// ([storage.Visibility]), unless one of the two blocks the other.
//
// An edge X → Y is on two lists, the followings of X and the followers of Y, and is visible if one
// of them is open. An answer that is derived from lists (common lists, friends, people,
// suggestions) needs every list that it reads to be open: otherwise it would reveal edges that are
// in no open list.

// Owns reports whether a list is the viewer's own, which is open without reading its owner.
func (a *Audience) Owns(l List) bool { return a != nil && a.Viewer != 0 && l.Owner == a.Viewer }

// Opens reports whether a list is open to the audience. owner is the owner's row,
// zero if the owner is unknown; follows reports whether the viewer follows the owner,
// which matters only if [Audience.NeedsFollow] says so.
func (a *Audience) Opens(l List, owner storage.User, follows bool) bool {
	switch {
	case a.Owns(l):
		return true
	case a.InBlock(l.Owner):
		return false
	}
	switch visibilityOf(l.Side, owner) {
	case storage.ToEveryone:
		return true
	case storage.ToFollowers:
		return follows
	}
	return false
}

// NeedsFollow reports whether a list's visibility depends on the viewer following
// its owner.
func (a *Audience) NeedsFollow(l List, owner storage.User) bool {
	return a != nil && a.Viewer != 0 && !a.Owns(l) && !a.InBlock(l.Owner) &&
		visibilityOf(l.Side, owner) == storage.ToFollowers
}

func visibilityOf(side storage.Side, owner storage.User) storage.Visibility {
	if side.IsInverse() {
		return owner.FollowersVisibility
	}
	return owner.FollowingsVisibility
}
