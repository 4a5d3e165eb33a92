package demo

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/finding"
)

var ctx = context.Background()

// now is the time at which the tests load the network.
var now = Base.AddDate(0, 1, 0)

func loaded(t *testing.T) *oracle.Store {
	t.Helper()
	store := oracle.New()
	must.OK(t, Load(ctx, store, now))
	return store
}

func TestLoad(t *testing.T) {
	all := loaded(t).Snapshot()
	if len(all.Users) != Users || len(all.Forward) != Edges || len(all.Inverse) != Edges {
		t.Errorf("%d users, %d and %d edges", len(all.Users), len(all.Forward), len(all.Inverse))
	}
}

func TestLoadedPosts(t *testing.T) {
	store := loaded(t)
	must.OK(t, Load(ctx, store, now))
	latest, err := storage.LatestPostLookups.Get(ctx, store, storage.PlaceQuery{After: storage.Place{}, Limit: 2 * Posts})
	must.That(t, err == nil && len(latest) == Posts, "%d posts, %v", len(latest), err)
	at := latest[0].CreatedAt.Time()
	check.That(t, !at.After(now) && !at.Before(now.Add(-6*time.Hour)), "the newest post is of %s", at)
	comments, favorites := int64(0), int64(0)
	for _, p := range latest {
		comments += p.Counts.Comments
		favorites += p.Counts.Favorites
		for _, c := range storage.CommentPageLookups.Read(ctx, store, storage.PlaceQuery{Of: p.PostID, Limit: Comments})[0].Value {
			follow := storage.EdgeLookups[storage.Forward].Read(ctx, store, storage.Pair{From: c.By, To: p.Author})[0]
			check.That(t, follow.Value.Type == storage.Following && c.CreatedAt > p.CreatedAt && c.CreatedAt < storage.MicrosOf(now), "%+v on a post of %s", c, p.Author)
		}
	}
	check.That(t, comments == Comments && favorites == Favorites, "%d comments, %d favorites", comments, favorites)
}

// A newcomer is suggested users who were active in the last month, however long after Base that is.
func TestManyAreActive(t *testing.T) {
	active, err := finding.PopularLookups.Get(ctx, loaded(t), finding.PopularQuery{Since: storage.MicrosOf(now).Day() - 14, Limit: 100})
	check.That(t, err == nil && len(active) >= 100, "%d users are active, %v", len(active), err)
}

var errKilled = errors.New("killed")

// mortal is a store whose program is killed at the n-th write, after half of it.
func mortal(inner *oracle.Store, n int) *double.Store {
	m := double.Of(inner)
	m.Instead.CreateUsers = func(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
		if n--; n == 0 {
			inner.CreateUsers(ctx, users[:len(users)/2])
			return []storage.Result[bool]{{Err: errKilled}}
		}
		return inner.CreateUsers(ctx, users, states...)
	}
	// Half of a write is the rows on half of the shards.
	m.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
		if n--; n == 0 {
			for _, e := range edges {
				if side.Owner(e.Pair())%2 == 0 {
					inner.Apply(ctx, side, []storage.Edge{e}, rule)
				}
			}
			return []storage.Result[storage.Changed]{{Err: errKilled}}
		}
		return inner.Apply(ctx, side, edges, rule)
	}
	return m
}

func TestLoadCompletesWhatWasCutShort(t *testing.T) {
	whole := unversioned(loaded(t))
	for n := 1; n <= 5; n++ {
		store := oracle.New()
		err := Load(ctx, mortal(store, n), now)
		must.That(t, errors.Is(err, errKilled), "killed at write %d: error %v", n, err)
		must.OK(t, Load(ctx, store, now))
		check.That(t, reflect.DeepEqual(unversioned(store), whole), "killed at write %d: the network is not what it should be", n)
	}
}

// unversioned is the content of a store without the number of transactions that have written it.
func unversioned(store *oracle.Store) oracle.Snapshot {
	all := store.Snapshot()
	for i := range all.Counts {
		all.Counts[i].Version = 0
	}
	return all
}

func TestLoadLeavesOtherStoresAlone(t *testing.T) {
	changed := loaded(t)
	changed.Apply(ctx, storage.Forward, []storage.Edge{{From: 1, To: 2, Type: storage.Blocking, UpdateTime: storage.MicrosOf(Base) + 1}}, storage.IfNewer)
	foreign := oracle.New()
	foreign.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "u1", Name: "u1"}})
	foreign.CreateUsers(ctx, []storage.User{{ID: 5000, Handle: "u5000", Name: "u5000"}})
	elsewhere := oracle.New()
	elsewhere.CreateUsers(ctx, []storage.User{{ID: 5000, Handle: "u5000", Name: "u5000"}})
	for name, store := range map[string]*oracle.Store{"changed": changed, "foreign": foreign, "elsewhere": elsewhere} {
		before := store.Snapshot()
		untouchable := double.Of(store)
		untouchable.Instead.CreateUsers = func(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
			t.Error("users were written")
			return store.CreateUsers(ctx, users, states...)
		}
		must.OK(t, Load(ctx, untouchable, now))
		check.That(t, reflect.DeepEqual(store.Snapshot(), before), "the %s store was changed", name)
	}
}
