package social

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// MatchQuery asks for the users on one list who are also on another, or who are not: friends are
// followings who are also followers; followers not followed back are followers who are not
// followings. The answer has the base list's order, newest first.
type MatchQuery struct {
	Base, Other List
	Absent      bool // asks for those who are not on the other list
}

// Friends are the mutual follows of a user, its newest following first. Both halves of every pair
// are on the user's own shard.
func Friends(user storage.UserID) MatchQuery {
	return MatchQuery{Base: List{storage.Forward, user}, Other: List{storage.Inverse, user}}
}

// NotFollowingBack are the followings of a user who do not follow it.
func NotFollowingBack(user storage.UserID) MatchQuery {
	return MatchQuery{Base: List{storage.Forward, user}, Other: List{storage.Inverse, user}, Absent: true}
}

// NotFollowedBack are the followers of a user whom it does not follow.
func NotFollowedBack(user storage.UserID) MatchQuery {
	return MatchQuery{Base: List{storage.Inverse, user}, Other: List{storage.Forward, user}, Absent: true}
}

// MatchMark is where an answer continues: behind the position After in the base list,
// with Found matches up to there.
type MatchMark struct {
	After storage.Position
	Found int
}

// Match is one of them.
type Match struct {
	ID    storage.UserID
	At    storage.Position // in the base list
	Other storage.Micros   // when the edge of the other list began; 0 if there is none, or the lists are of two users
}

// hasOther reports whether the answer needs the time of the edge on the other list: the time of a
// friendship is the later of two.
func (q MatchQuery) hasOther() bool { return !q.Absent && q.Base.Owner == q.Other.Owner }

// MatchPage is a page of matches. Its other fields are those of [Common].
type MatchPage struct {
	Matches  []Match
	Total    int
	Complete bool
	More     bool
	Next     MatchMark
}

// Fits reports whether the whole base list can be scanned within one budget, and
// how many rows that takes. Lists in memory always fit.
func (g *Graph) Fits(ctx context.Context, q MatchQuery) (rows int64, fits bool, err error) {
	base, _, inMemory, err := g.pair(ctx, q)
	if err != nil {
		return 0, false, fmt.Errorf("read counts of user %s: %w", q.Base.Owner, err)
	}
	if inMemory {
		return 0, true, nil
	}
	return 2 * base.length, 2*base.length <= int64(g.budget), nil
}

// pair returns both lists if they are in memory, and otherwise their lengths.
func (g *Graph) pair(ctx context.Context, q MatchQuery) (base, other *neededList, inMemory bool, err error) {
	base, other = &neededList{List: q.Base}, &neededList{List: q.Other}
	parts := []*neededList{base, other}
	g.recall(ctx, parts)
	g.measure(ctx, parts)
	return base, other, base.set != nil && other.set != nil, errors.Join(base.err, other.err)
}

// Matches returns the first matches behind a mark, without hidden users.
//
// The base is scanned newest first, in memory or as rows, and its users are looked up in the other
// list. If the other list is far shorter than the base, its users are looked up in the base
// instead: either they are the matches, or all other users of the base are, which are counted by
// subtraction.
func (g *Graph) Matches(ctx context.Context, q MatchQuery, from MatchMark, first int) (MatchPage, error) {
	c := &matches{MatchQuery: q, graph: g, from: from, first: first, decided: from.After, total: notCounted, examinable: g.left()}
	if err := c.run(ctx); err != nil {
		return MatchPage{}, fmt.Errorf("look up %s of user %s among %s of user %s: %w", q.Base.Side, q.Base.Owner, q.Other.Side, q.Other.Owner, err)
	}
	return c.page(), nil
}

// matches is the state of one answer.
type matches struct {
	MatchQuery
	graph      *Graph
	from       MatchMark
	first      int
	examinable int        // positions that may still be gone through
	others     *idset.Set // the other list, if it has been read whole

	// next returns the matches behind decided, of at most so many positions or so many matches, moves
	// decided, and reports whether the base ends there.
	next  func(ctx context.Context, most int) (some []Match, end bool, err error)
	total int // of all matches; notCounted if it is found by scanning the base

	isExact bool // total matches are behind the mark: when they have been found, the scan is done

	list    []Match // one more than the page holds, if there is one
	found   int     // behind the mark
	decided storage.Position
	done    bool // the base has ended
}

const notCounted = -1

func (c *matches) run(ctx context.Context) error {
	base, other, inMemory, err := c.graph.pair(ctx, c.MatchQuery)
	if err != nil {
		return err
	}
	most := c.graph.firstLook()
	switch hidden := int64(c.graph.audience.HidesAtMost()); {
	case inMemory:
		most = c.first + 1
		c.inSets(base, other)
	case !c.Absent && other.length*probeCost < base.length && other.length < int64(c.examinable)/2:
		err = c.fromOther(ctx, other)
	case c.Absent && hidden <= fewLeftOut && (other.length+hidden)*probeCost < base.length && other.length+hidden < int64(c.examinable)/2:
		most = c.first + 1
		err = c.fromAll(ctx, base, other)
	case c.wholeOther(other.length, base.length):
		c.graph.read(ctx, []*neededList{other})
		err, c.others = other.err, other.set
		c.examinable -= int(other.length)
		most, c.next = c.graph.sizes.stride, c.fromBase
	default:
		c.next = c.fromBase
	}
	for isFirst := true; err == nil && !c.isEnough() && (isFirst || c.mayExamine()); isFirst = false {
		err = c.step(ctx, most)
		most = c.graph.sizes.stride
	}
	if err != nil {
		return err
	}
	return c.addOthers(ctx)
}

// wholeOther reports whether the other list is read whole: if the users of the base, whom it takes to count all, are not far fewer.
func (c *matches) wholeOther(other, base int64) bool {
	return other <= probeCost*base && base > int64(c.graph.sizes.firstLook) && other+base <= int64(c.examinable)
}

// mayExamine reports whether the budget goes on: this answer's, and that of the request.
func (c *matches) mayExamine() bool { return c.examinable > 0 && c.graph.left() > 0 }

// isEnough reports whether nothing more has to be found.
func (c *matches) isEnough() bool {
	return c.done || c.total != notCounted && (len(c.list) > c.first || c.first == 0)
}

func (c *matches) step(ctx context.Context, most int) (err error) {
	some, end, err := c.next(ctx, most)
	if err != nil {
		return err
	}
	some = slices.DeleteFunc(some, func(one Match) bool { return c.graph.audience.Hides(one.ID) })
	c.found += len(some)
	if some = some[:min(len(some), c.first+1-len(c.list))]; c.list == nil {
		c.list = some
	} else {
		c.list = append(c.list, some...)
	}
	c.done = end || c.isExact && c.found == c.total
	return nil
}

// inSets compares lists in memory. They are counted as sets, unless scanning is as fast.
func (c *matches) inSets(base, other *neededList) {
	c.examinable = max(1, c.graph.left()) * c.graph.sizes.positionsPerRow
	if base.order.Len() > min(c.graph.sizes.fewPositions, c.examinable) {
		c.total = c.countSets(base.set, other.set)
	}
	c.next = func(_ context.Context, most int) ([]Match, bool, error) {
		if c.total == notCounted {
			most = base.order.Len() + 1
		}
		a := base.order.Among(other.set, c.Absent, c.decided, most, c.examinable)
		c.decided = a.Last
		c.examinable -= a.Examined
		c.graph.examine(a.Examined / c.graph.sizes.positionsPerRow)
		some := storage.Each(a.Positions, func(at storage.Position) Match { return Match{ID: at.Peer, At: at} })
		return some, a.End, nil
	}
	c.isExact = c.total != notCounted && c.from.After == storage.Position{}
	c.done = c.isExact && c.total == 0
}

// countSets counts all matches: a user of the base who is not common to both is absent from the other list.
func (c *matches) countSets(base, other *idset.Set) int {
	both := idset.Term{All: []idset.Term{{Set: base}, {Set: other}}}
	c.graph.audience.noticeOn(idset.Term{All: []idset.Term{{Set: base}, {Set: other, Not: c.Absent}}})
	if a := c.graph.audience; a.HidesAtMost() > 0 {
		both = a.shownOf(base.Directory(), both)
	}
	_, common := idset.Select(both, 0, 0)
	if !c.Absent {
		return common
	}
	return base.Len() - c.graph.hiddenOn(base) - common
}

// fromBase reads the next rows of the base, and looks them up in the other list.
func (c *matches) fromBase(ctx context.Context, most int) (some []Match, end bool, err error) {
	positions, end, err := c.read(ctx, most)
	if err != nil {
		return nil, false, err
	}
	if c.others != nil {
		for _, at := range positions {
			if c.others.Contains(at.Peer) != c.Absent {
				some = append(some, Match{ID: at.Peer, At: at})
			}
		}
		return some, end, nil
	}
	others, err := c.look(ctx, c.Other, storage.Each(positions, func(at storage.Position) storage.UserID { return at.Peer }))
	some = make([]Match, 0, len(positions))
	for i, at := range positions {
		if err == nil && isFollow(others[i]) != c.Absent {
			some = append(some, Match{at.Peer, at, others[i].Value.UpdateTime})
		}
	}
	return some, end, err
}

// read reads the next rows of the base.
func (c *matches) read(ctx context.Context, most int) (positions []storage.Position, end bool, err error) {
	c.graph.examine(most)
	r := storage.PageLookups[c.Base.Side].Read(ctx, c.graph.store, storage.PageQuery{Owner: c.Base.Owner, After: c.decided, Limit: most})[0]
	c.examinable -= len(r.Value)
	c.graph.examine(len(r.Value) - most)
	positions = make([]storage.Position, 0, len(r.Value))
	for _, e := range r.Value {
		c.decided = c.Base.Side.Position(e)
		positions = append(positions, c.decided)
	}
	return positions, len(r.Value) < most, r.Err
}

// look reads the edges of users in a list.
func (c *matches) look(ctx context.Context, l List, ids []storage.UserID) ([]storage.Result[storage.Edge], error) {
	c.examinable -= len(ids)
	c.graph.examine(len(ids))
	return c.graph.edgesOf(ctx, l, ids)
}

// lookUpOther reads the other list, and looks it and more users up in the base.
func (c *matches) lookUpOther(ctx context.Context, other *neededList, more []storage.UserID) (on []storage.Position, ids []storage.UserID, err error) {
	if c.graph.read(ctx, []*neededList{other}); other.err != nil {
		return nil, nil, other.err
	}
	ids = distinct(slices.Concat(other.set.IDs(), more))
	edges, err := c.look(ctx, c.Base, ids)
	for _, e := range edges {
		if isFollow(e) {
			on = append(on, c.Base.Side.Position(e.Value))
		}
	}
	return on, ids, err
}

// fromOther sorts those users of a short list who are on the base.
func (c *matches) fromOther(ctx context.Context, other *neededList) error {
	on, _, err := c.lookUpOther(ctx, other, nil)
	slices.SortFunc(on, storage.Position.Compare)
	c.next = func(context.Context, int) (some []Match, end bool, err error) {
		for _, at := range on {
			if (c.from.After == storage.Position{}) || at.Compare(c.from.After) > 0 {
				some = append(some, Match{ID: at.Peer, At: at})
			}
		}
		return some, true, nil
	}
	return err
}

// fewLeftOut is how many hidden users may be looked up for one answer.
const fewLeftOut = 1000

// fromAll counts by subtraction. If one list is long and the other far shorter, nearly every user on the long list
// is absent from the short one, such as the followers whom a celebrity does not follow back. Scanning a list of a
// million to count them takes a second. But the length of the long list is known, and only few users must be
// subtracted: those on the short list, and hidden users. The base is read for the page only.
func (c *matches) fromAll(ctx context.Context, base, other *neededList) error {
	on, without, err := c.lookUpOther(ctx, other, c.graph.audience.Hidden())
	c.total = max(0, int(base.length)-len(on))
	c.next = func(ctx context.Context, most int) (some []Match, end bool, err error) {
		positions, end, err := c.read(ctx, most)
		for _, at := range positions {
			if _, isOut := slices.BinarySearch(without, at.Peer); !isOut {
				some = append(some, Match{ID: at.Peer, At: at})
			}
		}
		return some, end, err
	}
	return err
}

// addOthers reads, for the page, the times of the other list's edges, if they are needed and not
// yet known.
func (c *matches) addOthers(ctx context.Context) error {
	page := c.list[:min(c.first, len(c.list))]
	if !c.hasOther() {
		for i := range page {
			page[i].Other = 0
		}
		return nil
	}
	if len(page) == 0 || page[0].Other != 0 {
		return nil
	}
	others, err := c.look(ctx, c.Other, storage.Each(page, func(one Match) storage.UserID { return one.ID }))
	for i, r := range others {
		if isFollow(r) {
			page[i].Other = r.Value.UpdateTime
		}
	}
	return err
}

func (c *matches) page() MatchPage {
	n := min(c.first, len(c.list))
	onPage, sum := c.from.Found+n, c.from.Found+c.found
	p := MatchPage{
		Matches: c.list[:n], Total: sum, Complete: c.isEnough(), More: len(c.list) > c.first,
		Next: MatchMark{c.from.After, onPage},
	}
	switch isFull := p.More; {
	case p.Complete && !c.done:
		// The count and the page are of two moments. If they disagree, the page is right.
		if c.first > 0 {
			p.Total = max(c.total, onPage+1)
		} else {
			p.Total = max(c.total, onPage)
			p.More = onPage < p.Total
		}
	case !p.Complete && (c.first == 0 || !isFull):
		// The budget has ended before the page was full.
		p.More, p.Next = true, MatchMark{c.decided, sum}
		return p
	}
	if n > 0 {
		p.Next.After = c.list[n-1].At
	}
	return p
}
