package social

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/cache/idset"
)

// somePacked has lists of a store in memory, but answers only a share of the questions with them. So answers
// that began with sets go on with rows, and the other way round.
type somePacked struct {
	storage.Answerer
	share  float64
	random *rand.Rand
	dirs   []*idset.Directory
	read   map[List][]storage.Position
}

func (p *somePacked) Bundle(ctx context.Context, b *storage.Bundle) {
	idset.ListLookups.Instead(ctx, b, p.sets)
	idset.RecommenderLookups.Instead(ctx, b, p.recommenders)
	p.Answerer.Bundle(ctx, b)
}

func (p *somePacked) sets(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[*idset.List] {
	lists := make([]storage.Result[*idset.List], len(owners))
	for i, owner := range owners {
		if p.random.Float64() >= p.share {
			continue
		}
		dir := p.dirs[p.random.IntN(len(p.dirs))]
		l := List{side, owner}
		if p.read[l] == nil {
			p.read[l] = positionsOf(ctx, p.Answerer, l)
		}
		list := idset.New(dir, p.read[l])
		lists[i] = storage.Result[*idset.List]{Value: &list, Found: true}
	}
	return lists
}

// recommenders likewise has the followings of some users.
func (p *somePacked) recommenders(ctx context.Context, ids []storage.UserID) []storage.Result[idset.Recommender] {
	users := make([]storage.Result[idset.Recommender], len(ids))
	profiles := storage.ProfileLookups.Read(ctx, p, ids...)
	lists := storage.NeighbourLookups[storage.Forward].Read(ctx, p, ids...)
	for i := range ids {
		if profiles[i].Err != nil || lists[i].Err != nil || p.random.Float64() >= p.share {
			continue
		}
		dir := p.dirs[p.random.IntN(len(p.dirs))]
		users[i] = storage.Result[idset.Recommender]{Found: true, Value: idset.Recommender{
			Visibility: profiles[i].Value.User.FollowingsVisibility, Following: profiles[i].Value.Counts.Following,
			Followings: idset.CompactOf(dir, lists[i].Value), Directory: dir,
		}}
	}
	return users
}

// positionsOf reads a list, newest first.
func positionsOf(ctx context.Context, store storage.Answerer, l List) []storage.Position {
	edges := storage.PageLookups[l.Side].Read(ctx, store, storage.PageQuery{Owner: l.Owner, Limit: 1 << 30})[0].Value
	return storage.Each(edges, l.Side.Position)
}

func newPacked(store storage.Answerer, share float64, seed uint64, dirs ...*idset.Directory) *somePacked {
	return &somePacked{store, share, rand.New(rand.NewPCG(seed, 0)), dirs, map[List][]storage.Position{}}
}

// drawPacked draws how much of a store is in memory. All lists are numbered by one directory, or each by one of
// two directories that already know some users.
func drawPacked(t *rapid.T, store storage.Answerer) *somePacked {
	share := rapid.SampledFrom([]float64{0, 0.5, 0.9, 1}).Draw(t, "share in memory")
	p := newPacked(store, share, rapid.Uint64().Draw(t, "which"))
	for range rapid.IntRange(1, 2).Draw(t, "directories") {
		dir := idset.NewDirectory()
		for id := storage.UserID(1); id <= people; id++ {
			if p.random.IntN(3) > 0 {
				dir.Learn([]storage.UserID{id})
			}
		}
		p.dirs = append(p.dirs, dir)
	}
	return p
}

// question is a question that is asked of rows and of lists in memory. page answers it behind a mark (of the
// question's own kind, or nil), and returns the next mark, which is nil at the end.
type question struct {
	name string
	page func(ctx context.Context, g *Graph, mark any, first int) (answer, next any, err error)
}

// questions returns all kinds of questions.
func questions(a, b, c List, f Filter, empty func(List) bool, q SuggestionQuery) []question {
	common := func(ctx context.Context, g *Graph, q PeopleQuery) (any, any, error) {
		c, err := g.People(ctx, q)
		if len(c.IDs) == 0 {
			c.IDs = nil
		}
		if !c.More {
			return c, nil, err
		}
		return c, c.Next, err
	}
	matches := func(q MatchQuery) func(context.Context, *Graph, any, int) (any, any, error) {
		return func(ctx context.Context, g *Graph, mark any, first int) (any, any, error) {
			from, _ := mark.(MatchMark)
			p, err := g.Matches(ctx, q, from, first)
			if len(p.Matches) == 0 {
				p.Matches = nil
			}
			if !p.More {
				return p, nil, err
			}
			return p, p.Next, err
		}
	}
	return []question{
		{"common", func(ctx context.Context, g *Graph, mark any, first int) (any, any, error) {
			from, _ := mark.(Mark)
			return common(ctx, g, PeopleQuery{Filter: Both(a, b), From: from, First: first})
		}},
		{"people", func(ctx context.Context, g *Graph, mark any, first int) (any, any, error) {
			from, _ := mark.(Mark)
			return common(ctx, g, PeopleQuery{Filter: f, Empty: empty, From: from, First: first})
		}},
		{"recent", matches(MatchQuery{Base: a, Other: b})},
		{"absent", matches(MatchQuery{Base: a, Other: b, Absent: true})},
		{"friends", matches(Friends(a.Owner))},
		{"fits", func(ctx context.Context, g *Graph, _ any, _ int) (any, any, error) {
			_, fits, err := g.Fits(ctx, MatchQuery{Base: a, Other: b})
			return fits, nil, err
		}},
		{"sizes", func(ctx context.Context, g *Graph, _ any, _ int) (any, any, error) {
			return g.Sizes(ctx, a.Side, []storage.UserID{a.Owner, b.Owner, c.Owner, 1 << 40}), nil, nil
		}},
		{"suggestions", func(ctx context.Context, g *Graph, mark any, first int) (any, any, error) {
			asked := q
			asked.From, _ = mark.(SuggestionMark)
			asked.First = first
			s, err := g.Suggest(ctx, asked)
			if len(s.Suggestions) == 0 {
				s.Suggestions = nil
			}
			if !s.More {
				return s, nil, err
			}
			return s, s.Next, err
		}},
	}
}

// tester is a test, or a check of rapid.
type tester interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// askBothWays pages through a question, for a limited number of pages. Every page is the same from rows and
// from lists in memory (pages, totals, marks), whichever of the two the mark came from.
func askBothWays(t tester, rows, packed *Graph, q question, pages int, size func() int) {
	var mark any
	for page := range pages {
		first := size()
		want, _, err := q.page(t.Context(), rows, mark, first)
		must.OK(t, err)
		got, next, err := q.page(t.Context(), packed, mark, first)
		must.That(t, err == nil && reflect.DeepEqual(got, want), "%s, page %d of at most %d: %+v, %v; rows say %+v", q.name, page, first, got, err, want)
		if next == nil {
			return
		}
		must.That(t, next != mark || first <= 0, "%s: no way on from %+v", q.name, mark)
		mark = next
	}
}

// Lists in memory give the same answers as rows, for every audience.
func TestListsInMemoryAnswerAsRowsDo(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		drawPeople(t, store)
		rows := drawPlanner(t, store)
		rows.budget = 1_000_000
		p := drawPacked(t, store)
		p.share = rapid.SampledFrom([]float64{0.7, 1}).Draw(t, "share of answers from memory")
		none := storage.UserID(rapid.IntRange(0, people).Draw(t, "whose lists are empty"))
		q := SuggestionQuery{
			User: storage.UserID(rapid.IntRange(1, people).Draw(t, "user")),
			Via:  rapid.IntRange(0, 5).Draw(t, "via"),
		}
		for id := storage.UserID(1); id <= people; id++ {
			if rapid.IntRange(0, 6).Draw(t, "dismissed") == 0 {
				q.Dismissed = append(q.Dismissed, id)
			}
		}
		f := drawFilter(t, 3)
		for _, question := range questions(drawList(t, "a"), drawList(t, "b"), drawList(t, "c"), f, func(l List) bool { return l.Owner == none }, q) {
			askBothWays(t, readBy(rows, store), readBy(rows, p), question, 2000, func() int { return rapid.IntRange(0, 4).Draw(t, "first") })
		}
	})
}

// Lists that are long enough for bitmaps, and audiences from whom hundreds are hidden.
func TestLongListsInMemoryAnswerAsRowsDo(t *testing.T) {
	t.Parallel()
	const users, celebrities = 2000, 4
	r := rand.New(rand.NewPCG(31, 32))
	store := oracle.New()
	var edges []storage.Edge
	add := func(from, to storage.UserID) {
		kind := storage.Following
		if r.IntN(20) == 0 {
			kind = storage.None
		}
		edges = append(edges, storage.Edge{From: from, To: to, Type: kind, UpdateTime: storage.Micros(1 + r.IntN(users))})
	}
	for id := storage.UserID(1); id <= users; id++ {
		for star := storage.UserID(1); star <= celebrities; star++ {
			if id != star && r.IntN(10) < 6 {
				add(id, star)
			}
			if id != star && r.IntN(10) < int(3*(star-1)) {
				add(star, id)
			}
		}
		for range 3 {
			if to := storage.UserID(1 + r.IntN(users)); to != id && to > celebrities {
				add(id, to)
			}
		}
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		must.All(t, store.Apply(t.Context(), side, edges, storage.IfNewer))
	}
	some := func(n int) (ids []storage.UserID) {
		for range n {
			ids = append(ids, storage.UserID(1+r.IntN(users)))
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	audiences := map[string]*Audience{
		"nobody":              nil,
		"no one is hidden":    NewAudience(7, hiddenUsers{}, nil),
		"a few are":           NewAudience(9, hiddenUsers(some(5)), some(5)),
		"hundreds are":        NewAudience(11, hiddenUsers(some(900)), some(300)),
		"the viewer is":       NewAudience(some(1)[0], hiddenUsers(slices.Concat(some(50))), nil),
		"nearly everybody is": NewAudience(12, hiddenUsers(some(5*users)), nil),
	}
	for name, a := range audiences {
		t.Run(name, func(t *testing.T) {
			rows := New(store, 100_000_000, a)
			p := newPacked(store, 1, 1, idset.NewDirectory())
			sizes := []int{0, 1, 20, 100, 300}
			at := 0
			size := func() int { at++; return sizes[at%len(sizes)] }
			not := Filter{On: []List{{storage.Inverse, 3}}}
			f := Filter{All: []Filter{{On: []List{{storage.Inverse, 1}}}, {Any: []Filter{{On: []List{{storage.Inverse, 2}}}, {On: []List{{storage.Forward, 4}}}}}, {Not: &not}}}
			lists := []List{{storage.Inverse, 1}, {storage.Inverse, 2}, {storage.Forward, 3}, {storage.Forward, 50}}
			for i, list := range lists {
				other := lists[(i+1)%len(lists)]
				suggest := SuggestionQuery{User: storage.UserID(2 + 50*i), Via: 3, Dismissed: some(100)}
				for _, q := range questions(list, other, lists[0], f, func(List) bool { return false }, suggest) {
					askBothWays(t, rows, readBy(rows, p), q, 8, size)
				}
			}
		})
	}
}

// If rows would be incomplete or refused because of a long list or a small budget, an answer from memory is
// still complete, and not refused.
func TestListsInMemoryNeedNoBudget(t *testing.T) {
	t.Parallel()
	store := oracle.New()
	var edges []storage.Edge
	for id := storage.UserID(3); id <= 2000; id++ {
		edges = append(edges, storage.Edge{From: id, To: 1, Type: storage.Following, UpdateTime: storage.Micros(id)})
		edges = append(edges, storage.Edge{From: id, To: 2, Type: storage.Following, UpdateTime: storage.Micros(id)})
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	rows := New(store, 500, nil)
	packed := readBy(rows, newPacked(store, 1, 1, idset.NewDirectory()))
	a, b := List{storage.Inverse, 1}, List{storage.Inverse, 2}
	common := PeopleQuery{Filter: Both(a, b), First: 10}
	c := peopleOf(t, rows, common)
	must.That(t, !c.Complete, "rows: %+v", c)
	c = peopleOf(t, packed, common)
	check.That(t, c.Complete && c.Total == 1998 && len(c.IDs) == 10, "%+v", c)
	q := MatchQuery{Base: a, Other: b}
	_, fits, _ := rows.Fits(t.Context(), q)
	check.That(t, !fits, "rows fit")
	_, fits, err := packed.Fits(t.Context(), q)
	check.That(t, err == nil && fits, "it does not fit in memory: %v", err)
	p, err := packed.Matches(t.Context(), q, MatchMark{}, 10)
	check.That(t, err == nil && p.Complete && p.Total == 1998 && p.Matches[0].ID == 2000, "%+v, %v", p, err)
}
