package social

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/finding"
)

// Order is what selected users of a list are ordered by.
type Order uint8

const (
	Recent       Order = iota // newest first
	Closest                   // the viewer's special follows, then its friends, then whom it follows, then all others; of each newest first
	MostFollowed              // ties newest first
)

// MaxMembers is how many users of a list, its newest ones, are sorted and searched for one answer.
const MaxMembers = 10_000

// MemberQuery asks for those users of a list whom a client has selected.
type MemberQuery struct {
	List     List
	Other    *List            // they are also on this list; nil: it does not matter
	Absent   bool             // they are not on the other list
	Words    []string         // each begins a word of their names or handles; see [finding.SearchedWords]
	Special  *bool            // whether the viewer's follow of them is special
	Specials []storage.UserID // the viewer's special follows, ascending
	Order    Order
}

// Member is one of them.
type Member struct {
	Match
	Rank int64 // greater ones come first, equal ones in the order of the list
}

// Compare orders members as pages have them.
func (m Member) Compare(o Member) int {
	return cmp.Or(cmp.Compare(o.Rank, m.Rank), m.At.Compare(o.At))
}

// Members returns all selected users of a list in their order, without hidden users. complete is false if there may be others, whom
// it has not looked at: it looks at the newest [MaxMembers] users of the list, or at all users with a word that few have.
func (g *Graph) Members(ctx context.Context, q MemberQuery) (members []Member, complete bool, err error) {
	named, isNamed, err := g.namedIn(ctx, q)
	if err == nil {
		members, complete, err = g.among(ctx, q, named, isNamed)
	}
	if err != nil {
		return nil, false, fmt.Errorf("select users of %s: %w", q.List, err)
	}
	return members, complete, nil
}

// among selects among those who are known to have the words, or among all.
func (g *Graph) among(ctx context.Context, q MemberQuery, named []storage.UserID, isNamed bool) ([]Member, bool, error) {
	list, complete, err := g.candidatesOn(ctx, q, named, isNamed)
	if err != nil {
		return nil, false, err
	}
	if len(q.Words) > 0 && !isNamed {
		ids := storage.Each(list, func(m Match) storage.UserID { return m.ID })
		if named, err = g.haveWords(ctx, distinct(ids), q.Words); err != nil {
			return nil, false, err
		}
	}
	list = slices.DeleteFunc(list, func(m Match) bool {
		return (isNamed || len(q.Words) > 0) && !has(named, m.ID) || q.Special != nil && has(q.Specials, m.ID) != *q.Special || g.audience.Hides(m.ID)
	})
	members, err := g.ranked(ctx, q, list)
	return members, complete, err
}

// namedIn lists, ascending, everybody who may be selected. isNamed is false if they are not known before the list is read.
func (g *Graph) namedIn(ctx context.Context, q MemberQuery) (named []storage.UserID, isNamed bool, err error) {
	switch {
	case q.Special != nil && *q.Special:
		named, err = g.haveWords(ctx, q.Specials, q.Words)
		return named, true, err
	case len(q.Words) == 0:
		return nil, false, nil
	}
	word, others := longest(q.Words)
	rows, all, err := g.namedFirst(ctx, word)
	if err != nil || !all {
		return nil, false, err
	}
	named, err = g.haveWords(ctx, distinct(rows), others)
	return named, true, err
}

// candidatesOn reads the users of the list, newest first, or looks up those who have been found by their names.
func (g *Graph) candidatesOn(ctx context.Context, q MemberQuery, named []storage.UserID, isNamed bool) (list []Match, complete bool, err error) {
	if isNamed {
		if len(named) == 0 {
			return nil, true, nil
		}
		count := storage.CountLookups.Read(ctx, g.store, q.List.Owner)[0]
		if length := count.Value.Of(q.List.Side); length > int64(g.sizes.maxMembers) || int64(len(named))*probeCost < length {
			list, err = g.lookUpOn(ctx, q, named)
			return list, true, err
		}
	}
	if q.Other != nil {
		p, err := g.Matches(ctx, MatchQuery{Base: q.List, Other: *q.Other, Absent: q.Absent}, MatchMark{}, g.sizes.maxMembers)
		return p.Matches, p.Complete && !p.More, err
	}
	page := storage.PageLookups[q.List.Side].Read(ctx, g.store, storage.PageQuery{Owner: q.List.Owner, Limit: g.sizes.maxMembers + 1})[0]
	for _, e := range page.Value[:min(g.sizes.maxMembers, len(page.Value))] {
		at := q.List.Side.Position(e)
		list = append(list, Match{ID: at.Peer, At: at})
	}
	return list, len(page.Value) <= g.sizes.maxMembers, page.Err
}

// lookUpOn is those of some users who are on the lists.
func (g *Graph) lookUpOn(ctx context.Context, q MemberQuery, ids []storage.UserID) (list []Match, err error) {
	edges, err := g.edgesOf(ctx, q.List, ids)
	if err != nil {
		return nil, err
	}
	for _, r := range edges {
		if isFollow(r) {
			at := q.List.Side.Position(r.Value)
			list = append(list, Match{ID: at.Peer, At: at})
		}
	}
	if q.Other != nil {
		if edges, err = g.edgesOf(ctx, *q.Other, storage.Each(list, func(m Match) storage.UserID { return m.ID })); err != nil {
			return nil, err
		}
		fit := list[:0]
		for i, m := range list {
			if isFollow(edges[i]) {
				m.Other = edges[i].Value.UpdateTime
			}
			if isFollow(edges[i]) != q.Absent {
				fit = append(fit, m)
			}
		}
		list = fit
	}
	slices.SortFunc(list, func(a, b Match) int { return a.At.Compare(b.At) })
	return list, nil
}

// edgesOf looks users up on a list by key.
func (g *Graph) edgesOf(ctx context.Context, l List, ids []storage.UserID) ([]storage.Result[storage.Edge], error) {
	edges := storage.EdgeLookups[l.Side].Read(ctx, g.store, storage.Each(ids, func(id storage.UserID) storage.Pair { return l.Side.Pair(l.Owner, id) })...)
	for _, r := range edges {
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return edges, nil
}

// ranked gives the users of a list, who come newest first, their ranks, and sorts them.
func (g *Graph) ranked(ctx context.Context, q MemberQuery, list []Match) ([]Member, error) {
	ids := storage.Each(list, func(m Match) storage.UserID { return m.ID })
	if q.Order == Closest && g.viewer() != 0 {
		return g.closest(ctx, q, list, ids)
	}
	members := storage.Each(list, func(m Match) Member { return Member{Match: m} })
	if q.Order == MostFollowed {
		for i, r := range storage.CountLookups.Read(ctx, g.store, ids...) {
			if r.Err != nil {
				return nil, r.Err
			}
			members[i].Rank = r.Value.Follower
		}
		slices.SortFunc(members, Member.Compare)
	}
	return members, nil
}

// closest ranks users by what they are to the viewer.
func (g *Graph) closest(ctx context.Context, q MemberQuery, list []Match, ids []storage.UserID) ([]Member, error) {
	var followed []bool // nil: all of them
	if mine := (List{storage.Forward, g.viewer()}); q.List != mine {
		var err error
		if followed, err = g.isOn(ctx, mine, ids); err != nil {
			return nil, err
		}
	}
	follows, err := g.isOn(ctx, List{storage.Inverse, g.viewer()}, ids)
	if err != nil {
		return nil, err
	}
	ranks := make([]uint8, len(list))
	var end [4]int // of each rank among the sorted ones, as far as they are placed
	for i, m := range list {
		switch {
		case followed != nil && !followed[i]:
		case has(q.Specials, m.ID):
			ranks[i] = 3
		case follows[i]:
			ranks[i] = 2
		default:
			ranks[i] = 1
		}
		for rank := range ranks[i] {
			end[rank]++
		}
	}
	sorted := make([]Member, len(list)) // the order within each is that of the list: sorting took most of the time of an answer
	for i, m := range list {
		at := &end[ranks[i]]
		sorted[*at] = Member{m, int64(ranks[i])}
		*at++
	}
	return sorted, nil
}

// isOn reports which users are on a list: in memory, or by key.
func (g *Graph) isOn(ctx context.Context, l List, ids []storage.UserID) ([]bool, error) {
	on, p := make([]bool, len(ids)), &neededList{List: l}
	if g.recall(ctx, []*neededList{p}); p.set != nil {
		for i, id := range ids {
			on[i] = p.set.Contains(id)
		}
		return on, nil
	}
	edges, err := g.edgesOf(ctx, l, ids)
	for i, r := range edges {
		on[i] = isFollow(r)
	}
	return on, err
}

// namedFirst reads the first rows of the index of words whose users the audience may be shown; all reports that there are no others.
// Hidden users take no places among them, as long as they are less than three times as many as all places.
func (g *Graph) namedFirst(ctx context.Context, word string) (shown []storage.UserID, all bool, err error) {
	most, quiet := g.sizes.maxNamed, g.audience.quiet()
	for limit := most; ; limit *= 2 {
		rows, err := finding.WordLookups.Get(ctx, g.store, finding.WordQuery{Prefix: word, Limit: limit})
		if err != nil {
			return nil, false, err
		}
		shown := quiet.showing(rows)
		if all = len(rows) < limit && len(shown) < most; all || len(shown) >= most || limit >= 4*most {
			shown = shown[:min(most, len(shown))]
			if g.audience.asked() { // others are left out by what follows, which notices it
				shown = slices.Concat(shown, storage.Filter(rows, quiet.Hides))
			}
			return shown, all, nil
		}
	}
}

// haveWords is those of ascending users who have all words, the longest first.
func (g *Graph) haveWords(ctx context.Context, ids []storage.UserID, words []string) (_ []storage.UserID, err error) {
	for _, word := range slices.SortedFunc(slices.Values(words), func(a, b string) int { return len(b) - len(a) }) {
		if len(ids) == 0 || err != nil {
			break
		}
		ids, err = finding.UserWordLookups.Get(ctx, g.store, finding.UserWord{Users: ids, Prefix: word})
	}
	return ids, err
}

// longest is the longest word, which few users have, and the others.
func longest(words []string) (word string, others []string) {
	word = slices.MaxFunc(words, func(a, b string) int { return len(a) - len(b) })
	return word, slices.DeleteFunc(slices.Clone(words), func(other string) bool { return strings.HasPrefix(word, other) })
}

// distinct is [storage.Distinct] for ids that others read, too.
func distinct(ids []storage.UserID) []storage.UserID { return storage.Distinct(slices.Clone(ids)) }
