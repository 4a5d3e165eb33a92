package graphfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kith/accounts"
	"kith/storage"
	"kith/storage/contents"
)

// Why a record of a users file is refused.
var (
	ErrColumns    = errors.New("want " + strings.Join(userColumns[:defaultColumns], ","))
	ErrHandle     = fmt.Errorf("a handle must be 1 to %d of a-z, 0-9 and _", storage.MaxHandleLength)
	ErrHandleOfID = errors.New("the handle u and digits belongs to the user with that id")
)

// userColumns are all columns of a users file. A file without a header has the first few of them.
var userColumns = UserFormat.names()

const defaultColumns = 5

var (
	visibilities = []string{storage.ToEveryone: "everyone", storage.ToFollowers: "followers", storage.ToNobody: "nobody"}
	states       = []string{storage.Active: "active", storage.Deactivated: "deactivated", storage.Deleting: "deleting"}
)

// Columns reports at which place of a record each field of a user is, −1 for none.
type Columns []int

// DefaultColumns are those of a file without a header.
func DefaultColumns() Columns { return placesIn(userColumns[:defaultColumns]) }

func placesIn(names []string) Columns {
	return storage.Each(userColumns, func(name string) int { return slices.Index(names, name) })
}

// ParseColumns reads the header of a users file. It returns nil for a line that is none: one without
// the columns id and handle, unless it has nothing but other columns of users.
func ParseColumns(line []byte) (Columns, error) {
	names := columnsOf(line)
	if !slices.Contains(names, "id") || !slices.Contains(names, "handle") {
		isOther := func(name string) bool { return !slices.Contains(userColumns, name) }
		if len(names) < 2 || slices.ContainsFunc(names, isOther) {
			return nil, nil
		}
		return nil, fmt.Errorf("users need the columns id and handle, and it has %s", strings.Join(names, ","))
	}
	for i, name := range names {
		if !slices.Contains(userColumns, name) {
			return nil, fmt.Errorf("unknown column %q; the columns are %s", name, strings.Join(userColumns, ","))
		}
		if slices.Index(names, name) != i {
			return nil, fmt.Errorf("the column %q occurs twice", name)
		}
	}
	return placesIn(names), nil
}

// BeginWithText reports whether the first column is a text, which may begin like a comment.
func (places Columns) BeginWithText() bool {
	first := slices.Index(places, 0)
	return first >= 0 && slices.ContainsFunc(storage.UserTexts[:], func(t storage.UserText) bool { return t.Column == userColumns[first] })
}

// User reads a record, see [Columns.Reader].
func (places Columns) User(record []string) (contents.Account, error) {
	return places.Reader()(record)
}

// Reader returns a function that reads records, one at a time. Handles are folded to lower case; a user without a name is called by the
// handle. Names, bios and avatar URLs have the bounds of those that users write. Invisible characters are taken out. Times that the record
// does not have are 0.
func (places Columns) Reader() func(record []string) (contents.Account, error) {
	u, most := new(contents.Account), slices.Max(places)+1
	columns := UserFormat.columns(u) // made once: they are half of the work
	return func(record []string) (contents.Account, error) {
		*u = contents.Account{}
		if len(record) < 2 || len(record) > most {
			return *u, ErrColumns
		}
		for i, c := range columns {
			text := ""
			if at := places[i]; at >= 0 && at < len(record) {
				text = record[at]
			}
			if err := c.read(text); err != nil {
				return *u, err
			}
		}
		err := UserFormat.check(u)
		return *u, err
	}
}

func checkHandle(u storage.User) error {
	switch {
	case !storage.ValidHandle(u.Handle):
		return ErrHandle
	case !u.ID.MayUse(u.Handle):
		return ErrHandleOfID
	}
	return nil
}

// UserFormat is the format of users with all columns. [Columns.User] reads its records, and those with fewer columns.
var UserFormat = Format[contents.Account]{Users, func(row *contents.Account) []column {
	u := &row.User
	columns := []column{id("id", &u.ID), plain("handle", &u.Handle)}
	for i, text := range u.Texts() {
		columns = append(columns, plain(storage.UserTexts[i].Column, text))
	}
	return append(columns,
		ifGiven(moment("created_at", &u.CreatedAt)), ifGiven(moment("updated_at", &u.UpdatedAt)),
		ifGiven(word("followings_visibility", &u.FollowingsVisibility, visibilities)), ifGiven(word("followers_visibility", &u.FollowersVisibility, visibilities)),
		ifGiven(truth("discoverable", &u.Undiscoverable, false)), ifGiven(word("state", &row.State, states)), ifGiven(truth("locked", &u.Locked, true)), attributes(&u.Attributes),
	)
}, func(row *contents.Account) error {
	u := &row.User
	u.Handle = storage.FoldHandle(strings.TrimSpace(u.Handle))
	if err := checkHandle(*u); err != nil {
		return err
	}
	u.UpdatedAt = max(u.CreatedAt, u.UpdatedAt)
	var change storage.ProfileChange
	texts := change.Texts()
	for i, text := range u.Texts() {
		switch t := storage.UserTexts[i]; {
		case t.IsName:
			*text = cmp.Or(accounts.SeenOnly(*text), u.Handle)
		case t.Schemes != nil:
			*text = accounts.SeenURL(*text)
		}
		*texts[i] = text
	}
	change, err := accounts.CheckProfile(change)
	if err != nil {
		return err
	}
	return change.Apply(u)
}}
