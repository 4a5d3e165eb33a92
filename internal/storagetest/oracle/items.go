package oracle

import (
	"cmp"
	"context"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sides"
)

// findDue answers [storage.DueLookups].
func (s *Store) findDue(q storage.ShardQuery[storage.RelationRow]) (due []storage.RelationRow, found bool) {
	compare := func(a, b storage.RelationRow) int {
		return cmp.Or(cmp.Compare(a.EndsAt, b.EndsAt), storage.Relations.Compare(a.Pair(), b.Pair()))
	}
	for pair, d := range on(s, q.Shard, s.details, func(p storage.Pair) storage.UserID { return p.From }) {
		row := storage.RelationRow{Edge: s.row(storage.Relations, pair), Detail: storage.Detail{EndsAt: d.EndsAt}}
		if d.EndsAt > 0 && d.EndsAt <= q.Until && compare(row, q.After) > 0 {
			due = append(due, row)
		}
	}
	slices.SortFunc(due, compare)
	return due[:min(q.Limit, len(due))], true
}

// findKindCounts answers [storage.KindLookups].
func (s *Store) findKindCounts(k storage.OwnerKind) (storage.KindCount, bool) {
	return s.kinds[k], true
}

// itemCount is what is counted of an item on a side: the number of its edges, and what the store has.
func (s *Store) itemCount(side storage.Side, id storage.PostID) (have, are int64, known bool) {
	for _, e := range s.tables[side][id.Author] {
		if e.Item == id.Number {
			are += judge.Counted(e.Type)
		}
	}
	switch kind := s.kinds[storage.OwnerKind{Owner: id.Author, Kind: id.Number}]; side {
	case storage.Relations:
		return kind.Outgoing, are, true
	case storage.RelationInbox:
		return kind.Incoming, are, true
	}
	p := s.posts[id]
	if p == nil {
		return 0, are, false
	}
	return p.Counts.Favorites, are, true
}

// WrongItemCounts implements [sides.Comparer].
func (s *Store) WrongItemCounts(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	items := make(map[storage.PostID]bool)
	for id := range on(s, shard, s.posts, authorOf) {
		items[id] = true
	}
	for of := range on(s, shard, s.kinds, func(k storage.OwnerKind) storage.UserID { return k.Owner }) {
		items[storage.PostID{Author: of.Owner, Number: of.Kind}] = true
	}
	for _, e := range s.owned(shard, side, owners) {
		items[storage.PostID{Author: side.Owner(e.Pair()), Number: e.Item}] = true
	}
	var wrong []sides.WrongCount
	for id := range items {
		if have, are, known := s.itemCount(side, id); known && isOf(owners, id.Author) && have != are {
			wrong = append(wrong, sides.WrongCount{User: id.Author, Item: id.Number, Have: have, Are: are})
		}
	}
	slices.SortFunc(wrong, func(a, b sides.WrongCount) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Item, b.Item))
	})
	return wrong, nil
}

// RecountItems implements [sides.Repairer].
func (s *Store) RecountItems(ctx context.Context, side storage.Side, items []storage.PostID) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(items))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	for i, id := range items {
		results[i] = storage.Result[bool]{Value: true, Found: true}
		have, are, known := s.itemCount(side, id)
		of := storage.OwnerKind{Owner: id.Author, Kind: id.Number}
		kind := s.kinds[of]
		switch {
		case !known || have == are:
		case side == storage.Relations:
			kind.Outgoing = are
			s.kinds[of] = kind
		case side == storage.RelationInbox:
			kind.Incoming = are
			s.kinds[of] = kind
		default:
			s.posts[id].Counts.Favorites = are
			s.posts[id].Counts.Version++
		}
	}
	return results
}
