package social

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"kith/graph/declared"
	"kith/storage"
)

// Relate makes edges of a declared kind from a user to others, or changes their ends and attributes. Each has its own outcome, in their
// order: [ErrSelf]; [storage.ErrUserUnknown] for an end that is no user, unless the kind leads elsewhere; [storage.ErrLimitReached];
// [storage.ErrAttributesTooLong]; [storage.ErrForbidden] where the kind asks for peace. [ActorMissing] if the user itself is unknown.
//
// stale reports that the inverse side lags for a reason that waiting does not repair.
func (t *Relations) Relate(ctx context.Context, people storage.Answerer, user storage.UserID, kind declared.Kind, ends []storage.UserID, detail storage.DetailChange) (changed []storage.Result[storage.Changed], stale bool) {
	switch {
	case kind.Lasts > 0:
		detail.EndsAt = t.at() + storage.Micros(kind.Lasts.Microseconds())
	case !kind.Timed:
		detail.EndsAt = 0
	}
	errs := make([]error, len(ends))
	if kind.To == "" {
		_, errs = t.present(ctx, people, user, ends)
	}
	change := storage.EdgeChange{Type: storage.Related, Detail: detail}
	changed, stale = t.relate(ctx, user, kind, ends, errs, change)
	for i := range changed {
		for try := 0; kind.KeepsNewest && errors.Is(changed[i].Err, storage.ErrLimitReached) && try < triesForRoom; try++ {
			if err := t.makeRoom(ctx, user, kind); err != nil {
				changed[i].Err = err
				break
			}
			again, lags := t.relate(ctx, user, kind, ends[i:i+1], errs[i:i+1], change)
			changed[i], stale = again[0], stale || lags
		}
	}
	return changed, stale
}

const (
	// triesForRoom is how often Relate makes room for an edge: other calls may take it.
	triesForRoom = 100
	// surplus is how many edges beyond their bound an import may have left.
	surplus = 500
)

// makeRoom ends the oldest edges of a user, so that there may be others: a hundredth of them, so that it is done rarely.
func (t *Relations) makeRoom(ctx context.Context, user storage.UserID, kind declared.Kind) error {
	page := storage.PageLookups[storage.Relations].Read(ctx, t.Store, storage.PageQuery{Owner: user, Item: kind.Number, Limit: int(kind.Max) + surplus})[0]
	if page.Err != nil {
		return page.Err
	}
	stay := int(kind.Max - 1 - kind.Max/100)
	oldest := storage.Each(page.Value[min(stay, len(page.Value)):], func(e storage.Edge) storage.UserID { return e.To })
	var failed error
	ended, _ := t.Unrelate(ctx, user, kind, oldest)
	for _, r := range ended {
		failed = cmp.Or(failed, r.Err)
	}
	return failed
}

// Unrelate ends edges. One that there is not changes nothing, without an error, and so it looks where an edge to a hidden user ends:
// to a user who has been deleted there is none. See [Relations.Relate] for stale.
func (t *Relations) Unrelate(ctx context.Context, user storage.UserID, kind declared.Kind, ends []storage.UserID) (changed []storage.Result[storage.Changed], stale bool) {
	changed, stale = t.relate(ctx, user, kind, ends, make([]error, len(ends)), storage.EdgeChange{Type: storage.None})
	for i, end := range ends {
		changed[i].Value.Changed = changed[i].Value.Changed && !t.HiddenUsers.Has(end)
	}
	return changed, stale
}

func (t *Relations) relate(ctx context.Context, user storage.UserID, kind declared.Kind, ends []storage.UserID, errs []error, change storage.EdgeChange) (changed []storage.Result[storage.Changed], stale bool) {
	results := make([]storage.Result[storage.Changed], len(ends))
	first := make(map[storage.UserID]int, len(ends))
	var changes []storage.EdgeChange
	var at []int
	for i, end := range ends {
		if results[i].Err = errs[i]; errs[i] != nil {
			continue
		}
		if _, again := first[end]; again {
			continue
		}
		first[end] = i
		change.To, change.Item, change.At = end, kind.Number, t.at()
		changes, at = append(changes, change), append(at, i)
		if kind.Excludes != 0 {
			changes, at = append(changes, storage.EdgeChange{To: end, Item: kind.Excludes, At: change.At, With: true}), append(at, i)
		}
	}
	o := storage.ChangeOptions{MaxItems: kind.Max, Peace: kind.Peace, Inverse: t.Redundancy.Inline()}
	var written []storage.Written
	for j, r := range t.Store.ChangeEdges(ctx, storage.Relations, user, changes, o) {
		r.Err = gone(user, r.Err)
		written = append(written, r.Value.Written()...)
		if made := &results[at[j]]; changes[j].With && made.Value.Changed {
			made.Value.Also = r.Value.Written()
		} else if !changes[j].With || r.Value.Changed {
			*made = r
		}
	}
	stale = t.propagate(ctx, written)
	for i, end := range ends { // named twice
		if k, same := first[end]; same && k != i && errs[i] == nil {
			results[i] = results[k]
			results[i].Value.Changed = false
		}
	}
	return results, stale
}

// dueAtOnce is how many relations of a shard EndDue ends at a time.
const dueAtOnce = 500

// EndDue ends the relations of a shard whose time has come, if there are any and the caller may. Those that cannot end are left, and
// reported as an error: those of a user who is being deleted go with the user.
func (t *Relations) EndDue(ctx context.Context, shard int, may func() bool) error {
	var failed error
	now := t.at()
	query := storage.ShardQuery[storage.RelationRow]{Shard: shard, Limit: dueAtOnce, Until: now}
	for more := true; more; {
		due, err := storage.DueLookups.Get(ctx, t.Store, query)
		if err != nil {
			return fmt.Errorf("read relations that have come to their end: %w", err)
		}
		if len(due) == 0 || !may() {
			return failed
		}
		query.After, more = due[len(due)-1], len(due) == dueAtOnce
		byUser := make(map[storage.UserID][]storage.EdgeChange)
		for _, e := range due {
			byUser[e.From] = append(byUser[e.From], storage.EdgeChange{To: e.To, Item: e.Item, Type: storage.None, At: now, IfDue: true})
		}
		var written []storage.Written
		for _, user := range slices.Sorted(maps.Keys(byUser)) {
			for _, r := range t.Store.ChangeEdges(ctx, storage.Relations, user, byUser[user], storage.ChangeOptions{Inverse: t.Redundancy.Inline()}) {
				if r.Err != nil {
					failed = fmt.Errorf("end relations of user %s: %w", user, r.Err)
				}
				written = append(written, r.Value.Written()...)
			}
		}
		t.propagate(ctx, written)
	}
	return failed
}

// Kinds of relations to users whom a user does not want in some of its answers: whom it has muted there, or dismissed. A mute of the
// whole user also counts in searches and in activities.
var (
	OutOfFeeds       = []declared.Kind{declared.Mutes, declared.PostMutes}
	OutOfSuggestions = []declared.Kind{declared.Mutes, declared.Dismissals}
)

// Asked lists the users whom requests of a user to be friends wait for that are newer than a time, ascending.
func (g *Graph) Asked(ctx context.Context, user storage.UserID, most int, since storage.Micros) (asked []storage.UserID, err error) {
	q := storage.PageQuery{Owner: user, Type: storage.Pending, Limit: most, Before: storage.Position{UpdateTime: since, Peer: math.MaxInt64}}
	page := storage.PageLookups[storage.Requests].Read(ctx, g.store, q)[0]
	if page.Err != nil {
		return nil, fmt.Errorf("read requests of user %s: %w", user, page.Err)
	}
	return distinct(storage.Each(page.Value, func(e storage.Edge) storage.UserID { return e.To })), nil
}

// Related lists the users at the other ends of a user's edges of kinds, ascending.
func (g *Graph) Related(ctx context.Context, user storage.UserID, kinds ...declared.Kind) ([]storage.UserID, error) {
	queries := storage.Each(kinds, func(k declared.Kind) storage.PageQuery {
		return storage.PageQuery{Owner: user, Item: k.Number, Limit: int(k.Max)}
	})
	var ends []storage.UserID
	for _, r := range storage.PageLookups[storage.Relations].Read(ctx, g.store, queries...) {
		if r.Err != nil {
			return nil, fmt.Errorf("read relations of user %s: %w", user, r.Err)
		}
		ends = append(ends, storage.Each(r.Value, func(e storage.Edge) storage.UserID { return e.To })...)
	}
	return distinct(ends), nil
}
