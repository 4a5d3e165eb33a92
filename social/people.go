package social

import (
	"context"
	"fmt"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Mark is where an answer continues: behind the id After, with Found
// users up to there. Its zero value is the beginning.
type Mark struct {
	After storage.UserID
	Found int
}

// lastUser is behind every user.
const lastUser storage.UserID = math.MaxInt64

// Common is a page of users that match a filter, by ascending id.
type Common struct {
	IDs []storage.UserID

	// Total counts all matching users if Complete is set, otherwise those found so far, including
	// earlier pages.
	Total    int
	Complete bool

	// More reports that users may follow this page; Next is where.
	More bool
	Next Mark
}

// PeopleQuery asks for the first users behind a mark that match a filter.
type PeopleQuery struct {
	Filter Filter          // which has been checked
	Empty  func(List) bool // lists that count as empty, whatever their rows; nil: none
	From   Mark
	First  int
}

// Both matches the users who are on two lists.
func Both(a, b List) Filter { return Filter{On: []List{a, b}} }

// People returns a page of users that match a filter, by ascending id, without hidden users.
//
// It first reads the shortest list that contains all wanted users, judged by the
// counts, and with it every list that is not far longer. In the other lists it looks up only the
// candidates from those.
func (g *Graph) People(ctx context.Context, query PeopleQuery) (Common, error) {
	q := newPeopleQuery(g, query)
	g.recall(ctx, q.parts)
	g.measure(ctx, q.parts)
	g.unpack(ctx, q.choose())
	g.read(ctx, q.afford())
	g.lookUp(ctx, q.candidates(ctx))
	if err := q.err(); err != nil {
		return Common{}, fmt.Errorf("look for people %s: %w", q.Filter, err)
	}
	return q.page(), nil
}

// peopleQuery is the state of one query.
type peopleQuery struct {
	PeopleQuery
	graph *Graph
	parts []*neededList // each list of the filter once

	drivers  []*neededList  // every wanted user is on one of them
	chosen   []*neededList  // to be read whole: the drivers, and lists that are not far longer
	rows     int            // left in the budget
	least    int            // rows of each list that are read in any case
	isPartly bool           // not all lists are known as a whole
	upTo     storage.UserID // if so, the candidates are complete up to this user
}

func newPeopleQuery(g *Graph, query PeopleQuery) *peopleQuery {
	q := &peopleQuery{PeopleQuery: query, graph: g, rows: g.left(), least: g.firstLook(), upTo: lastUser}
	lists := query.Filter.Lists()
	parts := make([]neededList, len(lists))
	q.parts = make([]*neededList, 0, len(lists))
	for i, l := range lists {
		if q.index(l) >= 0 {
			continue
		}
		if parts[i].List = l; q.Empty != nil && q.Empty(l) {
			parts[i].set = idset.Of(nil)
		}
		q.parts = append(q.parts, &parts[i])
	}
	return q
}

// index is where a list is among the parts, -1 if it is not.
func (q *peopleQuery) index(l List) int {
	return slices.IndexFunc(q.parts, func(p *neededList) bool { return p.List == l })
}

func (q *peopleQuery) err() error {
	for _, p := range q.parts {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

// driversOf lists the parts that together contain every user who matches a filter, each once, and their total
// length: the shortest such parts.
func (q *peopleQuery) driversOf(f Filter) (drivers []*neededList, length int64) {
	length = math.MaxInt64
	shortest := func(parts []*neededList, n int64) {
		if n < length {
			drivers, length = parts, n
		}
	}
	for _, l := range f.On {
		i := q.index(l)
		shortest(q.parts[i:i+1:i+1], q.parts[i].length)
	}
	if f.Members != nil {
		n := int64(f.Members.Set.Len())
		shortest([]*neededList{{set: f.Members.Set, length: n}}, n)
	}
	for _, all := range f.All {
		if all.Not == nil {
			shortest(q.driversOf(all))
		}
	}
	if len(f.Any) > 0 {
		length = 0
	}
	for _, anyOf := range f.Any {
		more, n := q.driversOf(anyOf)
		length += n
		for _, p := range more {
			if !slices.Contains(drivers, p) { // a second read of it would hide that the first one has failed
				drivers = append(drivers, p)
			}
		}
	}
	return drivers, length
}

// choose returns which lists are best read whole: all but those in which it is faster to look
// the candidates up.
func (q *peopleQuery) choose() []*neededList {
	var length int64
	q.drivers, length = q.driversOf(q.Filter)
	worth := max(int64(q.graph.sizes.firstLook), probeCost*length)
	q.chosen = storage.Filter(q.parts, func(p *neededList) bool {
		return p.set == nil && (p.length <= worth || slices.Contains(q.drivers, p))
	})
	return q.chosen
}

// afford returns which of the chosen lists are read from their rows: all, or the drivers, or
// none, as the budget allows.
func (q *peopleQuery) afford() []*neededList {
	for _, some := range [2][]*neededList{q.chosen, q.drivers} {
		rows := 0
		for _, p := range some {
			if p.set == nil {
				rows += int(p.length)
			}
		}
		if rows <= q.rows {
			q.rows -= rows
			return some
		}
	}
	return nil
}

// candidates returns the look-ups: the users of the drivers, in each list that has not
// been read. If the drivers are too long for the budget, it reads a range of them.
func (q *peopleQuery) candidates(ctx context.Context) (probes []*probe) {
	if q.err() != nil {
		return nil
	}
	rows := max(q.least, q.rows/(2*len(q.drivers)))
	for _, p := range q.drivers {
		if p.set == nil {
			q.isPartly = true
			q.upTo = min(q.upTo, q.graph.readRange(ctx, p, q.From.After, rows))
			q.rows -= rows
		}
	}
	for _, p := range q.parts {
		if p.set == nil {
			probes = append(probes, &probe{neededList: p})
		}
	}
	if len(probes) == 0 || q.err() != nil {
		return nil
	}
	q.isPartly = true
	either := idset.Term{}
	for _, p := range q.drivers {
		either.Any = append(either.Any, idset.Term{Set: p.set})
	}
	most := max(q.least, q.rows/len(probes))
	ids, _ := idset.Select(either, q.From.After, most+1)
	if len(ids) > most {
		ids = ids[:most]
		q.upTo = min(q.upTo, ids[most-1])
	}
	ids = before(ids, q.upTo)
	for _, p := range probes {
		p.ids = ids
	}
	return probes
}

// term is a filter over sets.
func (q *peopleQuery) term(f Filter) (t idset.Term) {
	if f.Members != nil {
		return idset.Term{Set: f.Members.Set}
	}
	if n := len(f.On) + len(f.All); n > 0 {
		t.All = make([]idset.Term, 0, n)
	}
	for _, l := range f.On {
		t.All = append(t.All, idset.Term{Set: q.parts[q.index(l)].set})
	}
	for _, p := range f.All {
		if p.Not != nil {
			not := q.term(*p.Not)
			not.Not = true
			t.All = append(t.All, not)
		} else {
			t.All = append(t.All, q.term(p))
		}
	}
	for _, p := range f.Any {
		t.Any = append(t.Any, q.term(p))
	}
	return t
}

// page computes the answer. Lists that are known as a whole are counted again for every page. If they
// are known only from the mark on, the count is added to the number in the mark.
func (q *peopleQuery) page() Common {
	term, a, few := q.term(q.Filter), q.graph.audience, q.graph.sizes.fewCommon
	dir := q.directory()
	switch {
	case q.isPartly:
		ids, _ := idset.Select(term, q.From.After, math.MaxInt)
		return q.partlyPage(a.showing(before(ids, q.upTo)))
	case dir == nil:
		few = math.MaxInt // merging the lists has cost more than looking at every user does
	}
	ids, total := idset.Select(term, 0, few)
	if total <= few {
		shown := a.showing(ids) // users whom only the audience knows to be hidden are not counted
		return q.pageOf(idset.Behind(shown, q.From.After), len(shown))
	}
	if a.HidesAtMost() > 0 {
		a.noticeOn(term)
		term = a.shownOf(dir, term)
	}
	for n := q.First + 1; ; n *= 2 {
		ids, total = idset.Select(term, q.From.After, n)
		if shown := a.showing(ids); len(shown) > q.First || len(ids) < n {
			return q.pageOf(shown, total)
		}
	}
}

// directory is that of the first numbered set; nil if all of them are plain.
func (q *peopleQuery) directory() *idset.Directory {
	for _, p := range q.parts {
		if dir := p.set.Directory(); dir != nil {
			return dir
		}
	}
	return nil
}

// partlyPage makes a page of the known users behind the mark.
func (q *peopleQuery) partlyPage(ids []storage.UserID) Common {
	c := q.pageOf(ids, q.From.Found+len(ids))
	if q.upTo < lastUser {
		if c.Complete = false; !c.More || q.First == 0 {
			c.More, c.Next = true, Mark{q.upTo, c.Total} // the budget has ended before the page was full
		}
	}
	return c
}

// pageOf makes a page of the ids behind the mark: ids has one more than the page holds, if there is one.
func (q *peopleQuery) pageOf(ids []storage.UserID, total int) Common {
	c := Common{Total: total, Complete: true, More: len(ids) > q.First}
	c.IDs = ids[:min(q.First, len(ids))]
	c.Next = Mark{q.From.After, q.From.Found + len(c.IDs)}
	if n := len(c.IDs); n > 0 {
		c.Next.After = c.IDs[n-1]
	}
	return c
}

// before is the part of ascending ids that is not behind one.
func before(ids []storage.UserID, upTo storage.UserID) []storage.UserID {
	return ids[:len(ids)-len(idset.Behind(ids, upTo))]
}
