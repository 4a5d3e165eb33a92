package storage

import (
	"cmp"
	"context"
	"math"
)

const (
	// MaxLists is how many lists a user may have.
	MaxLists = 1000
	// MaxListName is how many characters the name of a list may have.
	MaxListName = 60

	// MaxListNumber is the greatest number of a list, so that its kind fits.
	MaxListNumber = math.MaxInt64 - firstList

	firstList int64 = 1 << 20
)

// ListID names a list: Number is the time at which it was created, or later if its owner has created two at once.
type ListID struct {
	Owner  UserID
	Number int64
}

// Kind is the number of the kind of relations that lead from the owner to the members.
func (id ListID) Kind() int64 { return firstList + id.Number }

// List is the list to whose members the kind leads from the owner; false if it is not the kind of a list: then it stands for
// those to whom edges of that kind lead, and its Number is not positive.
func (k OwnerKind) List() (ListID, bool) {
	return ListID{k.Owner, k.Kind - firstList}, k.Kind > firstList
}

// UserList is a list of users. Its members are relations of its [ListID.Kind].
type UserList struct {
	ListID
	Name   string // 1 to [MaxListName] characters
	Public bool   // everybody may see it, otherwise only the owner
}

// ListChange holds the new values; nil leaves a value as it is.
type ListChange struct {
	Name   *string
	Public *bool
}

// Apply changes a list accordingly.
func (c ListChange) Apply(to *UserList) {
	set(&to.Name, c.Name)
	set(&to.Public, c.Public)
}

// ListsQuery asks for lists of an owner, newest first.
type ListsQuery struct {
	Owner  UserID
	UpTo   int64 // only lists with this number or a lower one
	Public bool  // only public ones
	Limit  int
}

// ListLookups reads lists of owners, on the owners' shards. Every query is Found.
var ListLookups = NewKind[ListsQuery, []UserList]("lists", nil)

// listStore keeps the lists of users.
type listStore interface {
	// CreateList creates an empty list. Its number is the given one or, unless that is greater, the number of the owner's newest
	// list plus 1. If the owner has a list with this name that the same may see, CreateList returns the newest of them instead.
	// [ErrUserUnknown]; [ErrLimitReached] beyond [MaxLists] and [MaxListNumber].
	CreateList(ctx context.Context, list UserList) (made UserList, created bool, err error)

	// UpdateList changes a list's name or who may see it, and returns the list as it is afterwards. [ErrListUnknown].
	UpdateList(ctx context.Context, id ListID, change ListChange) (list UserList, changed bool, err error)

	// DeleteList removes a list that has no members; otherwise nothing is removed. [ErrListUnknown]. From then on
	// ChangeEdges adds no members: they get [ErrListUnknown].
	DeleteList(ctx context.Context, id ListID) (deleted bool, err error)
}

// Compare orders lists of one owner, newest first.
func (l UserList) Compare(m UserList) int { return cmp.Compare(m.Number, l.Number) }
