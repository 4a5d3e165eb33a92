package consistency

import (
	"context"
	"math"

	"kith/storage"
)

// Wait returns once the inverse row of every mark has at least the mark's version, or
// when the time is over, when too many are waiting, or when a shard does not answer. It reports
// whether all rows have arrived.
func (t *Tokens) Wait(ctx context.Context, token Token) (fresh bool) {
	if len(token) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, t.MaxWait)
	defer cancel()
	token, ok := t.single(ctx, token)
	if !ok {
		return false
	}
	w := waiter{late: token}
	if w.take(t.missing(ctx, token)) {
		return w.fresh
	}
	return t.polls.wait(ctx, w.late)
}

// mostOfSpans is how many rows all spans may hold: several times the rows of one mutation.
const mostOfSpans = 2000

// single replaces spans by the rows that they stand for; ok is false if a shard does not answer, or
// the spans hold too many rows.
func (t *Tokens) single(ctx context.Context, token Token) (rows Token, ok bool) {
	var queries []storage.PageQuery
	for _, m := range token {
		if !m.isSpan() {
			rows = append(rows, m)
			continue
		}
		for _, kind := range [...]storage.EdgeType{storage.Following, storage.Requested} {
			queries = append(queries, storage.PageQuery{
				Owner: m.Pair.From, Type: kind, Limit: mostOfSpans + 1,
				After:  storage.Position{UpdateTime: m.Version + 1},
				Before: storage.Position{UpdateTime: m.Since - 1, Peer: math.MaxInt64},
			})
		}
	}
	if len(queries) == 0 {
		return token, true
	}
	spanned := 0
	for _, r := range storage.PageLookups[storage.Forward].Read(ctx, t.Store, queries...) {
		if spanned += len(r.Value); r.Err != nil || spanned > mostOfSpans {
			return nil, false
		}
		rows = append(rows, storage.Each(r.Value, markOf)...)
	}
	return rows, true
}

// missing returns the marks whose inverse rows have not arrived, and those whose shard
// does not answer. The rows that have arrived are reported to the caches.
func (t *Tokens) missing(ctx context.Context, token Token) map[Mark]markState {
	missing := map[Mark]markState{}
	var arrived storage.Change
	for _, side := range storage.Truths {
		var marks Token
		var pairs []storage.Pair
		for _, m := range token {
			if m.Side.Truth() == side && m.Version != 0 {
				marks, pairs = append(marks, m), append(pairs, m.Pair)
			}
		}
		if len(marks) == 0 {
			continue
		}
		for i, r := range storage.EdgeLookups[side.Replica()].Read(ctx, t.Store, pairs...) {
			switch {
			case r.Err != nil:
				missing[marks[i]] = isUnknown
			case r.Value.UpdateTime < marks[i].Version:
				missing[marks[i]] = isLate
			default: // a row on the inverse side is on the forward side
				arrived.Rows = append(arrived.Rows, storage.Row{Side: side, Edge: r.Value}, storage.Row{Side: side.Replica(), Edge: r.Value})
			}
		}
	}
	// A relation's detail is on the forward side alone, and its row stays when that changes: the version of the counts tells.
	own := storage.Filter(token, func(m Mark) bool { return m.Side == storage.Relations })
	owners := storage.Each(own, func(m Mark) storage.UserID { return m.Pair.From })
	for i, r := range storage.CountLookups.Read(ctx, t.Store, owners...) {
		if arrived.Users = append(arrived.Users, storage.UserChange{User: owners[i], Counts: r.Value, Before: r.Value.Version}); r.Err != nil {
			missing[own[i]] = isUnknown
		}
	}
	t.Arrived(ctx, arrived)
	return missing
}
