package judge_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/judge"
)

// On the shard of user 1: the four rows between this user and user 2.
const (
	ttl = time.Millisecond // of requests; it is 1,000 units of their times

	own, theirs     = storage.Forward, storage.Inverse // follows, or blocks
	asked, answered = storage.Requests, storage.Inbox  // requests of user 1, and of user 2
)

func row(side storage.Side, kind storage.EdgeType, at storage.Micros) storage.Row {
	p := side.Pair(1, 2)
	return storage.Row{Side: side, Edge: storage.Edge{From: p.From, To: p.To, Type: kind, UpdateTime: at}}
}

// An edge that arrives at a shard changes the rows of its user as the contract says. If it arrives
// again, the judge lists the same rows again.
func TestWhatFollowsFromAnEdge(t *testing.T) {
	type rows = []storage.Row
	for name, test := range map[string]struct {
		were rows
		come storage.Row
		also rows // the rows that follow from it
		no   bool // it changes nothing
	}{
		"a follow":                      {come: row(own, storage.Following, 5)},
		"an older one":                  {were: rows{row(own, storage.None, 6)}, come: row(own, storage.Following, 5), no: true},
		"of somebody who blocks":        {were: rows{row(theirs, storage.Blocking, 9)}, come: row(own, storage.Following, 5), no: true},
		"a block of one's own":          {were: rows{row(asked, storage.Pending, 3)}, come: row(own, storage.Blocking, 5), also: rows{row(asked, storage.Cancelled, 5)}},
		"a block":                       {were: rows{row(own, storage.Following, 3), row(asked, storage.Pending, 4)}, come: row(theirs, storage.Blocking, 5), also: rows{row(own, storage.None, 5), row(asked, storage.Cancelled, 5)}},
		"a block and a newer follow":    {were: rows{row(own, storage.Following, 8)}, come: row(theirs, storage.Blocking, 5), also: rows{row(own, storage.None, 9)}},
		"a request":                     {come: row(answered, storage.Pending, 5)},
		"requests that cross":           {were: rows{row(asked, storage.Pending, 3)}, come: row(answered, storage.Pending, 5), also: rows{row(asked, storage.Accepted, 6), row(own, storage.Following, 5)}},
		"a blocked request":             {were: rows{row(asked, storage.Pending, 3), row(own, storage.Blocking, 4)}, come: row(answered, storage.Pending, 5)},
		"requests far apart":            {were: rows{row(asked, storage.Pending, 3)}, come: row(answered, storage.Pending, 1004)},
		"requests just not far apart":   {were: rows{row(asked, storage.Pending, 3)}, come: row(answered, storage.Pending, 1003), also: rows{row(asked, storage.Accepted, 1004), row(own, storage.Following, 1003)}},
		"an answer":                     {come: row(answered, storage.Accepted, 5), also: rows{row(own, storage.Following, 5)}},
		"an answer to one who has left": {were: rows{row(own, storage.None, 6)}, come: row(answered, storage.Accepted, 5)},
		"the end of a friendship":       {were: rows{row(own, storage.Following, 3)}, come: row(answered, storage.Removed, 5), also: rows{row(own, storage.None, 5)}},
		"a follow since that end":       {were: rows{row(own, storage.Following, 6)}, come: row(answered, storage.Removed, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge.New(ttl)
			for _, r := range test.were {
				j.Know(r.Side, r.Edge)
			}
			got := j.Apply(test.come.Side, test.come.Edge, storage.IfNewer)
			must.That(t, got.Changed != test.no && sameRows(got.Also, test.also), "changed: %v, also %v, want %v", got.Changed, got.Also, test.also)
			again := j.Apply(test.come.Side, test.come.Edge, storage.IfNewer)
			check.That(t, !again.Changed && (test.no || sameRows(again.Also, test.also)), "again: changed: %v, also %v, want %v", again.Changed, again.Also, test.also)
		})
	}
}

func sameRows(got []storage.Written, want []storage.Row) bool {
	return slices.EqualFunc(got, want, func(w storage.Written, r storage.Row) bool { return w.Row == r })
}

// The counts of friends change with either of the two follows, on the shards of both users, and only
// with the follow that makes or breaks the pair.
func TestCountsOfFriends(t *testing.T) {
	known := make(map[storage.Row]bool)
	for i, step := range []struct {
		by   storage.UserID
		kind storage.EdgeType
		want string // how following, follower and friends of users 1 and 2 change
	}{
		{1, storage.Following, "[1 0 0] [0 1 0]"},
		{2, storage.Following, "[0 1 1] [1 0 1]"},
		{2, storage.Following, "[0 0 0] [0 0 0]"},
		{2, storage.None, "[0 -1 -1] [-1 0 -1]"},
		{2, storage.Following, "[0 1 1] [1 0 1]"},
		{1, storage.Blocking, "[-1 -1 -1] [-1 -1 -1]"},
	} {
		j := judge.New(ttl)
		j.Inline = func(storage.UserID) bool { return true }
		for r := range known {
			j.Know(r.Side, r.Edge)
		}
		by := judge.Actor{User: step.by}
		must.OK(t, j.Change(storage.Forward, &by, storage.EdgeChange{To: 3 - step.by, Type: step.kind, At: storage.Micros(i + 1)}, storage.ChangeOptions{}).Err)
		for _, side := range storage.Sides {
			for _, e := range j.Changed(side) {
				maps.DeleteFunc(known, func(r storage.Row, _ bool) bool { return r.Side == side && r.Edge.Pair() == e.Pair() })
				known[storage.Row{Side: side, Edge: e}] = true
			}
		}
		diffs := make(judge.Diffs)
		j.AddTo(diffs)
		of := func(id storage.UserID) []int64 {
			return []int64{diffs[id].Following, diffs[id].Follower, diffs[id].Friend}
		}
		check.Equal(t, fmt.Sprint("step ", i), fmt.Sprint(of(1), of(2)), step.want)
	}
}
