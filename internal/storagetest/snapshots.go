package storagetest

import (
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// profiles: users together with their counts.
type profiles struct{ *harness }

func (s profiles) AUserComesWithItsCounts(t *testing.T) {
	full, plain, peers := person(s.id()), person(s.id()), s.ids(5)
	full.Name, full.Bio, full.AvatarURL = "Åsa 🦆 Öberg", "x 'y' \\ \"z\"\n", "https://example.org/🦆.png"
	full.Website = "https://example.org"
	full.FollowingsVisibility, full.FollowersVisibility, full.Undiscoverable, full.Locked = storage.ToFollowers, storage.ToNobody, true, true
	full.UpdatedAt, full.Attributes = at(7), `{"a":[1,2]}`
	s.register(t, full)
	answers(t, s.store.CreateUsers(t.Context(), []storage.User{plain}), 1)
	for i, peer := range peers {
		if i < 3 {
			s.apply(t, storage.Forward, follow(storage.Forward, full.ID, peer, i))
		}
		if i > 0 {
			s.apply(t, storage.Inverse, follow(storage.Inverse, full.ID, peer, i))
		}
	}
	post := s.post(t, full.ID, 1).PostID
	for _, by := range []storage.UserID{full.ID, plain.ID} {
		favorites(s).favorite(t, by, favorite(post, 1), storage.ChangeOptions{Inverse: s.local(t, by, full.ID)})
		s.apply(t, storage.FavoriteInbox, storage.Pair{From: by, To: full.ID, Item: post.Number}.Edge(storage.Favorited, at(1)))
	}
	got := found(t, storage.ProfileLookups.Read(t.Context(), s.store, full.ID, plain.ID), 2)
	for i, user := range []storage.User{full, plain} {
		wantEqual(t, "profile", got[i], storage.Profile{User: user, Exists: true, Counts: s.countsOf(t, user.ID), Counted: true})
	}
	counts := got[0].Counts
	counts.Version = 0
	wantEqual(t, "counts", counts, storage.Counts{Following: 3, Follower: 4, Friend: 2, Posts: 1, Favorites: 1, Favorited: 2})
}

func (s profiles) OnlyCountsMayBeThere(t *testing.T) {
	id := s.id()
	s.apply(t, storage.Inverse, follow(storage.Inverse, id, s.id(), 1))
	got := found(t, storage.ProfileLookups.Read(t.Context(), s.store, id), 1)[0]
	wantEqual(t, "profile", got, storage.Profile{Counts: s.countsOf(t, id), Counted: true})
	wantEqual(t, "followers", got.Counts.Follower, 1)
}

func (s profiles) NobodyIsNotFound(t *testing.T) {
	known, gone := s.newUsers(t, 2), erase(s).erased(t).ID
	results := storage.ProfileLookups.Read(t.Context(), s.store, s.id(), known[0].ID, gone, known[1].ID, s.id())
	wantFound(t, results, false, true, false, true, false)
	wantEqual(t, "nobody", results[0].Value, storage.Profile{})
}

func (s profiles) TheVersionRisesWithEachChange(t *testing.T) {
	user, peer, name := s.newUsers(t, 1)[0].ID, s.newUsers(t, 1)[0].ID, "Another"
	old := s.profileOf(t, user)
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"a follow", func() { s.apply(t, storage.Forward, follow(storage.Forward, user, peer, 1)) }},
		{"a follower", func() { s.apply(t, storage.Inverse, follow(storage.Inverse, user, peer, 2)) }},
		{"a block", func() { s.apply(t, storage.Forward, edge(storage.Forward, user, s.id(), storage.Blocking, at(3))) }},
		{"a mark", func() { s.mark(t, storage.Pair{From: user, To: peer}, remarked("x"), storage.EdgeMark{Remark: "x"}) }},
		{"a new name", func() {
			_, _, err := s.store.UpdateProfile(t.Context(), user, storage.ProfileChange{Name: &name}, at(4))
			must.OK(t, err)
		}},
		{"a state", func() { s.setState(t, user, storage.Deactivated, 5, true) }},
	} {
		step.do()
		now := s.profileOf(t, user)
		check.That(t, now.Counts.Version > old.Counts.Version, "with %s the version was %d and is %d", step.what, old.Counts.Version, now.Counts.Version)
		old = now
	}
	wantEqual(t, "name", old.User.Name, name)
}

// A version has exactly one profile, whatever is written at the same time.
func (s profiles) AllIsOfOneMoment(t *testing.T) {
	user, peer := s.newUsers(t, 1)[0].ID, s.id()
	is := s.profileOf(t, user)
	versions := map[int64]storage.Profile{is.Counts.Version: is}
	seen := whileWriting(t, func(step int) {
		name := person(storage.UserID(step + 1)).Name
		_, _, err := s.store.UpdateProfile(t.Context(), user, storage.ProfileChange{Name: &name}, at(step))
		check.That(t, err == nil, "%v", err)
		s.note(t, user, versions)
		kind := []storage.EdgeType{storage.Following, storage.None}[step%2]
		noErrors(t, s.store.Apply(t.Context(), storage.Forward, []storage.Edge{{From: user, To: peer, Type: kind, UpdateTime: at(step)}}, storage.IfNewer), 1)
		s.note(t, user, versions)
	}, func() (int64, storage.Profile, bool) {
		results := storage.ProfileLookups.Read(t.Context(), s.store, user)
		return results[0].Value.Counts.Version, results[0].Value, noErrors(t, results, 1)
	})
	for version, all := range seen {
		for _, got := range all {
			wantEqual(t, "profile", got, versions[version])
		}
	}
}

// note remembers what a user has at its present version, read in other ways. There are no other
// writers.
func (s profiles) note(t *testing.T, user storage.UserID, versions map[int64]storage.Profile) {
	users := storage.UserLookups.Read(t.Context(), s.store, user)
	counts := storage.CountLookups.Read(t.Context(), s.store, user)
	if noErrors(t, users, 1) && noErrors(t, counts, 1) {
		versions[counts[0].Value.Version] = storage.Profile{User: users[0].Value, Exists: true, Counts: counts[0].Value, Counted: true}
	}
}

func (s profiles) profileOf(t *testing.T, id storage.UserID) storage.Profile {
	t.Helper()
	return found(t, storage.ProfileLookups.Read(t.Context(), s.store, id), 1)[0]
}

// SnapshotsAreRefused is a promise of cancellation.
func (s cancellation) SnapshotsAreRefused(t *testing.T) {
	ids := idsOf(s.newUsers(t, 2))
	ctx := ended(t)
	wantEnded(t, "profiles", storage.ProfileLookups.Read(ctx, s.store, ids...), 2)
	eachFollowSide(t, func(t *testing.T, side storage.Side) {
		wantEnded(t, "lists", storage.SnapshotLookups[side].Read(ctx, s.store, storage.ListQuery{Owner: ids[0]}, storage.ListQuery{Owner: ids[1]}), 2)
	})
	_, err := storage.UserIDLookups.Get(ctx, s.store, storage.ShardQuery[storage.UserID]{Shard: 0, After: 0, Limit: 1})
	wantEndedErr(t, "all users", err)
}
