package importer

import (
	"context"

	"kith/files/graphfile"
	"kith/storage"
	"kith/storage/contents"
)

// userRows are those of a users file.
type userRows struct {
	columns graphfile.Columns
	file    string
	list    []userRow
}

type userRow struct {
	contents.Account
	line int64
}

// reader implements rows.
func (u *userRows) reader(*chunk) func(record []string, line, ordinal int64) error {
	read := u.columns.Reader()
	return func(record []string, line, _ int64) error {
		user, err := read(record)
		if err == nil {
			u.list = append(u.list, userRow{user, line})
		}
		return err
	}
}

// write implements rows. If several lines have the same id, the first that the store accepts wins.
func (u *userRows) write(ctx context.Context, im *Import, c *chunk) error {
	for len(u.list) > 0 {
		if err := u.writeOnce(ctx, im, c); err != nil {
			return err
		}
	}
	return nil
}

// writeOnce writes the first line of each id, and leaves the others in the list unless their users exist.
func (u *userRows) writeOnce(ctx context.Context, im *Import, c *chunk) error {
	var rows, later []userRow
	var users []storage.User
	var states []storage.UserState
	here := make(map[storage.UserID]bool, len(u.list))
	for _, row := range u.list {
		switch {
		case im.users[row.User.ID]:
			c.totals.UsersExisted++
		case here[row.User.ID]:
			later = append(later, row)
		default:
			here[row.User.ID] = true
			rows, users, states = append(rows, row), append(users, row.User), append(states, row.State)
		}
	}
	u.list = later
	results, err := im.createUsers(ctx, c, users, states)
	if err != nil {
		return err
	}
	for i, result := range results {
		row := rows[i]
		switch {
		case result.Err != nil:
			c.totals.Refused++
			im.report(Problem{File: u.file, Line: row.line, Reason: refusal(result.Err), Text: row.User.Handle})
			continue
		case result.Value:
			c.totals.UsersMade++
		default:
			c.totals.UsersExisted++
		}
		im.users[row.User.ID] = true
	}
	return nil
}
