package social

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"kith/graph/declared"
	"kith/graph/why"
	"kith/storage"
	"kith/storage/reaction"
)

// What others have done that concerns a user is worked out for each page, from what is stored of it anyway. It is read a day at a time, and
// rows of one kind and one post on one day are one group. Days are those of UTC. Users whom the user must not see or mutes are left out
// when it is read, and so are deleted posts: nothing of them is counted.

// ActivityKind is what others have done. Cursors have the numbers.
type ActivityKind uint8

const (
	Followed       ActivityKind = iota // the user
	FollowAsked                        // to follow the user, and waits
	FriendAsked                        // the user, and waits
	FriendAccepted                     // to a request of the user
	PostFavorited                      // of the user
	PostCommented                      // of the user
	Mentions                           // of the user, in posts of others
	FollowAccepted                     // to a request of the user
	activityKinds  = iota
)

// activityReactions are those of which kinds are made that are about a post.
var activityReactions = map[ActivityKind]reaction.Kind{
	PostFavorited: reaction.Favorites, PostCommented: reaction.Comments, Mentions: reaction.Mentions,
}

// activityEdges are those of which the other kinds are made.
var activityEdges = map[ActivityKind]struct {
	side storage.Side
	kind storage.EdgeType
	item int64
}{
	Followed:       {storage.Inverse, storage.Following, 0},
	FollowAsked:    {storage.Inverse, storage.Requested, 0},
	FriendAsked:    {storage.Inbox, storage.Pending, 0},
	FriendAccepted: {storage.Requests, storage.Accepted, 0},
	FollowAccepted: {storage.RelationInbox, storage.Related, declared.Acceptances.Number},
}

// ActivityOfRow is where what a row of an inverse side adds for a user is; false if it adds nothing.
func ActivityOfRow(row storage.Row, user storage.UserID) (m ActivityMark, is bool) {
	m.At = row.Edge.UpdateTime
	if row.Side == storage.FavoriteInbox {
		m.Kind, is = map[storage.EdgeType]ActivityKind{storage.Favorited: PostFavorited, storage.Mentioned: Mentions}[row.Edge.Type]
		m.Post = row.Edge.Item
		return m, is && row.Edge.To == user
	}
	for kind, of := range activityEdges {
		if row.Side == of.side.Replica() && row.Edge.Type == of.kind && row.Edge.Item == of.item && of.side.Owner(row.Edge.Pair()) == user {
			m.Kind, is = kind, true
		}
	}
	return m, is
}

const (
	// ActorsShown is how many users a group names, the last ones.
	ActorsShown = 3
	// MostOfDay is how many rows of a kind and a day are shown, the newest. A day's rows that are hidden are looked through up to latestBudget.
	MostOfDay = 100
	// MostUnseen is up to how many groups are newer than a time.
	MostUnseen = 100
	// activityRows is how many rows of a kind are read together.
	activityRows = 50

	day = storage.Micros(24 * time.Hour / time.Microsecond)
)

// ActivityMark is where a group is: by time descending, then by kind and post. The zero value is ahead of all.
type ActivityMark struct {
	At   storage.Micros // when the last of its users did it
	Kind ActivityKind
	Post int64 // its number
}

func (m ActivityMark) compare(n ActivityMark) int {
	return cmp.Or(cmp.Compare(n.At, m.At), cmp.Compare(m.Kind, n.Kind), cmp.Compare(n.Post, m.Post))
}

// Day is when the mark's day began.
func (m ActivityMark) Day() storage.Micros { return m.At - m.At%day }

// ActivityGroup is what some users have done on a day.
type ActivityGroup struct {
	ActivityMark
	Actors   []storage.UserID // the last ones, at most ActorsShown
	Others   int              // how many others did it
	Complete bool             // all of the day are counted
	On       *storage.Post    // nil: it concerns no post
	Err      error            // nil unless it is not known whether the user may see the post
	State    uint64           // another one, if others have done it, or somebody again
}

// ActivityOf says what is read.
type ActivityOf struct {
	User  storage.UserID
	Kinds []ActivityKind // each once
	After ActivityMark   // only groups strictly behind it, unless zero
	Asked storage.Micros // friend requests that are not newer have expired
	Left  *Allowance     // nil: a whole one
}

// Activity is what concerns a user, as far back as it has been read.
type Activity struct {
	ActivityOf
	store   storage.Answerer
	hides   func(storage.UserID) bool
	notice  func(hides bool, rule why.Rule, id storage.UserID) bool
	streams []*activityStream
	groups  []ActivityGroup
	reached ActivityMark // no group that has not been read is ahead of it
	ended   bool
}

// activityStream is what is read of one kind, newest first. An edge is a Reaction of its time and its other user.
type activityStream struct {
	kind  ActivityKind
	after reaction.Reaction   // what has been read, or left out; zero: nothing
	rows  []reaction.Reaction // that have been read, and not been taken
	ended bool                // there are no others
}

// Activity begins to read what concerns a user.
func (g *Graph) Activity(ctx context.Context, of ActivityOf) (*Activity, error) {
	muted, err := g.Related(ctx, of.User, declared.Mutes)
	if err != nil {
		return nil, err
	}
	a := &Activity{ActivityOf: of, store: g.store, notice: g.audience.notice, reached: of.After}
	a.Left = cmp.Or(of.Left, new(Allowance))
	a.hides = func(id storage.UserID) bool { return id == of.User || g.audience.leavesOut(id, muted) }
	for _, kind := range of.Kinds {
		s := &activityStream{kind: kind}
		if of.After != (ActivityMark{}) {
			s.after.CreatedAt = min(of.After.Day(), math.MaxInt64-day) + day
		}
		a.streams = append(a.streams, s)
	}
	return a, nil
}

// LeavesOut reports whether nothing is told of what somebody does.
func (a *Activity) LeavesOut(by storage.UserID) bool { return a.hides(by) }

// Page returns the first groups. If the search for them ended early, others are behind end.
func (a *Activity) Page(ctx context.Context, size int) (page []ActivityGroup, more bool, end ActivityMark, err error) {
	a.Left.mu.Lock()
	defer a.Left.mu.Unlock()
	if err := a.read(ctx, func() bool { return len(a.groups) > size }); err != nil {
		return nil, false, end, err
	}
	if len(a.groups) > size {
		if size == 0 {
			end = a.After
		}
		return a.groups[:size], true, end, nil
	}
	return a.groups, !a.ended, a.reached, nil
}

// Newer returns the groups that are newer than a time, the newest first, at most MostUnseen, or the error of one of them. There are more if
// more is true.
func (a *Activity) Newer(ctx context.Context, than storage.Micros) (groups []ActivityGroup, more bool, err error) {
	a.Left.mu.Lock()
	defer a.Left.mu.Unlock()
	isRead := func() bool { return a.ended || a.reached != (ActivityMark{}) && a.reached.At < than }
	err = a.read(ctx, func() bool { return isRead() || len(a.groups) > MostUnseen })
	n := slices.IndexFunc(a.groups, func(g ActivityGroup) bool { return g.At <= than })
	if n < 0 {
		n, more = len(a.groups), !isRead()
	}
	groups = a.groups[:min(n, MostUnseen)]
	for _, g := range groups {
		err = cmp.Or(err, g.Err)
	}
	return groups, more || n > MostUnseen, err
}

// read reads days until it is enough, there are no others, or the allowance is spent.
func (a *Activity) read(ctx context.Context, enough func() bool) error {
	for !a.ended && !enough() && !a.Left.spent() {
		if err := a.readDay(ctx); err != nil {
			return fmt.Errorf("read what concerns user %s: %w", a.User, err)
		}
	}
	return nil
}

// readDay reads the next day on which something was done.
func (a *Activity) readDay(ctx context.Context) error {
	if err := a.fill(ctx, a.streams); err != nil {
		return err
	}
	began := storage.Micros(-1)
	for _, s := range a.streams {
		if len(s.rows) > 0 {
			began = max(began, s.rows[0].CreatedAt-s.rows[0].CreatedAt%day)
		}
	}
	if began < 0 {
		a.ended = true
		return nil
	}
	var groups []ActivityGroup
	for taken := (activityTaken{}); ; {
		var short []*activityStream
		for _, s := range a.streams {
			if s.take(began, a.hides, &taken) {
				short = append(short, s)
			}
		}
		if len(short) == 0 {
			groups = taken.groups()
			break
		}
		if err := a.fill(ctx, short); err != nil {
			return err
		}
	}
	groups = slices.DeleteFunc(a.onPosts(ctx, groups), func(g ActivityGroup) bool {
		return a.After != (ActivityMark{}) && g.compare(a.After) <= 0
	})
	slices.SortFunc(groups, func(x, y ActivityGroup) int { return x.compare(y.ActivityMark) })
	a.groups = append(a.groups, groups...)
	a.ended = began == 0
	a.reached = ActivityMark{At: max(began, 1) - 1, Post: math.MaxInt64}
	return nil
}

// activityTaken are the rows of a day, by kind.
type activityTaken [activityKinds]struct {
	shown    []reaction.Reaction
	examined int
	cut      bool // the day has more
}

// take takes rows of a day, and reports whether more have to be read first.
func (s *activityStream) take(began storage.Micros, hides func(storage.UserID) bool, day *activityTaken) (short bool) {
	of := &day[s.kind]
	for len(s.rows) > 0 && s.rows[0].CreatedAt >= began && !of.cut {
		if of.examined++; !hides(s.rows[0].By) {
			of.shown = append(of.shown, s.rows[0])
		}
		s.rows = s.rows[1:]
		of.cut = len(of.shown) > MostOfDay || of.examined >= latestBudget
	}
	if !of.cut {
		return len(s.rows) == 0 && !s.ended
	}
	of.shown = of.shown[:min(len(of.shown), MostOfDay)]
	s.rows = slices.DeleteFunc(s.rows, func(r reaction.Reaction) bool { return r.CreatedAt >= began })
	if len(s.rows) == 0 {
		s.after = reaction.Reaction{Place: storage.Place{CreatedAt: began}}
	}
	return false
}

var stateSeed = maphash.MakeSeed()

// groups are those of a day.
func (t *activityTaken) groups() (groups []ActivityGroup) {
	for kind, of := range t {
		index, seen := map[int64]int{}, map[reaction.Reaction]bool{}
		for _, r := range of.shown {
			i, known := index[r.Post]
			if !known {
				i = len(groups)
				index[r.Post] = i
				groups = append(groups, ActivityGroup{ActivityMark: ActivityMark{r.CreatedAt, ActivityKind(kind), r.Post}, Complete: !of.cut})
			}
			g, who := &groups[i], reaction.Reaction{By: r.By, Post: r.Post}
			g.State += maphash.Comparable(stateSeed, r)
			switch {
			case seen[who]:
			case len(g.Actors) < ActorsShown:
				g.Actors = append(g.Actors, r.By)
			default:
				g.Others++
			}
			seen[who] = true
		}
	}
	return groups
}

// onPosts reads the posts that groups concern, and leaves out those whose posts no longer exist, or are not for the user.
func (a *Activity) onPosts(ctx context.Context, groups []ActivityGroup) []ActivityGroup {
	var ids []storage.PostID
	for _, g := range groups {
		switch {
		case g.Kind == Mentions:
			ids = append(ids, storage.PostID{Author: g.Actors[0], Number: g.Post})
			a.Left.take(entriesOfPost) // for who may see it
		case g.Post != 0:
			ids = append(ids, storage.PostID{Author: a.User, Number: g.Post})
		}
	}
	a.Left.take(entriesOfPost * len(ids))
	posts := storage.PostLookups.Read(ctx, a.store, ids...)
	reached := mayReach(ctx, a.store, NewAudience(a.User, nil, nil), storage.Each(ids, func(id storage.PostID) storage.UserID { return id.Author })...)
	shown := groups[:0]
	for _, g := range groups {
		if g.Post != 0 {
			r, failed := posts[0], reached[0]
			posts, reached = posts[1:], reached[1:]
			switch {
			case a.notice(errors.Is(failed, storage.ErrPostUnknown), why.Locked, g.Actors[0]):
				continue
			case cmp.Or(r.Err, failed) != nil:
				g.Err = cmp.Or(r.Err, failed)
			case !r.Found:
				continue
			default:
				g.On = &r.Value
			}
		}
		shown = append(shown, g)
	}
	return shown
}

// fill reads the next rows of streams that have none, together.
func (a *Activity) fill(ctx context.Context, streams []*activityStream) error {
	var b storage.Bundle
	edges, reactions := map[storage.Side][]storage.PageQuery{}, []reaction.Query(nil)
	streams = storage.Filter(streams, func(s *activityStream) bool { return !s.ended && len(s.rows) == 0 })
	for _, s := range streams {
		if kind, is := activityReactions[s.kind]; is {
			reactions = append(reactions, reaction.Query{User: a.User, Kind: kind, After: s.after, Limit: activityRows})
		} else {
			of := activityEdges[s.kind]
			after := storage.Position{UpdateTime: s.after.CreatedAt, Peer: s.after.By}
			edges[of.side] = append(edges[of.side], storage.PageQuery{Owner: a.User, Type: of.kind, Item: of.item, After: after, Limit: activityRows})
		}
	}
	pages := map[storage.Side]*storage.Lookup[storage.PageQuery, []storage.Edge]{}
	for side, queries := range edges {
		pages[side] = storage.PageLookups[side].Ask(&b, queries...)
	}
	on := reaction.Lookups.Ask(&b, reactions...)
	if len(streams) > 0 {
		a.store.Bundle(ctx, &b)
	}
	next := map[storage.Side]int{}
	for _, s := range streams {
		if _, is := activityReactions[s.kind]; is {
			r := on.Results[0]
			if on.Results = on.Results[1:]; r.Err != nil {
				return r.Err
			}
			s.rows = r.Value
		} else {
			side := activityEdges[s.kind].side
			r := pages[side].Results[next[side]]
			if next[side]++; r.Err != nil {
				return r.Err
			}
			s.rows = storage.Each(r.Value, func(e storage.Edge) reaction.Reaction {
				return reaction.Reaction{Place: storage.Place{CreatedAt: e.UpdateTime}, By: side.Peer(e.Pair())}
			})
		}
		n := len(s.rows)
		a.Left.take(entriesOfPost + n)
		if s.ended = n < activityRows; n > 0 {
			s.after = s.rows[n-1]
		}
		if s.kind == FriendAsked && n > 0 && s.after.CreatedAt <= a.Asked {
			s.ended = true
			s.rows = slices.DeleteFunc(s.rows, func(r reaction.Reaction) bool { return r.CreatedAt <= a.Asked })
		}
	}
	return nil
}
