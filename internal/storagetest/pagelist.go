package storagetest

import (
	"fmt"
	"testing"

	"kith/storage"
)

// A list is one owner's list as it should be read.
type list struct {
	owner storage.UserID
	peers []storage.UserID // ascending
	rows  []storage.Edge   // those that are listed, newest first
}

// makeList writes a list of eight follows, some of them with the same time, with two blocks and two
// tombstones among them.
func (h *harness) makeList(t *testing.T, side storage.Side) list {
	t.Helper()
	owner, p := h.id(), h.sortedIDs(12)
	l := list{owner: owner, peers: p, rows: []storage.Edge{
		follow(side, owner, p[4], 9),
		follow(side, owner, p[7], 7),
		follow(side, owner, p[6], 5),
		follow(side, owner, p[1], 5),
		follow(side, owner, p[3], 3),
		follow(side, owner, p[2], 3),
		follow(side, owner, p[0], 3),
		follow(side, owner, p[5], 1),
	}}
	r := l.rows
	h.apply(t, side,
		r[6], edge(side, owner, p[8], storage.Blocking, at(5)), r[2], r[0],
		edge(side, owner, p[9], storage.None, at(3)), r[7], r[4], r[1],
		edge(side, owner, p[10], storage.Blocking, at(20)), r[5], r[3],
		edge(side, owner, p[11], storage.None, at(0)),
	)
	return l
}

// ranges returns queries for every range between two rows, from both ends, with several limits.
func (l list) ranges(side storage.Side) (queries []storage.PageQuery, want [][]storage.Edge) {
	n := len(l.rows)
	for after := -1; after < n; after++ {
		for before := 0; before <= n; before++ {
			for _, limit := range []int{1, 3, n, 100} {
				q := storage.PageQuery{Owner: l.owner, Limit: limit}
				if after >= 0 {
					q.After = side.Position(l.rows[after])
				}
				if before < n {
					q.Before = side.Position(l.rows[before])
				}
				between := l.rows[after+1 : max(before, after+1)]
				size := min(limit, len(between))
				queries, want = append(queries, q), append(want, between[:size])
				q.Backward = true
				queries, want = append(queries, q), append(want, between[len(between)-size:])
			}
		}
	}
	return queries, want
}

// wantCut checks that a position divides a list after its first `ahead` rows.
func (h *harness) wantCut(t *testing.T, side storage.Side, l list, position storage.Position, ahead int) {
	t.Helper()
	const limit = 3
	behind := l.rows[ahead:]
	ahead3, behind3 := min(limit, ahead), min(limit, len(behind))
	for _, c := range []struct {
		query storage.PageQuery
		want  []storage.Edge
	}{
		{storage.PageQuery{After: position}, behind[:behind3]},
		{storage.PageQuery{After: position, Backward: true}, behind[len(behind)-behind3:]},
		{storage.PageQuery{Before: position}, l.rows[:ahead3]},
		{storage.PageQuery{Before: position, Backward: true}, l.rows[ahead-ahead3 : ahead]},
	} {
		c.query.Owner, c.query.Limit = l.owner, limit
		wantList(t, fmt.Sprintf("%+v", c.query), h.page(t, side, c.query), c.want)
	}
}
