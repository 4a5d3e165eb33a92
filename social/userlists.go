package social

import (
	"context"
	"fmt"
	"slices"

	"kith/graph/declared"
	"kith/storage"
	"kith/storage/cache/idset"
)

// OnLists reads who is on lists that users have made, hidden users included.
func (g *Graph) OnLists(ctx context.Context, lists []storage.ListID) (sets []*idset.Set, err error) {
	queries := storage.Each(lists, func(id storage.ListID) storage.PageQuery {
		return storage.PageQuery{Owner: id.Owner, Item: id.Kind(), Limit: declared.MaxMembers}
	})
	for i, r := range storage.PageLookups[storage.Relations].Read(ctx, g.store, queries...) {
		if r.Err != nil {
			return nil, fmt.Errorf("read who is on list %d of user %s: %w", lists[i].Number, lists[i].Owner, r.Err)
		}
		members := storage.Each(r.Value, func(e storage.Edge) storage.UserID { return e.To })
		slices.Sort(members)
		sets = append(sets, idset.Of(members))
	}
	return sets, nil
}

// endedAtOnce is how many members one step of DeleteList takes out.
const endedAtOnce = 500

// DeleteList removes a list: first its members, in steps, then the list itself. If it is broken off, the list stays, with fewer members.
// [storage.ErrListUnknown].
func (t *Relations) DeleteList(ctx context.Context, lists storage.Store, id storage.ListID) error {
	query := storage.PageQuery{Owner: id.Owner, Item: id.Kind(), Limit: endedAtOnce}
	for range 2 * declared.MaxMembers / endedAtOnce { // others may add members meanwhile
		page := storage.PageLookups[storage.Relations].Read(ctx, t.Store, query)[0]
		if page.Err != nil {
			return page.Err
		}
		members := storage.Each(page.Value, func(e storage.Edge) storage.UserID { return e.To })
		ended, _ := t.Unrelate(ctx, id.Owner, declared.Members(id), members) // nobody reads the inverse side of a list
		for _, r := range ended {
			if r.Err != nil {
				return r.Err
			}
		}
		if len(members) == endedAtOnce {
			continue
		}
		if deleted, err := lists.DeleteList(ctx, id); err != nil || deleted {
			return err
		}
	}
	return fmt.Errorf("%w: members of list %d of user %s are added while it is deleted", storage.ErrUnavailable, id.Number, id.Owner)
}
