package social

import (
	"context"
	"fmt"

	"kith/storage"
)

// Directory is what a search by handle needs of a store.
type Directory interface {
	storage.HandleSearcher
	Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User]
}

// Handles is a page of handles and their users, ascending.
type Handles struct {
	Owners []storage.HandleOwner

	// More reports that handles may follow this page; Next is the handle to continue
	// behind.
	More bool
	Next string
}

// SearchHandles returns the first users behind a handle whose handles begin with a
// prefix, without hidden users. Claims on handles that never became a user are left out; only the
// users' rows tell which claims these are.
func SearchHandles(ctx context.Context, d Directory, audience *Audience, budget Budget, prefix, after string, first int) (Handles, error) {
	if budget <= 0 {
		budget = DefaultBudget
	}
	page := Handles{Next: after}
	limit := first + 1 + min(audience.HidesAtMost(), 2+first/10)
	for examinable := int(budget); examinable > 0; {
		claims, err := d.SearchHandles(ctx, prefix, page.Next, limit)
		if err != nil {
			return Handles{}, fmt.Errorf("search handles that begin with %q: %w", prefix, err)
		}
		examinable -= len(claims)
		owns := owners(ctx, d, audience, claims)
		for i, c := range claims {
			if owns[i] && len(page.Owners) == first {
				page.More = true
				return page, nil
			}
			if owns[i] {
				page.Owners = append(page.Owners, c)
			}
			page.Next = c.Handle
		}
		if len(claims) < limit {
			return page, nil
		}
		limit = min(4*limit, searchStride)
	}
	page.More = true
	return page, nil
}

// searchStride is how many handles are read at a time at most: their users are looked
// up in one statement.
const searchStride = 400

// owners reports which claims are the handles of users who may be shown. If a shard
// does not answer, its users stay in: they are then reported with an error, not as
// if they did not exist.
func owners(ctx context.Context, d Directory, audience *Audience, claims []storage.HandleOwner) []bool {
	owns := make([]bool, len(claims))
	ids := storage.Each(claims, func(c storage.HandleOwner) storage.UserID { return c.User })
	for i, r := range d.Users(ctx, ids) {
		switch {
		case audience.Hides(ids[i]):
		case r.Err != nil:
			owns[i] = true
		default:
			owns[i] = r.Found && r.Value.Handle == claims[i].Handle
		}
	}
	return owns
}
