package model

import (
	"time"

	"kith/storage"
)

// List is a list of users.
type List struct{ Row storage.UserList }

func (*List) IsNode() {}

// ID has the number that distinguishes the lists of one owner.
func (l *List) ID() string {
	return "list_" + l.Row.Owner.String() + "_" + storage.UserID(l.Row.Number).String()
}

func (l *List) Name() string         { return l.Row.Name }
func (l *List) Public() bool         { return l.Row.Public }
func (l *List) CreatedAt() time.Time { return storage.Micros(l.Row.Number).Time() }
