// Package quality measures how well suggestions find what users are known to follow. Some follows of users of a graph are held out,
// and recall@20 is how many of them are among 20 suggestions: as a share of those held out, or of 20 if these are more; the mean of all users asked.
package quality

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"kith/files/graphfile"
	"kith/social"
	"kith/storage"
)

// Config says whom to ask, and how much to hold out.
type Config struct {
	Users int    // how many, of those who follow at least 10; ≥ 1
	Share int    // of their follows is held out, in per cent, 1 to 99
	Seed  uint64 // another one asks other users
}

// Recall is recall@20 of each order, 0 to 1, and how many users were asked.
type Recall struct {
	Users       int
	SharedCount float64
	Best        float64
}

const (
	atMost, leastFollowings = 20, 10
	// mostFollows bounds the memory: some 40 bytes a follow.
	mostFollows = 50_000_000
)

// Measure reads an edge list, as `kith import` does, and asks for suggestions with some edges of the user who asks left out. A malformed
// line, a graph without users to ask, and one of more than 50 million edges are errors.
func Measure(ctx context.Context, edges io.Reader, c Config) (r Recall, err error) {
	g, err := read(edges)
	if err != nil {
		return r, err
	}
	random := rand.New(rand.NewPCG(c.Seed, 0))
	var users []storage.UserID
	for id, list := range g.lists[storage.Forward] {
		if len(list) >= leastFollowings {
			users = append(users, id)
		}
	}
	if len(users) == 0 {
		return r, fmt.Errorf("nobody follows %d others", leastFollowings)
	}
	slices.Sort(users)
	random.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	users = users[:min(c.Users, len(users))]
	for _, id := range users {
		of := slices.Clone(g.lists[storage.Forward][id])
		random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		n := max(1, (len(of)*c.Share+50)/100)
		asked := without{graph: g, user: id, left: slices.Sorted(slices.Values(of[n:]))}
		for order, sum := range []*float64{&r.SharedCount, &r.Best} {
			s, err := social.New(asked, 0, nil).Suggest(ctx, social.SuggestionQuery{User: id, First: atMost, Best: order == 1, OpenFollowers: true})
			if err != nil {
				return r, err
			}
			for _, one := range s.Suggestions {
				if slices.Contains(of[:n], one.ID) {
					*sum += 1 / float64(min(n, atMost)*len(users))
				}
			}
		}
	}
	r.Users = len(users)
	return r, nil
}

// graph is the lists of all users, by side, ascending.
type graph struct {
	lists [2]map[storage.UserID][]storage.UserID
}

func read(edges io.Reader) (*graph, error) {
	g := &graph{[2]map[storage.UserID][]storage.UserID{{}, {}}}
	lines, n := bufio.NewScanner(edges), 0
	for lines.Scan() {
		e, found, err := graphfile.ParseLine(lines.Bytes())
		if n++; err == nil && n > mostFollows {
			err = fmt.Errorf("a graph has at most %d lines", mostFollows)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if found && e.From != e.To {
			g.lists[storage.Forward][e.From] = append(g.lists[storage.Forward][e.From], e.To)
			g.lists[storage.Inverse][e.To] = append(g.lists[storage.Inverse][e.To], e.From)
		}
	}
	for _, lists := range g.lists {
		for id, list := range lists {
			slices.Sort(list)
			lists[id] = slices.Compact(list)
		}
	}
	return g, lines.Err()
}

// without is the graph in which a user follows only some. It answers what suggestions ask while all of a user's followings are in one pool.
type without struct {
	storage.Answering // of nothing
	*graph
	user storage.UserID
	left []storage.UserID
}

func (w without) list(side storage.Side, owner storage.UserID) []storage.UserID {
	if side == storage.Forward && owner == w.user {
		return w.left
	}
	return w.lists[side][owner]
}

// Bundle implements [storage.Answerer].
func (w without) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.NeighbourLookups.Instead(ctx, b, func(_ context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
		return found(owners, func(id storage.UserID) []storage.UserID { return w.list(side, id) })
	})
	storage.CountLookups.Instead(ctx, b, func(_ context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
		return found(ids, func(id storage.UserID) storage.Counts { return w.profile(id).Counts })
	})
	storage.UserLookups.Instead(ctx, b, func(_ context.Context, ids []storage.UserID) []storage.Result[storage.User] {
		return found(ids, func(id storage.UserID) storage.User { return storage.User{ID: id} })
	})
	storage.ProfileLookups.Instead(ctx, b, func(_ context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
		return found(ids, w.profile)
	})
	storage.PageLookups.Instead(ctx, b, func(_ context.Context, _ storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
		return found(queries, w.page)
	})
	w.Answering.Bundle(ctx, b)
}

func (w without) profile(id storage.UserID) storage.Profile {
	return storage.Profile{User: storage.User{ID: id}, Counts: storage.Counts{
		Following: int64(len(w.list(storage.Forward, id))), Follower: int64(len(w.list(storage.Inverse, id)))}}
}

func (w without) page(q storage.PageQuery) (edges []storage.Edge) {
	for _, to := range slices.Backward(w.list(storage.Forward, q.Owner)) {
		if at := (storage.Position{UpdateTime: 1, Peer: to}); len(edges) < q.Limit && (q.After == storage.Position{} || at.Compare(q.After) > 0) {
			edges = append(edges, storage.Edge{From: q.Owner, To: to, Type: storage.Following, UpdateTime: 1})
		}
	}
	return edges
}

func found[K, V any](keys []K, of func(K) V) []storage.Result[V] {
	return storage.Each(keys, func(k K) storage.Result[V] { return storage.Result[V]{Value: of(k), Found: true} })
}
