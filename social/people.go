package social

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"kith/storage"
)

// A Filter says which people are wanted. It has exactly one of its fields: lists to be
// on, or what other filters have to say.
type Filter struct {
	On  []List   // on every one of these lists
	All []Filter // all of them fit; those that are negated, beside at least one that is not
	Any []Filter // any of them fits
	Not *Filter  // does not fit; within All only
}

// Bounds on a filter.
const (
	MaxFilterLists  = 16
	MaxFilterLevels = 8
)

// What can be wrong with a filter. The texts are for clients.
var (
	ErrFilterEmpty  = errors.New("`and` and `or` take at least one filter")
	ErrFilterNot    = errors.New("`not` stands within an `and`, beside at least one filter without it: what fits nothing else would be nearly everybody")
	ErrFilterLists  = fmt.Errorf("a filter reads at most %d lists; friendsOf reads two", MaxFilterLists)
	ErrFilterLevels = fmt.Errorf("a filter has at most %d levels", MaxFilterLevels)
)

// Check tells what is wrong with a filter.
func (f Filter) Check() error {
	if err := f.check(1, false); err != nil {
		return err
	}
	if len(f.Lists()) > MaxFilterLists {
		return ErrFilterLists
	}
	return nil
}

func (f Filter) check(level int, negatable bool) error {
	if level > MaxFilterLevels {
		return ErrFilterLevels
	}
	switch {
	case len(f.On) > 0:
		return nil
	case f.Not != nil:
		if !negatable {
			return ErrFilterNot
		}
		return f.Not.check(level+1, false)
	}
	parts := slices.Concat(f.All, f.Any)
	if len(parts) == 0 {
		return ErrFilterEmpty
	}
	isPositive := func(p Filter) bool { return p.Not == nil }
	for _, p := range parts {
		if err := p.check(level+1, slices.ContainsFunc(f.All, isPositive)); err != nil {
			return err
		}
	}
	return nil
}

// Lists are all lists that a filter reads.
func (f Filter) Lists() []List {
	lists := slices.Clone(f.On)
	if f.Not != nil {
		lists = f.Not.Lists()
	}
	for _, p := range slices.Concat(f.All, f.Any) {
		lists = append(lists, p.Lists()...)
	}
	return lists
}

// String spells a filter in one way only: cursors are bound to it.
func (f Filter) String() string {
	switch {
	case len(f.On) > 0:
		return fmt.Sprintf("on%s", f.On)
	case f.Not != nil:
		return fmt.Sprintf("not %s", f.Not)
	case len(f.Any) > 0:
		return fmt.Sprintf("any%s", f.Any)
	}
	return fmt.Sprintf("all%s", f.All)
}

// People returns the first users behind a mark whom a filter fits, by ascending id,
// without hidden users. The filter has been checked. empty are lists that count as
// empty, whatever is on them.
//
// Lists in memory are combined as sets, if all of them are there. Of rows, the first look is
// at the beginning of all lists, read in one go: short ones are whole then.
// After that, the shortest list that everybody wanted is on gives the candidates, a
// stretch at a time, and the others are asked about them: by a walk over the same
// stretch or, where a list is far longer, by looking the candidates up.
func (g *Graph) People(ctx context.Context, f Filter, empty func(List) bool, from Mark, first int) (Common, error) {
	if c, ok := g.peoplePacked(ctx, f, empty, from, first); ok {
		return c, nil
	}
	q := &peopleQuery{graph: g, examinable: int(g.budget), lists: map[List]*walked{}}
	t := q.term(f, empty)
	if err := q.begin(ctx, from.After); err != nil {
		return Common{}, fmt.Errorf("look for people: %w", err)
	}
	p := &intersection{graph: g, first: first, found: from.Found, decided: from.After}
	limit := g.firstLook
	for started := false; !p.done && (!started || q.examinable > 0); started = true {
		s, err := t.scan(ctx, p.decided, limit)
		if err != nil {
			return Common{}, fmt.Errorf("look for people: %w", err)
		}
		for _, id := range s.ids {
			p.hit(id)
		}
		p.decided, p.done, limit = s.last, s.end, g.stride
	}
	return p.page(from), nil
}

// term is a filter at work.
type term interface {
	// size is about how many it fits, at most.
	size() int64
	// scan finds whom it fits behind an id, ascending: all of them up to stretch.last.
	// Calls come with ascending ids.
	scan(ctx context.Context, after storage.UserID, limit int) (stretch, error)
	// keep returns those of ascending ids whom it fits. The ids are from a set of about
	// so many.
	keep(ctx context.Context, ids []storage.UserID, of int64) ([]storage.UserID, error)
}

// stretch is whom a term fits, in ascending order, up to last.
type stretch struct {
	ids  []storage.UserID
	last storage.UserID
	end  bool // nobody comes behind last
}

// behind is what of a stretch lies behind an id.
func (s stretch) behind(id storage.UserID) []storage.UserID {
	at, found := slices.BinarySearch(s.ids, id)
	if found {
		at++
	}
	return s.ids[at:]
}

// peopleQuery is the state of one People.
type peopleQuery struct {
	graph      *Graph
	examinable int
	lists      map[List]*walked // each once, however often it is named
}

func (q *peopleQuery) term(f Filter, empty func(List) bool) term {
	switch {
	case len(f.On) == 1:
		return q.list(f.On[0], empty)
	case len(f.Any) > 0:
		t := &anyOf{}
		for _, p := range f.Any {
			t.terms = append(t.terms, q.term(p, empty))
		}
		t.pending = make([]stretch, len(t.terms))
		return t
	}
	t := &allOf{}
	for _, l := range f.On {
		t.with = append(t.with, q.list(l, empty))
	}
	for _, p := range f.All {
		if p.Not != nil {
			t.without = append(t.without, q.term(*p.Not, empty))
		} else {
			t.with = append(t.with, q.term(p, empty))
		}
	}
	return t
}

func (q *peopleQuery) list(l List, empty func(List) bool) *walked {
	w, ok := q.lists[l]
	if !ok {
		w = &walked{query: q, List: l}
		if empty(l) {
			w.ahead.last, w.ahead.end = math.MaxInt64, true
		}
		q.lists[l] = w
	}
	return w
}

// begin reads the beginning of all lists behind an id, and how long those are that do
// not end there.
func (q *peopleQuery) begin(ctx context.Context, after storage.UserID) error {
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		var who []*walked
		for _, w := range q.lists {
			if w.Side == side && !w.ahead.end {
				who = append(who, w)
			}
		}
		if err := q.walk(ctx, side, who, after, q.graph.firstLook); err != nil {
			return err
		}
	}
	var long []*walked
	var owners []storage.UserID
	for _, w := range q.lists {
		if w.count = int64(len(w.ahead.ids)); !w.ahead.end {
			long = append(long, w)
			owners = append(owners, w.Owner)
		}
	}
	if len(long) == 0 {
		return nil
	}
	for i, r := range q.graph.store.Counts(ctx, owners) {
		if r.Err != nil {
			return r.Err
		}
		long[i].count = max(1, r.Value.Of(long[i].Side))
	}
	return nil
}

// walk reads a stretch of some lists of one side.
func (q *peopleQuery) walk(ctx context.Context, side storage.Side, who []*walked, after storage.UserID, limit int) error {
	if len(who) == 0 {
		return nil
	}
	queries := make([]storage.WalkQuery, len(who))
	for i, w := range who {
		queries[i] = storage.WalkQuery{Owner: w.Owner, After: after, Limit: limit}
	}
	for i, r := range q.graph.store.Walks(ctx, side, queries) {
		if r.Err != nil {
			return r.Err
		}
		q.examinable -= r.Value.Examined
		who[i].from = after
		who[i].ahead = stretch{r.Value.Peers, max(r.Value.Last, after), r.Value.End}
	}
	return nil
}

// walked is a list, of which the stretch behind from has been read ahead.
type walked struct {
	List
	query *peopleQuery
	count int64 // how long it is
	from  storage.UserID
	ahead stretch
}

func (w *walked) size() int64 { return w.count }

// covers tells whether it is known who of the list comes next behind an id.
func (w *walked) covers(after storage.UserID) bool {
	return after >= w.from && (after < w.ahead.last || w.ahead.end)
}

func (w *walked) scan(ctx context.Context, after storage.UserID, limit int) (stretch, error) {
	if !w.covers(after) {
		if err := w.query.walk(ctx, w.Side, []*walked{w}, after, limit); err != nil {
			return stretch{}, err
		}
	}
	return stretch{w.ahead.behind(after), max(after, w.ahead.last), w.ahead.end}, nil
}

func (w *walked) keep(ctx context.Context, ids []storage.UserID, of int64) ([]storage.UserID, error) {
	var kept []storage.UserID
	for len(ids) > 0 {
		switch {
		case w.covers(ids[0] - 1):
			n := len(ids)
			if !w.ahead.end {
				n, _ = slices.BinarySearch(ids, w.ahead.last+1)
			}
			kept = append(kept, common(ids[:n], w.ahead.behind(ids[0]-1))...)
			ids = ids[n:]
		case w.count < probeCost*of:
			if err := w.query.walk(ctx, w.Side, []*walked{w}, ids[0]-1, w.query.graph.stride); err != nil {
				return nil, err
			}
		default:
			return w.look(ctx, kept, ids)
		}
	}
	return kept, nil
}

// look adds to kept who of the ids is found in the list's index.
func (w *walked) look(ctx context.Context, kept, ids []storage.UserID) ([]storage.UserID, error) {
	pairs := make([]storage.Pair, len(ids))
	for i, id := range ids {
		pairs[i] = w.Side.Pair(w.Owner, id)
	}
	w.query.examinable -= len(pairs)
	for i, r := range w.query.graph.store.Edges(ctx, w.Side, pairs) {
		if r.Err != nil {
			return nil, r.Err
		}
		if isFollow(r) {
			kept = append(kept, ids[i])
		}
	}
	return kept, nil
}

// allOf fits whom all of some terms fit, and none of some others.
type allOf struct{ with, without []term }

func (t *allOf) size() int64 { return t.shortest().size() }

func (t *allOf) shortest() term {
	return slices.MinFunc(t.with, func(a, b term) int { return int(min(1, max(-1, a.size()-b.size()))) })
}

func (t *allOf) scan(ctx context.Context, after storage.UserID, limit int) (stretch, error) {
	driver := t.shortest()
	s, err := driver.scan(ctx, after, limit)
	if err != nil {
		return stretch{}, err
	}
	s.ids, err = t.filter(ctx, s.ids, driver.size(), driver)
	return s, err
}

func (t *allOf) keep(ctx context.Context, ids []storage.UserID, of int64) ([]storage.UserID, error) {
	return t.filter(ctx, ids, of, nil)
}

// filter asks every term but one that has been asked already.
func (t *allOf) filter(ctx context.Context, ids []storage.UserID, of int64, asked term) ([]storage.UserID, error) {
	var err error
	for _, with := range t.with {
		if with == asked || len(ids) == 0 {
			continue
		}
		if ids, err = with.keep(ctx, ids, of); err != nil {
			return nil, err
		}
	}
	for _, without := range t.without {
		if len(ids) == 0 {
			break
		}
		out, err := without.keep(ctx, ids, of)
		if err != nil {
			return nil, err
		}
		ids = missing(ids, out)
	}
	return ids, nil
}

// anyOf fits whom any of some terms fits.
type anyOf struct {
	terms   []term
	pending []stretch // what each has found, and the others have not come to yet
}

func (t *anyOf) size() int64 {
	var total int64
	for _, one := range t.terms {
		total += one.size()
	}
	return total
}

func (t *anyOf) scan(ctx context.Context, after storage.UserID, limit int) (stretch, error) {
	s := stretch{last: math.MaxInt64, end: true}
	for i, one := range t.terms {
		if p := &t.pending[i]; !p.end && p.last <= after {
			var err error
			if *p, err = one.scan(ctx, after, limit); err != nil {
				return stretch{}, err
			}
		}
		if p := t.pending[i]; !p.end {
			s.last, s.end = min(s.last, p.last), false
		}
	}
	for _, p := range t.pending {
		ids := p.behind(after)
		n, found := slices.BinarySearch(ids, s.last)
		if found {
			n++
		}
		s.ids = union(s.ids, ids[:n])
	}
	return s, nil
}

func (t *anyOf) keep(ctx context.Context, ids []storage.UserID, of int64) ([]storage.UserID, error) {
	var kept []storage.UserID
	rest := ids
	for _, one := range t.terms {
		if len(rest) == 0 {
			break
		}
		fits, err := one.keep(ctx, rest, of)
		if err != nil {
			return nil, err
		}
		kept, rest = union(kept, fits), missing(rest, fits)
	}
	return kept, nil
}

// common is what two ascending lists have in common.
func common(a, b []storage.UserID) []storage.UserID {
	var both []storage.UserID
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case b[0] < a[0]:
			b = b[1:]
		default:
			both = append(both, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return both
}

// missing is what of an ascending list is not on another one.
func missing(a, b []storage.UserID) []storage.UserID {
	var rest []storage.UserID
	for _, id := range a {
		for len(b) > 0 && b[0] < id {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != id {
			rest = append(rest, id)
		}
	}
	return rest
}

// union is what is on either of two ascending lists.
func union(a, b []storage.UserID) []storage.UserID {
	if len(a) == 0 {
		return b
	}
	both := make([]storage.UserID, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			both, a = append(both, a[0]), a[1:]
		case b[0] < a[0]:
			both, b = append(both, b[0]), b[1:]
		default:
			both, a, b = append(both, a[0]), a[1:], b[1:]
		}
	}
	return append(append(both, a...), b...)
}
