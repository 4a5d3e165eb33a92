package storage

import "context"

// Committer reports what it has changed.
type Committer interface {
	// OnCommit has a function called with each transaction that has changed something which caches keep or subscriptions report: after
	// its commit, and before the writer goes on. It is called even if the writer's context has ended, and by several writers at once. A
	// write may be several transactions, and several writes may share one. There is one such function; it is set before the first write.
	OnCommit(report func(context.Context, Change))
}

// Change is what one transaction has changed.
type Change struct {
	// Rows are rows of edges as they are now, each on the side that was written. Rows that were there before are among them if their
	// writer may have died before it could report them.
	Rows []Row
	// Users are those of whom something has changed, each once.
	Users []UserChange
	// Profiles are users who were created, erased or changed otherwise than by edges, marks and counts.
	Profiles []UserID
	// Beside are users of whom something beside rows of edges has changed: a mark, or a relation's detail.
	Beside []UserID
	// Published are posts that can be read, and Deleted posts that no longer exist.
	Published []PostAt
	Deleted   []PostID
	// Posts were published, edited or deleted, or their number of comments has changed. The number 0 stands for all posts of the
	// author. Rows say which posts were favorited.
	Posts []PostID
	// Comments can be read.
	Comments []CommentID
	// InDoubt means that the commit had no answer: all this may have changed, or may still change.
	InDoubt bool

	index map[UserID]int // of Users
}

// UserChange is what one transaction has changed about a user, for caches.
type UserChange struct {
	User    UserID
	Forward bool // edges that leave it have changed
	Inverse bool // edges that enter it have changed

	// Counts are the user's counts after the transaction. If Version is 0, they are not known, and
	// anything about the user may have changed.
	Counts Counts

	// Before is the last version at which the profile was known to be right: between it and
	// Counts.Version, nothing but edges, requests, marks and counts has changed.
	Before int64

	// Profile is the user as it is at the version of Counts, nil if it is not at hand. Then Before does not matter.
	Profile *User
}

// ChangedRows is a change of rows, after which the counts of their owners are not known.
func ChangedRows(rows ...Row) (c Change) {
	for _, r := range rows {
		c.AddRow(r.Side, r.Edge)
	}
	return c
}

// AddRow adds the row of an edge on a side.
func (c *Change) AddRow(side Side, e Edge) {
	c.Rows = append(c.Rows, Row{Side: side, Edge: e})
	owner := c.user(side.Owner(e.Pair()))
	owner.Forward, owner.Inverse = owner.Forward || side == Forward, owner.Inverse || side == Inverse
}

// AddCounts adds counts that are left. A later call with the same user adds to what an earlier one has changed.
func (c *Change) AddCounts(left UserChange) {
	one := c.user(left.User)
	left.Forward, left.Inverse = left.Forward || one.Forward, left.Inverse || one.Inverse
	if one.Counts.Version > 0 {
		left = one.And(left)
	}
	*one = left
	if left.Profile != nil {
		c.Profiles = append(c.Profiles, left.User)
	}
}

// AddProfile adds a user of whom anything may have changed.
func (c *Change) AddProfile(id UserID) {
	one := c.user(id)
	one.Forward, one.Inverse = true, true
	c.Profiles = append(c.Profiles, id)
}

func (c *Change) user(id UserID) *UserChange {
	at, known := c.index[id]
	if !known {
		if c.index == nil {
			c.index = make(map[UserID]int)
		}
		at = len(c.Users)
		c.index[id] = at
		c.Users = append(c.Users, UserChange{User: id})
	}
	return &c.Users[at]
}

// Version is that of the counts of a user, as they are left; 0: not known.
func (c Change) Version(id UserID) int64 {
	if at, known := c.index[id]; known {
		return c.Users[at].Counts.Version
	}
	return 0
}

// IsEmpty reports whether nothing has changed.
func (c Change) IsEmpty() bool {
	return len(c.Users)+len(c.Published)+len(c.Deleted)+len(c.Posts)+len(c.Comments) == 0
}

// And combines two changes of one user into one. Anything may have changed between the two, unless the later one
// reports everything since the earlier one.
func (c UserChange) And(d UserChange) UserChange {
	if c.Counts.Version > d.Counts.Version {
		c, d = d, c
	}
	d.Forward, d.Inverse = c.Forward || d.Forward, c.Inverse || d.Inverse
	switch {
	case c.Counts.Version == 0:
		d.Counts, d.Before, d.Profile = Counts{}, 0, nil
	case d.Before <= c.Counts.Version:
		d.Before = min(c.Before, d.Before)
		if d.Profile == nil { // the profile has not changed since
			d.Profile = c.Profile
		}
	}
	return d
}
