package rediscache

import (
	"testing"

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
	if _, _, err := s.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 99); err != nil {
		t.Fatal(err)
	}
	b.Changed(t.Context(), []storage.UserChange{{User: 1}})
	a.idle(t)
	if p := a.profile(t, 1); p.User.Name != name {
		t.Errorf("name is %s", p.User.Name)
	}
}

// A user that is older than a change is removed, and read once for all gateways; one that is newer stays.
func TestUsersThatHaveChangedAreReadOnce(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	server, a, b := pair(t, s)
	seen := func(what string, want int64) {
		t.Helper()
		calls := s.calls()
		for _, c := range []*Cache{a, b} {
			c.agrees(t, s, 1, 2)
			c.idle(t)
		}
		if n := s.calls() - calls; n != want {
			t.Errorf("%s: %d look-ups, want %d", what, n, want)
		}
	}
	seen("at first", 3)
	s.write(t, 1, 2, storage.Following)
	follow := s.both(1, 2)
	a.Changed(t.Context(), follow)
	if left := admin(t, server).HMGet(t.Context(), current(t, a).user(1), "p", "c", "v").Val(); left[0] != nil || left[1] != nil || left[2] != "1" {
		t.Errorf("the old user is there: %q", left)
	}
	seen("a follow", 3)
	name := "other"
	user, _, err := s.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 99)
	if err != nil {
		t.Fatal(err)
	}
	renamed := s.both(1, 2)[0]
	renamed.Before, renamed.Forward, renamed.Profile = renamed.Counts.Version, false, &user
	b.Changed(t.Context(), []storage.UserChange{renamed})
	seen("another name", 1)

	// What is reported late or twice removes nothing new.
	a.Changed(t.Context(), []storage.UserChange{renamed})
	b.Changed(t.Context(), follow)
	seen("late and twice", 0)
	if n := admin(t, server).Exists(t.Context(), current(t, a).user(3)).Val(); n > 0 {
		t.Error("nobody has asked for user 3")
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
			b.Changed(t.Context(), []storage.UserChange{{User: 1, Forward: true}, {User: 2, Inverse: true}})
		},
		"anything about them has changed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), []storage.UserChange{{User: 1, Forward: true, Inverse: true}, {User: 2, Forward: true, Inverse: true}})
		},
		"flushed": func(t *testing.T, s *source, b *Cache) {
			s.write(t, 1, 2, storage.Following)
			b.Changed(t.Context(), s.both(1, 2))
			if err := b.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		},
		"flushed before the change": func(t *testing.T, s *source, b *Cache) {
			if err := b.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
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
			go func() { a.Profiles(t.Context(), []storage.UserID{1, 2}); done <- struct{}{} }()
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				go func() {
					a.Lists(t.Context(), side, []storage.ListQuery{whole(1), whole(2)})
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
			if a.fills("following", "lost") == 0 {
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
	server, a, b := pair(t, s)
	late := connect(t, old, []*testenv.RedisServer{server})
	s.write(t, 1, 2, storage.Following)
	s.write(t, 1, 2, storage.None)
	old.write(t, 1, 2, storage.Following)
	a.Changed(t.Context(), s.both(1, 2))
	late.Changed(t.Context(), s.both(1, 2)) // of version 1, but the earlier report counts
	s.set(func() { s.pretend = func() *oracle.Store { return behind } })
	a.Profiles(t.Context(), []storage.UserID{1})
	a.Lists(t.Context(), storage.Forward, []storage.ListQuery{whole(1)})
	a.idle(t)
	if a.fills("user", "older") != 1 || a.fills("following", "older") != 1 {
		t.Error("it was not refused")
	}
	s.set(func() { s.pretend = nil })
	b.agrees(t, s, 1, 2)
	b.idle(t)
	if b.fills("user", "taken") == 0 || b.fills("following", "taken") == 0 {
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
