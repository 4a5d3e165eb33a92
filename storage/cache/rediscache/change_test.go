package rediscache

import (
	"reflect"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
)

// Once Changed has returned, every gateway answers with the present values.
func TestChangesAreSeenByAll(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	_, a, b := pair(t, s)
	for i, kind := range []storage.EdgeType{storage.Following, storage.None, storage.Blocking, storage.Following} {
		for _, to := range []storage.UserID{2, 3, 55} {
			s.write(t, 1, to, kind)
			[]*Cache{a, b}[i%2].Changed(t.Context(), s.both(1, to))
			a.agrees(t, s, 1, 2, 3, 55)
			b.agrees(t, s, 1, 2, 3, 55)
			b.idle(t)
		}
	}
	s.create(t, 4)
	s.create(t, 55)
	a.Changed(t.Context(), []storage.UserChange{{User: 4}, {User: 55}})
	b.agrees(t, s, 1, 2, 3, 4, 55)
	name := "other"
	_, _, err := s.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 99)
	must.OK(t, err)
	b.Changed(t.Context(), []storage.UserChange{{User: 1}})
	a.idle(t)
	p := a.profile(t, 1)
	check.That(t, p.User.Name == name, "name is %s", p.User.Name)
}

// A user of the version before a change gets the new counts where it is kept; one that is older, or has another name, is removed, and read
// once for all gateways; one that is newer stays as it is.
func TestUsersAreReadAgainOnlyIfTheyMust(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	s.write(t, 1, 2, storage.Following)
	server, a, b := pair(t, s)
	seen := func(what string, profiles, lists int64) {
		t.Helper()
		hadProfiles, hadLists := s.profiles.Load(), s.lists.Load()
		for _, c := range []*Cache{a, b} {
			c.agrees(t, s, 1, 2)
			c.idle(t)
		}
		p, l := s.profiles.Load()-hadProfiles, s.lists.Load()-hadLists
		check.That(t, p == profiles && l == lists, "%s: users were read %d times and lists %d, want %d and %d", what, p, l, profiles, lists)
	}
	change := func(kind storage.EdgeType) []storage.UserChange {
		s.write(t, 1, 2, kind)
		return s.both(1, 2)
	}
	seen("at first", 1, 2)
	life := admin(t, server).PTTL(t.Context(), key(a.epoch(t), "user", 1)).Val()
	ended := change(storage.None)
	a.Changed(t.Context(), ended)
	seen("a follow ended", 0, 2)
	now := admin(t, server).PTTL(t.Context(), key(a.epoch(t), "user", 1)).Val()
	check.That(t, now > 0 && now <= life, "the user is kept for %s, and for %s before the change", now, life)
	followed := change(storage.Following)
	blocked := change(storage.Blocking)
	a.Changed(t.Context(), blocked)
	seen("a change was not reported yet", 1, 2)
	b.Changed(t.Context(), followed)
	a.Changed(t.Context(), blocked)
	seen("late and twice", 0, 0)
	name := "other"
	user, _, err := s.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 99)
	must.OK(t, err)
	renamed := s.both(1, 2)[0]
	renamed.Before, renamed.What, renamed.Profile = renamed.Counts.Version, storage.Whole, &user
	b.Changed(t.Context(), []storage.UserChange{renamed})
	seen("another name", 1, 0)
	check.That(t, admin(t, server).Exists(t.Context(), key(a.epoch(t), "user", 3)).Val() == 0, "nobody has asked for user 3")
}

// Gateways of several versions, with values in different forms, see each other's changes at once, whoever reports them, and keep values
// in turn.
func TestGatewaysWhoseValuesHaveDifferentForms(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	s.write(t, 1, 2, storage.Following)
	server, a, b := pair(t, s)
	third := connect(t, s, []*testenv.RedisServer{server})
	b.form, third.form = "2", "3"
	read := func(c *Cache) {
		t.Helper()
		c.agrees(t, s, 1, 2)
		c.idle(t)
	}
	kind := storage.Following
	for name, fill := range map[string]func(reader, writer *Cache){
		"by the reader last":                  func(reader, writer *Cache) { read(writer); read(reader) },
		"by the writer last":                  func(reader, writer *Cache) { read(reader); read(writer) },
		"by the reader before it is reported": func(reader, writer *Cache) { read(writer) },
	} {
		for _, writer := range []*Cache{a, b, third} {
			for _, reader := range []*Cache{a, b} {
				if writer == reader {
					continue
				}
				fill(reader, writer)
				kind = storage.Following + storage.None - kind
				before := name == "by the reader before it is reported"
				if before {
					read(reader)
				}
				s.write(t, 1, 2, kind)
				writer.Changed(t.Context(), s.both(1, 2))
				read(reader)
				calls := s.calls()
				read(reader)
				check.That(t, s.calls() <= calls, "filled %s, form %s reads what form %s has written: nothing was kept", name, reader.form, writer.form)
				read(writer)
			}
		}
	}
}

// The bytes of values are those of the form. Whoever changes them changes the form.
func TestFormOfValues(t *testing.T) {
	t.Parallel()
	p := storage.Profile{
		User:   storage.User{ID: 7, Handle: "ann", Name: "Ann", Bio: "b", AvatarURL: "u", Website: "w", CreatedAt: 5, UpdatedAt: 6, Attributes: `{"a":1}`, Locked: true},
		Exists: true, Counts: storage.Counts{Following: 1, Follower: 2, Friend: 3, Posts: 4, Favorites: 5, Favorited: 6, Version: 9}, Counted: true,
	}
	l := storage.List{Version: 3, Edges: []storage.Edge{{From: 7, To: 8, Type: storage.Following, UpdateTime: 300}, {From: 7, To: 300, Type: storage.None, UpdateTime: 1}}}
	q := storage.ListQuery{Owner: 7, Longest: 10, EndedSince: 1}
	for name, one := range map[string]struct{ got, want stored }{
		"user": {users.keep(7, p), stored{9, "\x83\n\f\x03ann\x03Ann\x01b\x01u\x01w{\"a\":1}", "\x02\x04\x06\b\n\f", false}},
		"list": {lists(storage.Forward).keep(q, l), stored{version: 3, value: "\x00\n\x01\a\b\x01\xd8\x04\a\xac\x02\x00\x02"}},
	} {
		check.That(t, one.got == one.want && form == "1.4", "%s: %#v in the form %s, want %#v", name, one.got, form, one.want)
	}
	got, ok := users.found(7, users.keep(7, p))
	check.That(t, ok && got.Value == p, "%+v, want %+v", got, p)
	if got, ok := lists(storage.Forward).found(q, lists(storage.Forward).keep(q, l)); !ok || !reflect.DeepEqual(got.Value, l) {
		t.Errorf("%+v, want %+v", got, l)
	}
}

// A fill that was read before a change is not stored after it, whichever gateway was notified. Here it is the
// other one, which also recognises that its own answer is new.
func TestFillsFromBeforeAreRefused(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, s *source, b *Cache){
		"changed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), s.both(1, 2))
		},
		"changed and asked for": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), s.both(1, 2))
			b.agrees(t, s, 1, 2)
			b.idle(t)
		},
		"changed without versions": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), []storage.UserChange{{User: 1, What: storage.Leaving}, {User: 2, What: storage.Entering}})
		},
		"anything about them has changed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), []storage.UserChange{{User: 1, What: storage.Missed}, {User: 2, What: storage.Missed}})
		},
		"flushed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), s.both(1, 2))
			must.OK(t, b.clock.Redis.FlushAll(t.Context()).Err())
		},
		"flushed before the change": func(t *testing.T, s *source, b *Cache) {
			must.OK(t, b.clock.Redis.FlushAll(t.Context()).Err())
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), s.both(1, 2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, 1, 2)
			_, a, b := pair(t, s)
			b.profile(t, 3)
			read, held := make(chan struct{}, 3), make(chan struct{})
			s.set(func() { s.after = func() { read <- struct{}{}; <-held } })
			done := make(chan struct{}, 3)
			go func() { storage.ProfileLookups.Read(t.Context(), a, 1, 2); done <- struct{}{} }()
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				go func() {
					storage.SnapshotLookups[side].Read(t.Context(), a, whole(1), whole(2))
					done <- struct{}{}
				}()
			}
			for range 3 {
				<-read
			}
			s.set(func() { s.after = nil })
			between(t, s, b)
			close(held)
			for range 3 {
				<-done
			}
			a.idle(t)
			for range 2 {
				b.agrees(t, s, 1, 2)
				a.agrees(t, s, 1, 2)
				a.idle(t)
				b.idle(t)
			}
		})
	}
}

// Nothing is stored that is older than what was reported to Redis, even if its lease is valid: here the
// store answered from a copy that lags behind.
func TestOlderVersionsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	old := newSource(t, 1, 2)
	behind := old.Store
	server, a, b := pair(t, s)
	late := connect(t, old, []*testenv.RedisServer{server})
	s.write(t, 1, 2, storage.Following)
	s.write(t, 1, 2, storage.None)
	old.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	late.Changed(t.Context(), s.both(1, 2)) // of version 1, but the earlier report counts
	s.set(func() { s.pretend = func() *oracle.Store { return behind } })
	storage.ProfileLookups.Read(t.Context(), a, 1)
	storage.SnapshotLookups[storage.Forward].Read(t.Context(), a, whole(1))
	a.idle(t)
	check.That(t, !a.stores(t, "user", 1) && !a.stores(t, "following", 1), "it was not refused")
	s.set(func() { s.pretend = nil })
	b.agrees(t, s, 1, 2)
	b.idle(t)
	check.That(t, b.stores(t, "user", 1) && b.stores(t, "following", 1), "what is new was refused, too")
	a.agrees(t, s, 1, 2)
}

// A look-up after Changed does not wait for a read that began before the change.
func TestChangesEndLeases(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	_, a, _ := pair(t, s)
	read, held := make(chan struct{}), make(chan struct{})
	s.set(func() { s.after = func() { close(read); <-held } })
	before := make(chan storage.List)
	go func() { before <- a.list(t, storage.Forward, whole(1)) }()
	<-read
	s.set(func() { s.after = nil })
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	a.agrees(t, s, 1, 2)
	close(held)
	l := <-before
	check.That(t, len(l.Edges) == 0, "the first answer is from after the change: the test shows nothing")
	a.agrees(t, s, 1, 2)
}

// A cache may be closed while a fill that nobody waits for finds that Redis is gone.
func TestCloseBesideAFillThatFails(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	server := testenv.Redis(t)
	for range 20 {
		c := connect(t, s, []*testenv.RedisServer{server})
		fails := make(chan struct{})
		go func() {
			close(fails)
			c.leave()
		}()
		<-fails
		c.Close()
		c.leave()
		c.Changed(t.Context(), s.both(1, 1))
		must.That(t, c.Behind(), "a closed cache reads Redis")
	}
}
