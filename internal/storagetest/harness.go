package storagetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// many is more keys than any engine puts into one statement.
const many = 3000

// A harness is what the promises of one topic share.
type harness struct {
	store storage.Store
	given atomic.Int64 // ids handed out
}

// ids returns n ids that nobody else in this store uses. Four in a row are as different as ids
// get: a small one, one of the largest possible, one as Sonyflake makes them, and one in between.
// They spread over all shards and are in no order; text order and number order differ.
func (h *harness) ids(n int) []storage.UserID {
	ids := make([]storage.UserID, n)
	for i := range ids {
		k := h.given.Add(1)
		switch k % 4 {
		case 0:
			ids[i] = storage.UserID(k)
		case 1:
			ids[i] = storage.MaxUserID - storage.UserID(k) + 1 // the first one is the greatest itself
		case 2:
			ids[i] = storage.UserID((36_000_000_000+k)<<24 | 0x2a17)
		default:
			ids[i] = storage.UserID(1_000_000 + k*7919)
		}
	}
	return ids
}

// sortedIDs is ids in ascending order.
func (h *harness) sortedIDs(n int) []storage.UserID {
	return slices.Sorted(slices.Values(h.ids(n)))
}

// id is one new id.
func (h *harness) id() storage.UserID { return h.ids(1)[0] }

// idOn is an id whose user is on a shard.
func (h *harness) idOn(t *testing.T, ordinal int) storage.UserID {
	t.Helper()
	shards := storage.NewShardMap(len(h.store.Ping(t.Context())))
	for {
		if id := h.id(); shards.Of(id) == ordinal {
			return id
		}
	}
}

// users makes users with ids, handles and names of their own.
func (h *harness) newUsers(t *testing.T, n int) []storage.User {
	t.Helper()
	users := make([]storage.User, n)
	for i, id := range h.ids(n) {
		users[i] = person(id)
	}
	for i, made := range answers(t, h.store.CreateUsers(t.Context(), users), n) {
		must.That(t, made, "user %d was not made", users[i].ID)
	}
	return users
}

// part is an additional interface that some stores have. For other stores its promises are skipped.
func part[P any](t *testing.T, h *harness) P {
	t.Helper()
	p, ok := h.store.(P)
	if !ok {
		t.Skipf("this store is no %s", reflect.TypeFor[P]())
	}
	return p
}

// person is a user who has not been made yet.
func person(id storage.UserID) storage.User {
	return storage.User{
		ID:        id,
		Handle:    fmt.Sprintf("u%d", id),
		Name:      fmt.Sprintf("User №%d", id),
		CreatedAt: at(1),
		UpdatedAt: at(1),
	}
}

// at is the n-th microsecond of the suite's time.
func at(n int) storage.Micros { return 1_700_000_000_000_000 + storage.Micros(n) }

// allTypes are the types of follows.
var allTypes = []storage.EdgeType{storage.None, storage.Following, storage.Blocking, storage.Requested, storage.Denied}

// typesOf returns types of edges on a side. Lists and neighbours are made of the second type.
// Nothing follows from these types towards users who have no other edges with each other.
func typesOf(side storage.Side) []storage.EdgeType {
	switch side.Truth() {
	case storage.Forward:
		return allTypes
	case storage.Favorites, storage.Relations:
		return []storage.EdgeType{storage.None, storage.Favorited, storage.None}
	}
	return []storage.EdgeType{storage.None, storage.Pending, storage.Declined}
}

// edge is an edge as its owner on a side sees it. Where follows have a block, requests have a
// declined request, see typesOf.
func edge(side storage.Side, owner, peer storage.UserID, kind storage.EdgeType, time storage.Micros) storage.Edge {
	pair := side.Pair(owner, peer)
	if kind == storage.Blocking {
		kind = typesOf(side)[2]
	}
	if side.HasItem() {
		pair.Item = math.MaxInt64 - int64(peer)%1000 // of a post that does not exist
	}
	return pair.Edge(kind, time)
}

// follow is an edge of type Following, or Pending, the n-th in time.
func follow(side storage.Side, owner, peer storage.UserID, n int) storage.Edge {
	return edge(side, owner, peer, storage.Following, at(n))
}

// eachTable runs a test for every table of edges.
func eachTable(t *testing.T, test func(t *testing.T, side storage.Side)) {
	onSides(t, storage.AllSides[:], test)
}

// sides are the tables of edges between users; a topic may have others.
func (h *harness) sides() []storage.Side { return storage.Sides[:] }

// followSides are the tables of follows, which are counted.
var followSides = []storage.Side{storage.Forward, storage.Inverse}

// eachSide runs a test for every table of edges between users.
func eachSide(t *testing.T, test func(t *testing.T, side storage.Side)) {
	onSides(t, storage.Sides[:], test)
}

// eachFollowSide runs a test for both tables of follows, which are counted.
func eachFollowSide(t *testing.T, test func(t *testing.T, side storage.Side)) {
	onSides(t, followSides, test)
}

func onSides(t *testing.T, sides []storage.Side, test func(t *testing.T, side storage.Side)) {
	for _, side := range sides {
		t.Run(side.String(), func(t *testing.T) { test(t, side) })
	}
}

// otherThan is all tables but one.
func otherThan(side storage.Side) []storage.Side {
	return slices.DeleteFunc(slices.Clone(storage.Sides[:]), func(s storage.Side) bool { return s == side })
}

// apply writes edges if they are newer.
func (h *harness) apply(t *testing.T, side storage.Side, edges ...storage.Edge) []storage.Changed {
	t.Helper()
	return h.applyRule(t, side, storage.IfNewer, edges...)
}

func (h *harness) applyRule(t *testing.T, side storage.Side, rule storage.Rule, edges ...storage.Edge) []storage.Changed {
	t.Helper()
	return answers(t, h.store.Apply(t.Context(), side, edges, rule), len(edges))
}

// countsOf reads the counts of one user, which must exist.
func (h *harness) countsOf(t *testing.T, id storage.UserID) storage.Counts {
	t.Helper()
	return found(t, storage.CountLookups.Read(t.Context(), h.store, id), 1)[0]
}

// edgeOf reads one edge, which must exist.
func (h *harness) edgeOf(t *testing.T, side storage.Side, pair storage.Pair) storage.Edge {
	t.Helper()
	return found(t, storage.EdgeLookups[side].Read(t.Context(), h.store, pair), 1)[0]
}

// rows reads a range of an owner's rows.
func (h *harness) rows(t *testing.T, q storage.RowsQuery) []storage.Edge {
	t.Helper()
	return found(t, storage.RowLookups.Read(t.Context(), h.store, q), 1)[0]
}

// page reads one range of a list.
func (h *harness) page(t *testing.T, side storage.Side, q storage.PageQuery) []storage.Edge {
	t.Helper()
	return found(t, storage.PageLookups[side].Read(t.Context(), h.store, q), 1)[0]
}
