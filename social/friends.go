package social

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// FriendMark is where a list of friends goes on: behind the edge at After in the
// user's followings, with Found friends up to there.
type FriendMark struct {
	After storage.Position
	Found int
}

// Friend is a mutual follow.
type Friend struct {
	ID    storage.UserID
	Since storage.Micros   // when it became mutual: the later of the two follows
	At    storage.Position // of the user's own follow, which the list is ordered by
}

// Friends is a page of a user's friends, the user's newest following first.
// Its other fields are those of [Common].
type Friends struct {
	Friends  []Friend
	Total    int
	Complete bool
	More     bool
	Next     FriendMark
}

// Friends returns the first mutual follows of a user behind a mark. Both halves of
// every pair lie on the user's own shard.
//
// A user with far fewer fans than followings is answered from the fans, whose
// edges are looked up and sorted; any other by walking the followings, newest
// first, and looking up which of them are fans.
func (g *Graph) Friends(ctx context.Context, user storage.UserID, from FriendMark, first int) (Friends, error) {
	r := g.store.Counts(ctx, []storage.UserID{user})[0]
	if r.Err != nil {
		return Friends{}, fmt.Errorf("read friends of user %s: %w", user, r.Err)
	}
	c := &companions{graph: g, user: user, from: from, first: first, examinable: int(g.budget), found: from.Found, decided: from.After}
	fans := r.Value.Follower
	answer := c.fromFollowings
	if fans*8 < r.Value.Following && fans < int64(g.budget)/2 {
		answer = c.fromFans
	}
	if err := answer(ctx); err != nil {
		return Friends{}, fmt.Errorf("read friends of user %s: %w", user, err)
	}
	return c.page(), nil
}

// companions is the state of one Friends.
type companions struct {
	graph      *Graph
	user       storage.UserID
	from       FriendMark
	first      int
	examinable int

	friends []Friend // the page
	found   int
	decided storage.Position
	done    bool
}

func (c *companions) fromFollowings(ctx context.Context) error {
	limit := c.graph.firstLook
	for c.examinable > 0 {
		query := storage.PageQuery{Owner: c.user, After: c.decided, Limit: limit}
		r := c.graph.store.Pages(ctx, storage.Forward, []storage.PageQuery{query})[0]
		if r.Err != nil {
			return r.Err
		}
		followings := r.Value
		c.examinable -= 2 * len(followings) // read here, looked up there
		inverse, err := c.look(ctx, storage.Inverse, followings)
		if err != nil {
			return err
		}
		for i, e := range followings {
			if back := inverse[i]; back.Found && back.Value.Type == storage.Following {
				c.hit(e, back.Value.UpdateTime)
			}
		}
		if len(followings) < limit {
			c.done = true
			return nil
		}
		c.decided = storage.PositionOf(storage.Forward, followings[len(followings)-1])
		limit = c.graph.stride
	}
	return nil
}

// look reads the other half of each of the user's followings: from the Inverse
// side whether they follow back, from the Forward side the following itself.
func (c *companions) look(ctx context.Context, side storage.Side, followings []storage.Edge) ([]storage.Result[storage.Edge], error) {
	pairs := make([]storage.Pair, len(followings))
	for i, e := range followings {
		pairs[i] = e.Pair()
		if side == storage.Inverse {
			pairs[i] = storage.Pair{From: e.To, To: e.From}
		}
	}
	edges := c.graph.store.Edges(ctx, side, pairs)
	for _, r := range edges {
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return edges, nil
}

func (c *companions) fromFans(ctx context.Context) error {
	r := c.graph.store.Neighbours(ctx, storage.Inverse, []storage.UserID{c.user})[0]
	if r.Err != nil {
		return r.Err
	}
	followings := make([]storage.Edge, len(r.Value))
	for i, fan := range r.Value {
		followings[i] = storage.Edge{From: c.user, To: fan}
	}
	forward, err := c.look(ctx, storage.Forward, followings)
	if err != nil {
		return err
	}
	mutual := followings[:0]
	for _, f := range forward {
		if f.Found && f.Value.Type == storage.Following {
			mutual = append(mutual, f.Value)
		}
	}
	slices.SortFunc(mutual, func(a, b storage.Edge) int {
		return storage.PositionOf(storage.Forward, a).Compare(storage.PositionOf(storage.Forward, b))
	})
	if c.from.After != (storage.Position{}) {
		mutual = slices.DeleteFunc(mutual, func(e storage.Edge) bool {
			return storage.PositionOf(storage.Forward, e).Compare(c.from.After) <= 0
		})
	}
	page := mutual[:min(c.first, len(mutual))]
	inverse, err := c.look(ctx, storage.Inverse, page)
	if err != nil {
		return err
	}
	for i, e := range page {
		c.hit(e, inverse[i].Value.UpdateTime)
	}
	c.found += len(mutual) - len(page)
	c.done = true
	return nil
}

func (c *companions) hit(e storage.Edge, back storage.Micros) {
	c.found++
	if len(c.friends) < c.first {
		c.friends = append(c.friends, Friend{e.To, max(e.UpdateTime, back), storage.PositionOf(storage.Forward, e)})
	}
}

func (c *companions) page() Friends {
	f := Friends{Friends: c.friends, Total: c.found, Complete: c.done}
	onPage := c.from.Found + len(c.friends)
	if !c.done && (c.first == 0 || onPage == c.found) {
		// The budget has ended before the page was full.
		f.More, f.Next = true, FriendMark{c.decided, c.found}
		return f
	}
	f.More, f.Next = onPage < c.found, FriendMark{c.from.After, onPage}
	if n := len(c.friends); n > 0 {
		f.Next.After = c.friends[n-1].At
	}
	return f
}
