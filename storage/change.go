package storage

// Change is what has changed: by one transaction, or as far as it is known. In this form a process reports it to its caches and to other
// processes, and the logs of the engines show it.
type Change struct {
	// Rows are rows of edges as they are now, each on the side that was written. Rows that were there before are among them if their
	// writer may have died before it could report them. A row of an inverse side is on both sides.
	Rows []Row
	// Users are those of whom something has changed, each once.
	Users []UserChange
	// Posts are those of which something has changed. Rows say which posts were favorited.
	Posts []ChangedPost
	// Gap means that other changes may have been missed: anything may have changed.
	Gap bool
	// Here means that only this process may have missed something, or read it where it was no longer right.
	Here bool
	// InDoubt means that the commit had no answer: all this may have changed, or may still change.
	InDoubt bool

	index map[UserID]int // of Users
}

// UserChange is what has changed about a user.
type UserChange struct {
	User UserID
	What Aspects

	// Counts are the user's counts after the transaction. If Version is 0, they are not known, and
	// anything about the user may have changed.
	Counts Counts

	// Before is the last version at which the profile was known to be right: between it and
	// Counts.Version, nothing but edges, requests, marks and counts has changed.
	Before int64

	// Profile is the user as it is at the version of Counts, nil if it is not at hand. Then Before does not matter.
	Profile *User
}

// Aspects say what has changed about a user. Messages between gateways contain these bits.
type Aspects uint8

const (
	Leaving  Aspects = 1 << iota // edges that leave it
	Entering                     // edges that enter it
	Whole                        // it was created, erased, or changed otherwise than by edges, marks and counts
	Beside                       // something beside rows of edges: a mark, or a relation's detail
	Standing                     // it was deactivated, has come back, is being deleted, or has another password
	Missed                       // anything, some time ago: caches may have kept what is old, also of its lists and posts
)

// Has reports whether one of some aspects is among them.
func (a Aspects) Has(some Aspects) bool { return a&some != 0 }

// ChangedPost is what has happened to a post.
type ChangedPost struct {
	PostAt  // CreatedAt is known of a published post. The number 0 stands for all posts of the author.
	News    PostNews
	Comment int64 // that was added
}

// PostNews says what has happened to a post. Messages between gateways contain these numbers.
type PostNews uint8

const (
	PostEdited    PostNews = iota // or its number of comments has changed
	PostPublished                 // it can be read
	PostDeleted                   // it no longer exists
	PostCommented                 // a comment can be read
)

// AddRow adds the row of an edge on a side, after which the counts of its owner are not known.
func (c *Change) AddRow(side Side, e Edge) {
	c.Rows = append(c.Rows, Row{Side: side, Edge: e})
	what := Aspects(0)
	if side.Truth() == Forward {
		what = Leaving << side
	}
	c.AddUser(side.Owner(e.Pair()), what)
}

// AddCounts adds counts that are left. A later call with the same user adds to what an earlier one has changed.
func (c *Change) AddCounts(left UserChange) {
	if left.Profile != nil {
		left.What |= Whole
	}
	one := c.user(left.User)
	left.What |= one.What
	if one.Counts.Version > 0 {
		left = one.And(left)
	}
	*one = left
}

// AddUser adds aspects of a user that have changed.
func (c *Change) AddUser(id UserID, what Aspects) { c.user(id).What |= what }

// AddProfile adds a user of whom anything may have changed.
func (c *Change) AddProfile(id UserID) { c.AddUser(id, Leaving|Entering|Whole) }

// AddStanding adds a user whose state or suspension has changed, and with it anything else.
func (c *Change) AddStanding(id UserID) { c.AddUser(id, Leaving|Entering|Whole|Standing) }

// AddPost adds what has happened to a post.
func (c *Change) AddPost(news PostNews, post PostAt) {
	c.Posts = append(c.Posts, ChangedPost{PostAt: post, News: news})
}

// Add adds another change. Then a user may be among Users twice.
func (c *Change) Add(d Change) {
	c.Rows, c.Users, c.Posts, c.Gap = append(c.Rows, d.Rows...), append(c.Users, d.Users...), append(c.Posts, d.Posts...), c.Gap || d.Gap
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

// IsEmpty reports whether nothing has changed.
func (c Change) IsEmpty() bool {
	return len(c.Rows)+len(c.Users)+len(c.Posts) == 0 && !c.Gap
}

// And combines two changes of one user into one. Anything may have changed between the two, unless the later one
// reports everything since the earlier one.
func (c UserChange) And(d UserChange) UserChange {
	if c.Counts.Version > d.Counts.Version {
		c, d = d, c
	}
	d.What |= c.What
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
