package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/shard"
	"kith/storage/sqlstore"
)

// removerEnv names the shard that a process is to remove, and before which step it is to die.
const removerEnv = "KITH_TEST_REMOVER"

// TestRemover is not a test by itself: it is the process that removes in [TestTheLastShardIsRemoved].
func TestRemover(t *testing.T) {
	var ordinal int
	var step string
	if n, _ := fmt.Sscanf(os.Getenv(removerEnv), "%d %q", &ordinal, &step); n != 2 {
		t.Skip("runs in processes that TestTheLastShardIsRemoved starts")
	}
	s := open(t, os.Getenv("KITH_TEST_LOCATION"))
	if err := s.RemoveShard(t.Context(), ordinal, sqlstore.MoveConfig{Step: dieBefore(step)}); err != nil {
		t.Fatal(err)
	}
}

// A shard that has been added, and has given its buckets back, is removed while programs write. The remover
// dies by kill -9 before each step; the next one continues. Then the shard's database is gone, and another
// database becomes the shard of that number. A program that has slept in between finds it.
func TestTheLastShardIsRemoved(t *testing.T) {
	t.Parallel()
	for name, databases := range map[string]func() (location string, others []string, drop func()){
		"SQLite": func() (string, []string, func()) {
			dir := t.TempDir()
			second := filepath.Join(dir, "second.db")
			return "sqlite:" + filepath.Join(dir, "first.db"), []string{second, filepath.Join(dir, "third.db")}, func() {}
		},
		"MariaDB": func() (string, []string, func()) {
			dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)
			return "mysql:" + dsns[0], []string{dsns[1], dsns[3]}, func() { dropDatabase(t, dsns[1]) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "SQLite" {
				testenv.Long(t) // the program removes a shard: TestAStoreGrowsAndShrinks
			}
			if name == "MariaDB" {
				testenv.NotOn(t, "a store there is one shard", "tidb")
			}
			location, others, drop := databases()
			removeTheLast(newGrower(t, location, others[0], 120), others, drop)
		})
	}
}

func removeTheLast(g *grower, others []string, drop func()) {
	t, ctx := g.t, g.t.Context()
	writing, stop := context.WithCancel(ctx)
	writers := g.write(writing, 9)
	defer func() { stop(); writers.Wait() }()
	if _, err := g.mover.AddShard(ctx, others[0]); err != nil {
		t.Fatal(err)
	}
	g.wantRefused(0, "it can be replaced, not removed")
	g.wantRefused(2, "there is no shard 2")
	keep := sqlstore.MoveConfig{Token: "test", Keep: time.Second}
	if _, err := g.mover.Move(ctx, half(0, 1), keep); err != nil {
		t.Fatal(err)
	}
	g.wantRefused(1, "shard 1 has buckets 512–1023")
	if _, err := g.mover.Move(ctx, half(1, 0), keep); err != nil {
		t.Fatal(err)
	}
	asleep := open(t, g.location) // it knows two shards
	for _, step := range []string{"prepare", "retire", "record", ""} {
		inAnotherProcess(t, "TestRemover", step != "", fmt.Sprintf("%s=1 %q", removerEnv, step), "KITH_TEST_LOCATION="+g.location)
		g.goOn(30)
		open(t, g.location) // programs start in between
	}
	for _, s := range append(slices.Clone(g.writers), g.mover) {
		if err := s.Refresh(ctx); err != nil { // as each program does within a second
			t.Fatal(err)
		}
		if s.Shards() != 1 || len(s.Addresses()) != 1 {
			t.Errorf("a program has %d shards", s.Shards())
		}
		if served, err := s.Served(ctx, 1); err != nil || slices.Contains(served.Buckets, '1') {
			t.Errorf("whoever still asks for shard 1 gets %v, %v", served.Buckets, err)
		}
	}
	g.wantRefused(1, "there is no shard 1")
	if _, err := g.mover.AddShard(ctx, others[0]); err == nil || !strings.Contains(err.Error(), "has been a shard before") {
		t.Errorf("it has been added again: %v", err)
	}
	g.goOn(50)
	g.addAnother(asleep, others[1])
	drop()
	g.goOn(50)
	stop()
	writers.Wait()
	g.check()
	g.use(open(t, g.location), g.location)
	g.checkRows()
}

// addAnother makes another database shard 1, with half of the buckets. A program that was stopped finds it, and writes to it.
func (g *grower) addAnother(asleep *sqlstore.Store, address string) {
	t, ctx := g.t, g.t.Context()
	if to, err := g.mover.AddShard(ctx, address); err != nil || to != 1 {
		t.Fatalf("shard %d has been added: %v", to, err)
	}
	if _, err := g.mover.Move(ctx, half(0, 1), sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	user := storage.UserID(1)
	for shard.BucketOf(user) < 512 {
		user++
	}
	if err := asleep.Refresh(ctx); err != nil { // as it does when it wakes
		t.Fatal(err)
	}
	if got, want := asleep.Addresses(), g.mover.Addresses(); !slices.Equal(got, want) {
		t.Errorf("who has slept has %v, the others %v", got, want)
	}
	name := "written by who has slept"
	if _, err := asleep.UpdateProfile(ctx, user, storage.ProfileChange{Name: &name}, storage.MicrosOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*sqlstore.Store{"who has slept": asleep, "the others": g.mover} {
		if r := s.Users(ctx, []storage.UserID{user})[0]; r.Err != nil || r.Value.Name != name {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

func (g *grower) wantRefused(ordinal int, why string) {
	g.t.Helper()
	if err := g.mover.RemoveShard(g.t.Context(), ordinal, sqlstore.MoveConfig{}); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
		g.t.Errorf("shard %d is removed: %v, want %q", ordinal, err, why)
	}
}

// A store that was laid out on four databases is reduced to one, and extended to two again.
func TestAStoreGoesDownToOneShard(t *testing.T) {
	t.Parallel()
	location := sqlite(t, 4)
	g := newGrower(t, location, "", 60)
	g.preload(4)
	ctx := t.Context()
	g.wantRefused(2, "move the buckets of shard 3 to it")
	for last := 3; last > 0; last-- {
		for _, s := range g.mover.ShardsStatus()[last].Buckets {
			if _, err := g.mover.Move(ctx, sqlstore.Move{Buckets: s, From: last, To: 0}, sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.mover.RemoveShard(ctx, last, sqlstore.MoveConfig{}); err != nil {
			t.Fatal(err)
		}
		if again := open(t, location); again.Shards() != last || g.mover.Shards() != last {
			t.Errorf("%d shards, and %d for who starts, want %d", g.mover.Shards(), again.Shards(), last)
		}
	}
	first, _, _ := strings.Cut(location, ";")
	g.use(open(t, first), first) // the other addresses need not be given any more
	g.checkRows()
	added := filepath.Join(t.TempDir(), "added.db")
	if to, err := g.mover.AddShard(ctx, added); err != nil || to != 1 {
		t.Fatalf("shard %d has been added: %v", to, err)
	}
	if _, err := g.mover.Move(ctx, half(0, 1), sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{first, first + ";" + added, location} {
		s := open(t, location)
		if s.Shards() != 2 || s.Addresses()[1] != added {
			t.Errorf("%s: %v", location, s.Addresses())
		}
	}
	g.checkRows()
}
