// Package reconcile finds where the two tables of a pair disagree: `following` and `follower`, `friend_request`,
// `favorite` or `relation` and the inbox of each. It makes the inverse table match the forward one, which always wins.
//
// [Full] compares everything, mostly inside the databases. [Incremental] looks at what has changed
// since its last run, [Realtime] at what changes now.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// A Kind of disagreement.
type Kind string

// The kinds, of which the first four are about an inverse row.
const (
	Missing    Kind = "missing"     // there is a forward row, and no inverse one
	Extra      Kind = "extra"       // there is an inverse row, and no forward one
	WrongType  Kind = "wrong_type"  // the types differ
	WrongTime  Kind = "wrong_time"  // the types are the same, and the times differ
	WrongCount Kind = "wrong_count" // a count is not the number of rows that it counts
	Forbidden  Kind = "forbidden"   // a user follows another who blocks it, or has the id of a deleted one or a thing
)

// Kinds returns all kinds, in the order of reports.
func Kinds() []Kind { return []Kind{Missing, Extra, WrongType, WrongTime, WrongCount, Forbidden} }

// A Finding is one disagreement.
type Finding struct {
	Kind Kind

	// Side is the forward table of the edge's pair. For [WrongCount] it is the table whose rows are
	// counted.
	Side storage.Side

	// The two rows of an edge. A row that does not exist has type [storage.None] at time 0. For
	// [Forbidden]: the follow, and the block in the other direction, which are on one shard; or User, and the pair of it with itself.
	Forward, Inverse storage.Edge

	// For [WrongCount]: the user, its count and what the count should be. Friends says that it is
	// the count of mutual follows, which has no table of its own. If Post is set, it is the count of
	// that post of the user, or of that kind of its relations.
	User      storage.UserID
	Post      int64
	Friends   bool
	Have, Are int64
}

// Pair names the edge of a finding about rows.
func (f Finding) Pair() storage.Pair { return f.Forward.Pair() }

// Key names the edge of a finding about rows.
func (f Finding) Key() Key { return Key{f.Side, f.Pair()} }

// about says what a wrong count counts.
func (f Finding) about() string {
	if f.Friends {
		return "friend"
	}
	return f.Side.String()
}

// count is the column of a wrong count.
func (f Finding) count() string {
	switch {
	case f.Side == storage.Relations:
		return "outgoing"
	case f.Side == storage.RelationInbox:
		return "incoming"
	case f.Side == storage.FavoriteInbox && f.Post == 0:
		return "total_favorited"
	case f.Side.HasItem():
		return "favorite_count"
	}
	return f.about() + "_count"
}

// item is what the item of an edge or of a count is called: that of a post, or that of a kind of relations.
func (f Finding) item(post, kind string) string {
	if f.Side.Truth() == storage.Relations {
		return kind
	}
	return post
}

// String describes the finding in one line.
func (f Finding) String() string {
	switch {
	case f.Kind == WrongCount && f.Post != 0:
		return fmt.Sprintf("%-11s  %s %d of user %d: %s says %d, there are %d", f.Kind, f.item("post", "kind"), f.Post, f.User, f.about(), f.Have, f.Are)
	case f.Kind == WrongCount:
		return fmt.Sprintf("%-11s  user %d: %s says %d, there are %d", f.Kind, f.User, f.about(), f.Have, f.Are)
	case f.User > storage.MaxUserID:
		return fmt.Sprintf("%-11s  user %d: it has the id of thing %d. Delete its row of users by hand: all else with this id may be the thing's", f.Kind, f.User, f.User.ForeignID())
	case f.User != 0:
		return fmt.Sprintf("%-11s  user %d: it has the id of a user who was deleted", f.Kind, f.User)
	case f.Kind == Forbidden:
		return fmt.Sprintf("%-11s  %d → %d: following %s, follower has a block the other way, %s",
			f.Kind, f.Forward.From, f.Forward.To, rowText(f.Forward), rowText(f.Inverse))
	}
	to := f.Forward.To.String()
	switch {
	case f.Side == storage.Relations:
		to = fmt.Sprintf("%s of kind %d", to, f.Forward.Item)
	case f.Forward.Item != 0:
		to = fmt.Sprintf("post %d of %s", f.Forward.Item, to)
	}
	return fmt.Sprintf("%-11s  %d → %s: %s %s, %s %s", f.Kind, f.Forward.From, to,
		f.Side, rowText(f.Forward), f.Side.Replica(), rowText(f.Inverse))
}

func rowText(e storage.Edge) string {
	if absent(e) {
		return "has no row"
	}
	return fmt.Sprintf("type %d at %d", e.Type, e.UpdateTime)
}

// absent reports whether a row does not exist, or is equivalent to none.
func absent(e storage.Edge) bool { return e.Type == storage.None && e.UpdateTime == 0 }

// compare compares the two rows of an edge; false if they agree.
func compare(side storage.Side, rows bothRows) (Finding, bool) {
	f := Finding{Side: side, Forward: rows.forward, Inverse: rows.inverse}
	switch {
	case rows.forward == rows.inverse:
		return Finding{}, false
	case absent(rows.inverse):
		f.Kind = Missing
	case absent(rows.forward):
		f.Kind = Extra
	case rows.forward.Type != rows.inverse.Type:
		f.Kind = WrongType
	default:
		f.Kind = WrongTime
	}
	return f, true
}

// readAtOnce is how many edges are read together.
const readAtOnce = 500

// pairs are the pairs of tables that are compared, named by their forward tables.
var pairs = storage.Truths

// A Key names an edge in one of the pairs of tables.
type Key struct {
	Side storage.Side // the forward table
	Pair storage.Pair
}

// keyOf is the key of a row of either table.
func keyOf(r storage.Row) Key { return Key{r.Side.Truth(), r.Edge.Pair()} }

// KeysOf returns the keys of edges in the pair of tables of a side.
func KeysOf(side storage.Side, pairs []storage.Pair) []Key {
	return storage.Each(pairs, func(p storage.Pair) Key { return Key{side.Truth(), p} })
}

// bothRows are the two rows of one edge, type None at time 0 if there is none.
type bothRows struct{ forward, inverse storage.Edge }

// readBoth reads both rows of each edge, the inverse ones first. The forward row of any event was
// committed before its inverse row, so a forward row is never read older than the inverse row. If a
// shard does not answer, its rows have an Err.
func readBoth(ctx context.Context, store storage.Answerer, keys []Key) []storage.Result[bothRows] {
	results := make([]storage.Result[bothRows], 0, len(keys))
	for chunk := range slices.Chunk(keys, readAtOnce) {
		inverse := readRows(ctx, store, chunk, storage.Side.Replica)
		for i, forward := range readRows(ctx, store, chunk, storage.Side.Truth) {
			err := cmp.Or(inverse[i].Err, forward.Err)
			results = append(results, storage.Result[bothRows]{Value: bothRows{forward.Value, inverse[i].Value}, Found: err == nil, Err: err})
		}
	}
	return results
}

// readRows reads the row of each edge in one table of its pair, with one call per table.
func readRows(ctx context.Context, store storage.Answerer, keys []Key, table func(storage.Side) storage.Side) []storage.Result[storage.Edge] {
	rows := make([]storage.Result[storage.Edge], len(keys))
	for _, pair := range pairs {
		var at []int
		for i, k := range keys {
			if k.Side == pair {
				at = append(at, i)
			}
		}
		side := table(pair)
		for at := range slices.Chunk(at, readAtOnce) {
			asked := storage.Each(at, func(i int) storage.Pair { return keys[i].Pair })
			for j, r := range storage.EdgeLookups[side].Read(ctx, store, asked...) {
				p := asked[j]
				if r.Err != nil {
					r.Err = fmt.Errorf("read %s from %d to %d: %w", side, p.From, p.To, r.Err)
				}
				r.Value.From, r.Value.To, r.Value.Item = p.From, p.To, p.Item // a missing row lacks them
				rows[at[j]] = r
			}
		}
	}
	return rows
}

// Differences reads both rows of each edge and returns those that differ, in the
// order of the keys.
func Differences(ctx context.Context, store storage.Answerer, keys []Key) ([]Finding, error) {
	var found []Finding
	for i, r := range readBoth(ctx, store, keys) {
		if r.Err != nil {
			return nil, r.Err
		}
		if f, differ := compare(keys[i].Side, r.Value); differ {
			found = append(found, f)
		}
	}
	return found, nil
}
