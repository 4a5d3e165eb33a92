package faults_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// history is the answers that callers got, by edge.
type history struct {
	// answered holds every version of an edge that an answer reported as its change.
	answered map[edge]map[int64]change

	// doubtful edges are those of requests that were not answered. They may have a version that no
	// caller got as an answer.
	doubtful map[edge]bool

	// all holds every request on an edge, in no order.
	all map[edge][]result
}

// change is one version of an edge.
type change struct {
	follows bool
	stale   bool  // the answer said that the inverse side may be missing
	by      *life // the process that was asked
}

func newHistory() *history {
	return &history{answered: map[edge]map[int64]change{}, doubtful: map[edge]bool{}, all: map[edge][]result{}}
}

// add notes a change that an answer reported. It returns an error if another answer reported the same change.
func (h *history) add(e edge, version int64, c change) error {
	if h.answered[e] == nil {
		h.answered[e] = map[int64]change{}
	}
	if _, twice := h.answered[e][version]; twice {
		return fmt.Errorf("two callers were answered that they have made %v at %d", e, version)
	}
	h.answered[e][version] = c
	return nil
}

// row is an edge's row in following or follower.
type row struct {
	kind    int
	version int64
}

// tables holds all rows of all shards.
type tables struct{ forward, inverse map[edge]row }

// different returns the edges whose rows are not equal on both sides, in no order.
func (t tables) different() (list []edge) {
	for e, r := range t.forward {
		if t.inverse[e] != r {
			list = append(list, e)
		}
	}
	for e, r := range t.inverse {
		if _, there := t.forward[e]; !there && r != (row{}) {
			list = append(list, e)
		}
	}
	return list
}

func (d *deployment) tables(t testing.TB) tables {
	t.Helper()
	return tables{
		forward: d.rows(t, "following", func(e edge) int64 { return e.from }),
		inverse: d.rows(t, "follower", func(e edge) int64 { return e.to }),
	}
}

// rows reads a table, and checks that each row is on its owner's shard.
func (d *deployment) rows(t testing.TB, table string, owner func(edge) int64) map[edge]row {
	t.Helper()
	all := map[edge]row{}
	for i, db := range d.shards {
		rows, err := db.Query("SELECT from_user_id, to_user_id, type, update_time FROM " + table)
		must.OK(t, err)
		for rows.Next() {
			var e edge
			var r row
			must.OK(t, rows.Scan(&e.from, &e.to, &r.kind, &r.version))
			check.Equal(t, fmt.Sprintf("the shard of %v in %s", e, table), d.shardOf(owner(e)), i)
			all[e] = r
		}
		must.OK(t, rows.Err())
	}
	return all
}

// judge compares the tables with the answers of callers. It returns the edges whose inverse row is
// not equal to that of following.
func (h *history) judge(t testing.TB, found tables) (different []edge) {
	t.Helper()
	for _, e := range h.edges(found) {
		forward, inverse := found.forward[e], found.inverse[e]
		h.judgeForward(t, e, forward)
		if inverse == forward {
			continue
		}
		if inverse.version >= forward.version {
			t.Errorf("%v: follower holds %+v, which was never in following, where it is %+v; %s", e, inverse, forward, h.story(t, e))
		}
		different = append(different, e)
	}
	return different
}

// judgeForward checks that no change that a caller got as an answer is lost, and that there is no
// row that nobody can have written.
func (h *history) judgeForward(t testing.TB, e edge, r row) {
	t.Helper()
	last := int64(0)
	for version := range h.answered[e] {
		last = max(last, version)
	}
	switch c, answered := h.answered[e][r.version]; {
	case r.version < last:
		t.Errorf("%v: following holds %+v, but a caller was answered %d; %s", e, r, last, h.story(t, e))
	case answered && c.follows != (r.kind == 1):
		t.Errorf("%v: following holds %+v, but at that version a caller was answered that it follows: %v; %s", e, r, c.follows, h.story(t, e))
	case !answered && r.version > 0 && !h.doubtful[e]:
		t.Errorf("%v: following holds %+v, which is in no answer, and every request on it was answered; %s", e, r, h.story(t, e))
	}
}

func (h *history) edges(found tables) []edge {
	all := map[edge]bool{}
	for _, m := range []map[edge]row{found.forward, found.inverse} {
		for e := range m {
			all[e] = true
		}
	}
	for e := range h.answered {
		all[e] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b edge) int {
		if a.from != b.from {
			return int(a.from - b.from)
		}
		return int(a.to - b.to)
	})
}

// explain checks that each difference was counted as failed, or lost by a kill: the answer with its
// version said that it is stale, or there was no such answer. It returns the number of stale
// answers that each process gave.
func (h *history) explain(t testing.TB, found tables, different []edge) map[*life]int {
	t.Helper()
	failed := map[*life]int{}
	for _, e := range different {
		c, answered := h.answered[e][found.forward[e].version]
		switch {
		case answered && c.stale:
			failed[c.by]++
		case answered:
			t.Errorf("%v: following holds %+v, follower %+v, and %s reported to nobody that anything is missing; %s", e, found.forward[e], found.inverse[e], c.by.name, h.story(t, e))
		}
	}
	return failed
}

// story writes down every request on an edge, answered or not, and names the file.
func (h *history) story(t testing.TB, e edge) string {
	t.Helper()
	var events []happened
	for _, r := range h.all[e] {
		what := fmt.Sprintf("%v at %s: done %v, stale %v, %s %s", r.operation, r.by.name, r.done, r.stale, r.code, r.message)
		for _, c := range r.changes {
			if c.edge == e {
				what += fmt.Sprintf(", version %d", c.version)
			}
		}
		if r.err != nil {
			what += fmt.Sprintf(", no answer: %v", r.err)
		}
		events = append(events, happened{r.began, r.ended, what})
	}
	return "its history is in " + told(t, e, events)
}

// countsAreExact compares every count with the rows that it counts.
func (d *deployment) countsAreExact(t testing.TB) {
	t.Helper()
	for what, query := range map[string]string{
		"following_count": `SELECT c.user_id, c.following_count, COUNT(f.from_user_id) AS rows_there FROM user_counts c
			LEFT JOIN following f ON f.from_user_id = c.user_id AND f.type = 1 GROUP BY c.user_id HAVING c.following_count <> rows_there`,
		"follower_count": `SELECT c.user_id, c.follower_count, COUNT(f.to_user_id) AS rows_there FROM user_counts c
			LEFT JOIN follower f ON f.to_user_id = c.user_id AND f.type = 1 GROUP BY c.user_id HAVING c.follower_count <> rows_there`,
		"no counts, of following": `SELECT from_user_id, 0, COUNT(*) FROM following WHERE from_user_id NOT IN (SELECT user_id FROM user_counts) GROUP BY from_user_id`,
		"no counts, of follower":  `SELECT to_user_id, 0, COUNT(*) FROM follower WHERE to_user_id NOT IN (SELECT user_id FROM user_counts) GROUP BY to_user_id`,
	} {
		d.noneIsWrong(t, what, query)
	}
}

// noneIsWrong checks that a query for users whose count is not the number of rows that it counts selects nobody.
func (d *deployment) noneIsWrong(t testing.TB, what, query string) {
	t.Helper()
	for i, db := range d.shards {
		rows, err := db.Query(query)
		must.OK(t, err)
		for rows.Next() {
			var user, count, there int64
			must.OK(t, rows.Scan(&user, &count, &there))
			t.Errorf("shard %d: %s of user %d is %d, its rows are %d", i, what, user, count, there)
		}
		must.OK(t, rows.Err())
	}
}
