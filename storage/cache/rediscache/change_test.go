package rediscache

import (
	"testing"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/storagetest/oracle"
)

// Once Changed has returned, every gateway answers with the present values.
func TestChangesAreSeenByAll(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	s.writePost(t, 2, "zero")
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
	for i, text := range []string{"first", "second", "third"} {
		s.writePost(t, 2, text)
		[]*Cache{a, b}[i%2].Changed(t.Context(), nil, storage.PostVersion{PostID: postOf(2)})
		b.agrees(t, s, 2, 3)
		a.agrees(t, s, 2, 3)
		a.idle(t)
	}
	if _, err := s.DeletePost(t.Context(), postOf(2)); err != nil {
		t.Fatal(err)
	}
	a.Changed(t.Context(), []storage.UserChange{{User: 2}}, storage.PostVersion{PostID: postOf(2)})
	b.agrees(t, s, 2, 3)
	s.create(t, 4)
	s.create(t, 55)
	a.Changed(t.Context(), []storage.UserChange{{User: 4}, {User: 55}})
	b.agrees(t, s, 1, 2, 3, 4, 55)
	name := "other"
	if _, err := s.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 99); err != nil {
		t.Fatal(err)
	}
	b.Changed(t.Context(), []storage.UserChange{{User: 1}})
	a.idle(t)
	if p := a.profile(t, 1); p.User.Name != name {
		t.Errorf("name is %s", p.User.Name)
	}
}

// A user that is kept is renewed in place, and a user that is not kept is not added.
func TestUsersAreRenewedInPlace(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	server, a, b := pair(t, s)
	a.profile(t, 1)
	a.idle(t)
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	calls := s.calls()
	if p := b.profile(t, 1); p.Counts.Following != 1 || s.calls() != calls {
		t.Errorf("%+v, after %d more calls", p, s.calls()-calls)
	}
	if n := admin(t, server).HExists(t.Context(), current(t, a).user(2), "p").Val(); n {
		t.Error("nobody has asked for user 2")
	}
	if p := b.profile(t, 2); p.Counts.Follower != 1 {
		t.Errorf("%+v", p)
	}
	b.idle(t)

	// A change that is late, reported twice, or read from an old copy restores nothing old.
	old := newSource(t, 1, 2)
	stale := connect(t, old, nil, func(c *Config) { c.Redis, c.Runs = a.cfg.Redis, a.cfg.Runs })
	old.write(t, 2, 1, storage.Following) // version 1
	for range 3 {
		s.write(t, 2, 1, storage.None)
		s.write(t, 2, 1, storage.Following)
	}
	a.Changed(t.Context(), s.both(2, 1))
	b.agrees(t, s, 1, 2)
	b.idle(t)
	stale.Changed(t.Context(), s.both(2, 1))
	a.Changed(t.Context(), s.both(2, 1))
	calls = s.calls()
	b.agrees(t, s, 1, 2)
	if s.calls() != calls {
		t.Error("a late change has cost a look-up")
	}
}

// A fill that was read before a change is not stored after it, whichever gateway was notified. Here it is the
// other one, which also recognises that its own answer is new.
func TestFillsFromBeforeAreRefused(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(t *testing.T, s *source, b *Cache){
		"changed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), s.both(1, 2), s.changedPost(1))
		},
		"changed and asked for": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), s.both(1, 2), s.changedPost(1))
			b.agrees(t, s, 1, 2)
			b.idle(t)
		},
		"changed without versions": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), []storage.UserChange{{User: 1, Forward: true}, {User: 2, Inverse: true}}, storage.PostVersion{PostID: postOf(1)})
		},
		"anything about them has changed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), []storage.UserChange{{User: 1, Forward: true, Inverse: true}, {User: 2, Forward: true, Inverse: true}})
		},
		"all posts of the author": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), s.both(1, 2), storage.PostVersion{PostID: storage.PostID{Author: 1}})
		},
		"flushed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), s.both(1, 2), s.changedPost(1))
			if err := b.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		},
		"flushed before the change": func(t *testing.T, s *source, b *Cache) {
			if err := b.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			s.write(t, 1, 2, storage.Following)
			s.writePost(t, 1, "second")
			b.Changed(t.Context(), s.both(1, 2), s.changedPost(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSource(t, 1, 2)
			s.writePost(t, 1, "one")
			_, a, b := pair(t, s)
			b.profile(t, 3)
			read, held := make(chan struct{}, 4), make(chan struct{})
			s.set(func() { s.after = func() { read <- struct{}{}; <-held } })
			done := make(chan struct{}, 4)
			go func() { a.Profiles(t.Context(), []storage.UserID{1, 2}); done <- struct{}{} }()
			go func() { a.Posts(t.Context(), []storage.PostID{postOf(1), postOf(2)}); done <- struct{}{} }()
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				go func() {
					a.Lists(t.Context(), side, []storage.ListQuery{whole(1), whole(2)})
					done <- struct{}{}
				}()
			}
			for range 4 {
				<-read
			}
			s.set(func() { s.after = nil })
			between(t, s, b)
			close(held)
			for range 4 {
				<-done
			}
			a.idle(t)
			for range 2 {
				b.agrees(t, s, 1, 2)
				a.agrees(t, s, 1, 2)
				a.idle(t)
				b.idle(t)
			}
			if a.fills("following", "lost") == 0 || a.fills("post", "lost") == 0 {
				t.Error("no fill was refused")
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
	old.writePost(t, 1, "one")
	s.writePost(t, 1, "one")
	s.writePost(t, 1, "two")
	server, a, b := pair(t, s)
	late := connect(t, old, []*testenv.RedisServer{server})
	s.write(t, 1, 2, storage.Following)
	s.write(t, 1, 2, storage.None)
	old.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2), s.changedPost(1))
	late.Changed(t.Context(), s.both(1, 2), old.changedPost(1)) // of version 1, but the earlier report counts
	s.set(func() { s.pretend = func() *oracle.Store { return behind } })
	a.Profiles(t.Context(), []storage.UserID{1})
	a.Lists(t.Context(), storage.Forward, []storage.ListQuery{whole(1)})
	a.text(t, 1)
	a.idle(t)
	if a.fills("user", "older") != 1 || a.fills("following", "older") != 1 || a.fills("post", "older") != 1 {
		t.Error("it was not refused")
	}
	s.set(func() { s.pretend = nil })
	b.agrees(t, s, 1, 2)
	b.idle(t)
	if b.fills("user", "taken") == 0 || b.fills("following", "taken") == 0 || b.fills("post", "taken") == 0 {
		t.Error("what is new was refused, too")
	}
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
	if l := <-before; len(l.Edges) != 0 {
		t.Error("the first answer is from after the change: the test shows nothing")
	}
	a.agrees(t, s, 1, 2)
}

// If one change was not reported, it is between the kept value and the next reported one. The new counts
// alone do not make the user correct.
func TestAGapIsNotBridged(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	_, a, b := pair(t, s)
	a.agrees(t, s, 1, 2, 3)
	a.idle(t)
	name := "other" // version 1, which is not reported yet
	if _, err := s.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 99); err != nil {
		t.Fatal(err)
	}
	unreported := s.both(1, 2)[0]
	unreported.Before, unreported.Forward = unreported.Counts.Version, false
	s.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	b.agrees(t, s, 1, 2)
	b.idle(t)
	calls := s.calls()
	b.Changed(t.Context(), append(s.both(1, 2), unreported))
	b.agrees(t, s, 1, 2)
	if s.calls() != calls {
		t.Error("what was reported already has cost a look-up")
	}
}

// A profile at hand replaces the kept one, whatever its version is. It may come late, twice and out of order, and a user
// whom nobody has asked for is not added.
func TestAProfileAtHandIsTaken(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	server, a, b := pair(t, s)
	a.agrees(t, s, 1)
	a.idle(t)
	rename := func(name string, at storage.UserID) storage.UserChange {
		t.Helper()
		user, err := s.UpdateProfile(t.Context(), at, storage.ProfileChange{Name: &name}, 99)
		if err != nil {
			t.Fatal(err)
		}
		counts := s.Store.Profiles(t.Context(), []storage.UserID{at})[0].Value.Counts
		return storage.UserChange{User: at, Counts: counts, Before: counts.Version, Profile: &user}
	}
	seen := func(what string, want int64) {
		t.Helper()
		b.idle(t)
		calls := s.calls()
		b.agrees(t, s, 1)
		b.idle(t)
		if n := s.calls() - calls; n != want {
			t.Errorf("%s: %d look-ups, want %d", what, n, want)
		}
	}
	first := rename("first", 1)
	a.Changed(t.Context(), []storage.UserChange{first})
	seen("one change", 0)
	rename("unreported", 1)
	s.write(t, 1, 2, storage.Following)
	second := rename("second", 1)
	second.Forward = true
	a.Changed(t.Context(), []storage.UserChange{second})
	seen("over a gap", 1) // one look-up: the list
	a.Changed(t.Context(), []storage.UserChange{second})
	b.Changed(t.Context(), []storage.UserChange{first, second})
	seen("late and twice", 0)
	third := rename("third", 1)
	s.write(t, 1, 3, storage.Following)
	last := s.both(1, 3)[0]
	b.Changed(t.Context(), []storage.UserChange{last, third})
	seen("with counts that came after it", 1)

	a.Changed(t.Context(), []storage.UserChange{rename("nobody knows", 2)})
	if admin(t, server).HExists(t.Context(), current(t, a).user(2), "p").Val() {
		t.Error("nobody has asked for user 2")
	}
	if p := b.profile(t, 2); p.User.Name != "nobody knows" {
		t.Errorf("%+v", p)
	}
}

// A post that was removed because it had changed leaves its version, so that a store that lags behind does not restore it.
func TestARemovedPostIsNotReplacedByAnOlderOne(t *testing.T) {
	t.Parallel()
	s, old := newSource(t, 1), newSource(t, 1)
	s.writePost(t, 1, "one")
	old.writePost(t, 1, "one")
	s.writePost(t, 1, "two")
	_, a, b := pair(t, s)
	a.text(t, 1)
	a.idle(t)
	a.Changed(t.Context(), nil, storage.PostVersion{PostID: postOf(1)})
	s.set(func() { s.pretend = func() *oracle.Store { return old.Store } })
	b.text(t, 1)
	b.idle(t)
	s.set(func() { s.pretend = nil })
	if text := a.text(t, 1); text != "two" || b.fills("post", "older") != 1 {
		t.Errorf("%q, %v fills refused", text, b.fills("post", "older"))
	}
}

// A change of a post that was already reported to Redis costs nothing: the log reports changes that writers have reported.
func TestAChangeOfAPostThatIsKnownCostsNothing(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	_, a, b := pair(t, s)
	s.writePost(t, 1, "one")
	early := s.changedPost(1)
	s.writePost(t, 1, "two")
	a.Changed(t.Context(), nil, storage.PostVersion{PostID: postOf(1)})
	b.text(t, 1)
	b.idle(t)
	calls := s.calls()
	b.Changed(t.Context(), nil, early, s.changedPost(1))
	if text := a.text(t, 1); text != "two" || s.calls() != calls {
		t.Errorf("%q, after %d more look-ups", text, s.calls()-calls)
	}
}

// Without its author's stamp a post is not used, even if its key exists: Redis may have evicted one of the two.
func TestAnEvictedStampBringsNoPostBack(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	_, a, b := pair(t, s)
	s.writePost(t, 1, "one")
	a.text(t, 1)
	a.idle(t)
	s.writePost(t, 1, "two")
	a.Changed(t.Context(), nil, storage.PostVersion{PostID: storage.PostID{Author: 1}})
	if err := a.cfg.Redis.Del(t.Context(), current(t, a).stamp(1)).Err(); err != nil {
		t.Fatal(err)
	}
	if text := b.text(t, 1); text != "two" {
		t.Errorf("%q is read", text)
	}
}
