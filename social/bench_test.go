package social

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// BenchmarkWays measures the questions of the design's section 6 that work on lists: from rows, and
// from lists in memory, both over a store in memory. It shows what the planner and its look-ups
// cost, without SQL.
//
//	go test ./social -run '^$' -bench Ways -benchmem
//
// 50,000 users follow 50 others each, and each of the first four has 30,000 more followers. Ids are
// dense, or made from the time.
func BenchmarkWays(b *testing.B) {
	for name, id := range map[string]func(n int) storage.UserID{
		"dense":     func(n int) storage.UserID { return storage.UserID(n + 1) },
		"Sonyflake": func(n int) storage.UserID { return storage.UserID(n+1)*31<<24 | storage.UserID(1024+n%4) },
	} {
		b.Run(name, func(b *testing.B) { waysOver(b, id) })
	}
}

const benchUsers = 50_000

func waysOver(b *testing.B, id func(n int) storage.UserID) {
	store, kept := benchStore(b, id)
	some := rand.New(rand.NewPCG(41, 42))
	anyone := func() storage.UserID { return id(4 + some.IntN(benchUsers-4)) }
	away := hiddenUsers{}
	for n := 0; n < benchUsers; n += 100 {
		away = append(away, id(n+5))
	}
	viewer := NewAudience(id(9), sortedHidden{away[:0]}, nil)
	questions := []struct {
		name     string
		audience *Audience
		ask      func(g *Graph) error
	}{
		{"common followings of two", viewer, func(g *Graph) error {
			return commonOf(g, List{storage.Forward, anyone()}, List{storage.Forward, anyone()})
		}},
		{"common followers of celebrities", viewer, func(g *Graph) error {
			return commonOf(g, List{storage.Inverse, id(some.IntN(2))}, List{storage.Inverse, id(2 + some.IntN(2))})
		}},
		{"the same, 500 hidden", NewAudience(id(9), sortedHidden{away}, nil), func(g *Graph) error {
			return commonOf(g, List{storage.Inverse, id(some.IntN(2))}, List{storage.Inverse, id(2 + some.IntN(2))})
		}},
		{"the same, newest first", viewer, func(g *Graph) error {
			q := MatchQuery{Base: List{storage.Inverse, id(some.IntN(2))}, Other: List{storage.Inverse, id(2 + some.IntN(2))}}
			_, err := g.Matches(context.Background(), q, MatchMark{}, 20)
			return err
		}},
		{"followers of a celebrity not followed", viewer, func(g *Graph) error {
			_, err := g.Matches(context.Background(), NotFollowedBack(id(some.IntN(4))), MatchMark{}, 20)
			return err
		}},
		{"friends", viewer, func(g *Graph) error {
			_, err := g.Matches(context.Background(), Friends(anyone()), MatchMark{}, 20)
			return err
		}},
		{"followers of two celebrities, not of a third", viewer, func(g *Graph) error {
			not := Filter{On: []List{{storage.Inverse, id(2)}}}
			f := Filter{All: []Filter{{On: []List{{storage.Inverse, id(0)}}}, {On: []List{{storage.Inverse, id(1)}}}, {Not: &not}}}
			_, err := g.People(context.Background(), PeopleQuery{Filter: f, First: 20})
			return err
		}},
		{"20 suggestions", viewer, func(g *Graph) error {
			_, err := g.Suggest(context.Background(), SuggestionQuery{User: anyone(), First: 20, Via: 3})
			return err
		}},
		{"20 suggestions, best", viewer, func(g *Graph) error {
			_, err := g.Suggest(context.Background(), SuggestionQuery{User: anyone(), First: 20, Via: 3, Best: true, OpenFollowers: true})
			return err
		}},
	}
	for _, q := range questions {
		for _, way := range []struct {
			name string
			storage.Answerer
		}{{"rows", store}, {"packed", kept}} {
			b.Run(q.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				began := cpuTime()
				for b.Loop() {
					if err := q.ask(New(way.Answerer, 0, q.audience)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cpuTime()-began)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func commonOf(g *Graph, a, b List) error {
	_, err := g.People(context.Background(), PeopleQuery{Filter: Both(a, b), First: 20})
	return err
}

// cpuTime is the processor time of this process: other load on the machine does not add to it.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// sortedHidden looks hidden users up as the real type does.
type sortedHidden struct{ ids []storage.UserID }

func (a sortedHidden) Has(id storage.UserID) bool {
	return len(behind(a.ids, id-1)) > 0 && behind(a.ids, id-1)[0] == id
}
func (a sortedHidden) IDs() []storage.UserID { return a.ids }

// keptLists are lists that were built before.
type keptLists struct {
	storage.Answerer
	lists [2]map[storage.UserID]*idset.List
}

func (k *keptLists) Bundle(ctx context.Context, b *storage.Bundle) {
	idset.ListLookups.Instead(ctx, b, k.sets)
	k.Answerer.Bundle(ctx, b)
}

func (k *keptLists) sets(_ context.Context, side storage.Side, owners []storage.UserID) []storage.Result[*idset.List] {
	lists := make([]storage.Result[*idset.List], len(owners))
	for i, owner := range owners {
		lists[i].Value, lists[i].Found = k.lists[side][owner]
	}
	return lists
}

// readLists answers from slices, so that rows cost only what the rules
// do with them.
type readLists struct {
	storage.Answerer
	edges [2]map[storage.UserID][]storage.Edge   // newest first
	peers [2]map[storage.UserID][]storage.UserID // ascending
}

func (r *readLists) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.NeighbourLookups.Instead(ctx, b, r.neighbours)
	storage.PageLookups.Instead(ctx, b, r.pages)
	r.Answerer.Bundle(ctx, b)
}

func (r *readLists) neighbours(_ context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	answers := make([]storage.Result[[]storage.UserID], len(owners))
	for i, owner := range owners {
		answers[i] = storage.Result[[]storage.UserID]{Value: r.peers[side][owner], Found: true}
	}
	return answers
}

func (r *readLists) pages(_ context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	answers := make([]storage.Result[[]storage.Edge], len(queries))
	for i, q := range queries {
		rest := r.edges[side][q.Owner]
		for q.After != (storage.Position{}) && len(rest) > 0 && side.Position(rest[0]).Compare(q.After) <= 0 {
			rest = rest[1:]
		}
		answers[i] = storage.Result[[]storage.Edge]{Value: rest[:min(q.Limit, len(rest))], Found: true}
	}
	return answers
}

func benchStore(b *testing.B, id func(n int) storage.UserID) (*readLists, *keptLists) {
	random := rand.New(rand.NewPCG(43, 44))
	store, dir := oracle.New(), idset.NewDirectory()
	var edges []storage.Edge
	var ids []storage.UserID
	users := make([]storage.User, benchUsers)
	for n := range benchUsers {
		ids = append(ids, id(n))
		users[n] = storage.User{ID: id(n), Handle: "u" + id(n).String(), Name: "u", CreatedAt: 1, UpdatedAt: 1}
		follow := map[int]bool{}
		for star := range 4 {
			follow[star] = random.IntN(10) < 6
		}
		for range 47 {
			follow[random.IntN(benchUsers)] = true
		}
		for to := range follow {
			if follow[to] && to != n {
				edges = append(edges, storage.Edge{From: id(n), To: id(to), Type: storage.Following, UpdateTime: storage.Micros(1 + random.IntN(1_000_000))})
			}
		}
	}
	dir.Learn(ids)
	store.CreateUsers(b.Context(), users)
	rows := &readLists{Answerer: store}
	kept := &keptLists{Answerer: rows}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		store.Apply(b.Context(), side, edges, storage.IfNewer)
		rows.edges[side], rows.peers[side] = map[storage.UserID][]storage.Edge{}, map[storage.UserID][]storage.UserID{}
		kept.lists[side] = map[storage.UserID]*idset.List{}
		for n := range benchUsers {
			l := List{side, id(n)}
			rows.edges[side][l.Owner] = storage.PageLookups[side].Read(b.Context(), store, storage.PageQuery{Owner: l.Owner, Limit: benchUsers})[0].Value
			rows.peers[side][l.Owner] = storage.NeighbourLookups[side].Read(b.Context(), store, l.Owner)[0].Value
			list := idset.New(dir, positionsOf(b.Context(), store, l))
			kept.lists[side][l.Owner] = &list
		}
	}
	return rows, kept
}
