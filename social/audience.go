package social

import (
	"slices"
	"sync"

	"kith/graph/why"
	"kith/storage"
	"kith/storage/cache/idset"
)

// HiddenUsers are the users whom no other user sees for now: those who have deactivated their
// accounts, and those who are being deleted.
type HiddenUsers interface {
	Has(id storage.UserID) bool
	IDs() []storage.UserID // ascending; not to be changed
}

// Audience is for whom an answer is made: the viewer, and the users whom the answer must not show.
// The zero Audience is a viewer who is not signed in, and hides nobody.
type Audience struct {
	Viewer storage.UserID // 0: the viewer is not signed in

	noticed Noticed
	absent  HiddenUsers
	blocks  []storage.UserID // in a block with the viewer, ascending, without itself

	once   sync.Once
	hidden []storage.UserID

	setsMu sync.Mutex
	sets   hiddenSets
}

// NewAudience makes the audience of one request. absent may be nil; blocks are those
// of [storage.BlockLookups].
func NewAudience(viewer storage.UserID, absent HiddenUsers, blocks []storage.UserID) *Audience {
	if has(blocks, viewer) {
		blocks = slices.DeleteFunc(slices.Clone(blocks), func(id storage.UserID) bool { return id == viewer })
	}
	return &Audience{Viewer: viewer, absent: absent, blocks: blocks}
}

// Noticed is told which users something does not show, and by which rule. nil: nobody asks.
type Noticed func(rule why.Rule, about storage.UserID)

// Noticing is the same audience, and tells whom it hides.
func (a *Audience) Noticing(noticed Noticed) *Audience {
	return &Audience{Viewer: a.Viewer, noticed: noticed, absent: a.absent, blocks: a.blocks}
}

// asked reports whether somebody asks whom the audience does not see.
func (a *Audience) asked() bool { return a.noticed != nil }

// quiet is the same audience where what it hides is not of the answer, or is noticed later.
func (a *Audience) quiet() *Audience {
	if a.asked() {
		return a.Noticing(nil)
	}
	return a
}

// notice tells that a rule, if it does so, hides a user.
func (a *Audience) notice(hides bool, rule why.Rule, id storage.UserID) bool {
	if hides && a.asked() {
		a.noticed(rule, id)
	}
	return hides
}

// Hides reports whether a user must not be shown: a hidden user, or a user in a block with the
// viewer. The viewer always sees itself.
func (a *Audience) Hides(id storage.UserID) bool {
	return a.notice(a.InBlock(id), why.Block, id) || a.notice(a.IsAbsent(id), why.Hidden, id)
}

// leavesOut reports whether a user is hidden, or on a list of muted users.
func (a *Audience) leavesOut(id storage.UserID, muted []storage.UserID) bool {
	return a.notice(has(muted, id), why.Mute, id) || a.Hides(id)
}

// InBlock reports whether a user blocks the viewer, or is blocked by the viewer.
func (a *Audience) InBlock(id storage.UserID) bool {
	return has(a.blocks, id)
}

// has reports whether an id is among ascending ones.
func has(ids []storage.UserID, id storage.UserID) bool {
	_, found := slices.BinarySearch(ids, id)
	return found
}

// IsAbsent reports whether a user is hidden from all other users.
func (a *Audience) IsAbsent(id storage.UserID) bool {
	return a.absent != nil && id != a.Viewer && a.absent.Has(id)
}

// Hidden lists all users whom the audience must not be shown, ascending. It is made
// once; see HidesAtMost for how long it is.
func (a *Audience) Hidden() []storage.UserID {
	a.once.Do(func() {
		a.hidden = slices.Clone(a.blocks)
		if a.absent != nil {
			a.hidden = append(a.hidden, a.absent.IDs()...)
		}
		a.hidden = storage.Distinct(a.hidden)
		if at, found := slices.BinarySearch(a.hidden, a.Viewer); found {
			a.hidden = slices.Delete(a.hidden, at, at+1)
		}
	})
	return a.hidden
}

// HidesAtMost bounds the length of Hidden without making it.
func (a *Audience) HidesAtMost() int {
	n := len(a.blocks)
	if a.absent != nil {
		n += len(a.absent.IDs())
	}
	return n
}

// hidesAny reports whether any user may be hidden at all.
func (a *Audience) hidesAny() bool { return a.absent != nil || len(a.blocks) > 0 }

// showing lists those users whom the audience may be shown; ids is not changed.
func (a *Audience) showing(ids []storage.UserID) []storage.UserID {
	if !a.hidesAny() || !slices.ContainsFunc(ids, a.Hides) {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), a.Hides)
}

// Who may see a list: always its owner; others as the owner has set it
// ([storage.User.ListVisibility]), unless one of the two blocks the other.
//
// An edge X → Y is on two lists, the followings of X and the followers of Y, and is visible if one
// of them is open. An answer that is derived from lists (common lists, friends, people,
// suggestions) needs every list that it reads to be open: otherwise it would reveal edges that are
// in no open list.

// PostsOf stands for the posts and the favorites of a user: they are open as a list is, if the user is not hidden.
func PostsOf(user storage.UserID) List { return List{storage.FavoriteInbox, user} }

// Owns reports whether a list is the viewer's own, which is open without reading its owner.
func (a *Audience) Owns(l List) bool { return a.Viewer != 0 && l.Owner == a.Viewer }

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
	switch owner.ListVisibility(l.Side) {
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
	return a.Viewer != 0 && !a.Owns(l) && !a.InBlock(l.Owner) &&
		owner.ListVisibility(l.Side) == storage.ToFollowers
}

// Hidden users are subtracted from numbered sets as sets. The set of absent users is the same
// for all viewers and is kept with the numbers of the users; the set of the viewer's
// blocks is made once for an answer. Plain sets are short; their users are checked one
// by one.
//
// A user who was erased more than an hour ago is in neither set. Only a late event can write an edge to such a user,
// which stays until it is repaired: the total of a long list may count it,
// as the owner's counts do, but no page shows it.

// hiddenSets are the users whom an audience must not be shown, as disjoint sets.
type hiddenSets [2]*idset.Set

// hiddenIn returns the sets by the numbers of a directory; none if nobody is hidden.
func (a *Audience) hiddenIn(dir *idset.Directory) []*idset.Set {
	if a.HidesAtMost() == 0 {
		return nil
	}
	a.setsMu.Lock()
	defer a.setsMu.Unlock()
	if a.sets[0] == nil || a.sets[0].Directory() != dir {
		a.sets = hiddenSets{dir.Known(nil), idset.Build(dir, slices.DeleteFunc(slices.Clone(a.blocks), a.IsAbsent))}
		if a.absent != nil {
			a.sets[0] = dir.Remember(a.absent.IDs()).Remove(a.Viewer)
		}
	}
	return a.sets[:]
}

// shownOf is a term of numbered sets, without hidden users.
func (a *Audience) shownOf(dir *idset.Directory, t idset.Term) idset.Term {
	shown := idset.Term{All: slices.Clone(t.All)}
	if len(t.All) == 0 {
		shown.All = []idset.Term{t}
	}
	for _, hidden := range a.hiddenIn(dir) {
		shown.All = append(shown.All, idset.Term{Set: hidden, Not: true})
	}
	return shown
}

// noticeOn tells which users of a term are hidden, where they are only counted.
func (a *Audience) noticeOn(t idset.Term) {
	if a.asked() {
		ids, _ := idset.Select(idset.Term{All: []idset.Term{t, {Set: idset.Of(a.Hidden())}}}, 0, why.Most)
		a.showing(ids)
	}
}

// hiddenOn counts the users of a list who are hidden.
func (g *Graph) hiddenOn(list *idset.Set) (n int) {
	a := g.audience
	switch dir := list.Directory(); {
	case a.HidesAtMost() <= g.sizes.fewHidden:
		for _, id := range a.Hidden() {
			if list.Contains(id) {
				n++
			}
		}
	case dir == nil:
		n = list.Len() - len(a.showing(list.IDs()))
	default:
		for _, hidden := range a.hiddenIn(dir) {
			n += idset.Common(list, hidden)
		}
	}
	return n
}
