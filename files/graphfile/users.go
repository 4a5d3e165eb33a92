package graphfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kith/accounts"
	"kith/storage"
)

// Why a record of a users file is refused.
var (
	ErrColumns    = errors.New("want " + strings.Join(columnNames[:defaultColumns], ","))
	ErrHandle     = fmt.Errorf("a handle must be 1 to %d of a-z, 0-9 and _", storage.MaxHandleLength)
	ErrHandleOfID = errors.New("the handle u and digits belongs to the user with that id")
)

// columnNames are all columns of a users file. A file without a header has the first few of them.
var columnNames = []string{
	"id", "handle", "name", "bio", "avatar_url",
	"created_at", "updated_at", "followings_visibility", "followers_visibility", "discoverable", "state",
}

const defaultColumns = 5

var (
	visibilities = []string{storage.ToEveryone: "everyone", storage.ToFollowers: "followers", storage.ToNobody: "nobody"}
	states       = []string{storage.Active: "active", storage.Deactivated: "deactivated", storage.Deleting: "deleting"}
)

// Columns reports at which place of a record each field of a user is, −1 for none.
type Columns []int

// DefaultColumns are those of a file without a header.
func DefaultColumns() Columns {
	places := make(Columns, len(columnNames))
	for i := range places {
		if places[i] = i; i >= defaultColumns {
			places[i] = -1
		}
	}
	return places
}

// ParseColumns reads the header of a users file. It returns nil for a line that is none: one without
// the columns id and handle.
func ParseColumns(line []byte) (Columns, error) {
	names := columnsOf(line)
	if !slices.Contains(names, "id") || !slices.Contains(names, "handle") {
		return nil, nil
	}
	places := make(Columns, len(columnNames))
	for i, name := range columnNames {
		places[i] = slices.Index(names, name)
	}
	for i, name := range names {
		if !slices.Contains(columnNames, name) {
			return nil, fmt.Errorf("unknown column %q; the columns are %s", name, strings.Join(columnNames, ","))
		}
		if slices.Index(names, name) != i {
			return nil, fmt.Errorf("the column %q occurs twice", name)
		}
	}
	return places, nil
}

// User reads a record. Handles are folded to lower case; a user without a name is called by the
// handle. Names, bios and avatar URLs have to be as those that users write, except that what is not seen is taken out. Times that the record
// does not have are 0.
func (places Columns) User(record []string) (u storage.UserWithState, err error) {
	if len(record) < 2 || len(record) > slices.Max(places)+1 {
		return u, ErrColumns
	}
	f := &fields{columns: columnNames, record: make([]string, len(columnNames))}
	for i, at := range places {
		if at >= 0 && at < len(record) {
			f.record[i] = record[at]
		}
	}
	u.User.ID, u.User.Handle = f.id(0), storage.FoldHandle(f.bare(1))
	name, bio, avatar := accounts.SeenOnly(f.bare(2)), f.bare(3), accounts.SeenOnly(f.bare(4))
	f.check(checkHandle(u.User))
	u.User.CreatedAt, u.User.UpdatedAt = f.timeOrNone(5), f.timeOrNone(6)
	u.User.UpdatedAt = max(u.User.CreatedAt, u.User.UpdatedAt)
	u.User.FollowingsVisibility = storage.Visibility(f.wordOr(7, visibilities, 0))
	u.User.FollowersVisibility = storage.Visibility(f.wordOr(8, visibilities, 0))
	u.User.Undiscoverable = f.wordOr(9, truths, 1) == 0
	u.State = storage.UserState(f.wordOr(10, states, 0))
	name = cmp.Or(name, u.User.Handle)
	checked, err := accounts.CheckProfile(storage.ProfileChange{Name: &name, Bio: &bio, AvatarURL: &avatar})
	if f.check(err); f.err == nil {
		u.User.Name, u.User.Bio, u.User.AvatarURL = *checked.Name, *checked.Bio, *checked.AvatarURL
	}
	return u, f.err
}

func checkHandle(u storage.User) error {
	switch {
	case !storage.ValidHandle(u.Handle):
		return ErrHandle
	case storage.ReservedHandle(u.Handle) && u.Handle != storage.ImportedHandle(u.ID):
		return ErrHandleOfID
	}
	return nil
}

// Record is the record of a user with all columns, which [Columns.User] reads as the same.
func Record(u storage.UserWithState) ([]string, error) {
	if !writableTime(u.User.CreatedAt) || !writableTime(u.User.UpdatedAt) || int(u.State) >= len(states) ||
		int(u.User.FollowingsVisibility) >= len(visibilities) || int(u.User.FollowersVisibility) >= len(visibilities) {
		return nil, fmt.Errorf("the row of user %d is damaged: no file can hold it", u.User.ID)
	}
	return []string{
		u.User.ID.String(), u.User.Handle, u.User.Name, u.User.Bio, u.User.AvatarURL,
		timeText(u.User.CreatedAt), timeText(u.User.UpdatedAt),
		visibilities[u.User.FollowingsVisibility], visibilities[u.User.FollowersVisibility],
		truthText(!u.User.Undiscoverable), states[u.State],
	}, nil
}
