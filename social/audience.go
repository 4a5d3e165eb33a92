package social

import (
	"slices"
	"sync"

	"kith/storage"
)

// HiddenUsers are the users whom no other user sees for now: those who have deactivated their
// accounts, and those who are being deleted.
type HiddenUsers interface {
	Has(id storage.UserID) bool
	IDs() []storage.UserID // ascending; not to be changed
}

// Audience is for whom an answer is made: the viewer, and the users whom the answer must not show.
// A nil Audience is a viewer who is not signed in, and hides nobody.
type Audience struct {
	Viewer storage.UserID // 0: the viewer is not signed in

	absent HiddenUsers
	blocks []storage.UserID // in a block with the viewer, ascending

	once   sync.Once
	hidden []storage.UserID

	setsMu sync.Mutex
	sets   hiddenSets
}

// NewAudience makes the audience of one request. absent may be nil; blocks are those
// of [storage.RelationReader].
func NewAudience(viewer storage.UserID, absent HiddenUsers, blocks []storage.UserID) *Audience {
	return &Audience{Viewer: viewer, absent: absent, blocks: blocks}
}

// Hides reports whether a user must not be shown: a hidden user, or a user in a block with the
// viewer. The viewer always sees itself.
func (a *Audience) Hides(id storage.UserID) bool { return a.InBlock(id) || a.IsAbsent(id) }

// InBlock reports whether a user blocks the viewer, or is blocked by the viewer.
func (a *Audience) InBlock(id storage.UserID) bool {
	if a == nil {
		return false
	}
	_, found := slices.BinarySearch(a.blocks, id)
	return found && id != a.Viewer
}

// IsAbsent reports whether a user is hidden from all other users.
func (a *Audience) IsAbsent(id storage.UserID) bool {
	return a != nil && a.absent != nil && id != a.Viewer && a.absent.Has(id)
}

// Hidden lists all users whom the audience must not be shown, ascending. It is made
// once; see HidesAtMost for how long it is.
func (a *Audience) Hidden() []storage.UserID {
	if a == nil {
		return nil
	}
	a.once.Do(func() {
		a.hidden = slices.Clone(a.blocks)
		if a.absent != nil {
			a.hidden = append(a.hidden, a.absent.IDs()...)
		}
		slices.Sort(a.hidden)
		a.hidden = slices.Compact(a.hidden)
		if at, found := slices.BinarySearch(a.hidden, a.Viewer); found {
			a.hidden = slices.Delete(a.hidden, at, at+1)
		}
	})
	return a.hidden
}

// HidesAtMost bounds the length of Hidden without making it.
func (a *Audience) HidesAtMost() int {
	if a == nil {
		return 0
	}
	n := len(a.blocks)
	if a.absent != nil {
		n += len(a.absent.IDs())
	}
	return n
}

// hidesAny reports whether any user may be hidden at all.
func (a *Audience) hidesAny() bool { return a != nil && (a.absent != nil || len(a.blocks) > 0) }

// showing lists those users whom the audience may be shown; ids is not changed.
func (a *Audience) showing(ids []storage.UserID) []storage.UserID {
	if !a.hidesAny() || !slices.ContainsFunc(ids, a.Hides) {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), a.Hides)
}
