package db

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// TestMapIsMadeOfShardsReadOneAfterAnother: what is known of a shard may be older than a move of which the other shard no longer knows anything.
// That is no error, and where the buckets are shows once both have been read.
func TestMapIsMadeOfShardsReadOneAfterAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db"), StatementTimeout: 10 * time.Second, MaxConns: 1})
	must.OK(t, err)
	t.Cleanup(func() { d.Close() })
	last := storage.Buckets - 1
	has := func(ordinal int, claims ...Claim) {
		t.Helper()
		err := d.Exclusive(t.Context(), "buckets", ordinal, func(tx *Tx) error {
			_, err := tx.tx.Exec("DELETE FROM kith_buckets")
			for _, c := range claims {
				_, failed := tx.tx.Exec(SQLWriteClaim, c.First, c.Last, int(c.State), c.Other, "", 0)
				err = errors.Join(err, failed)
			}
			_, failed := tx.tx.Exec("UPDATE kith_epoch SET epoch = epoch + 1")
			return errors.Join(err, failed)
		})
		must.OK(t, err)
	}
	all := Claim{BucketRange: storage.BucketRange{First: 0, Last: last}, State: Owned, Other: -1}
	has(0)
	has(1, all)
	must.OK(t, d.Refresh(t.Context()))
	has(0, all)
	has(1)
	check.Is(t, "one shard has been read", d.learn(t.Context(), d.Shard(1)), nil)
	owner, _ := d.Map.Now().Owner(0)
	check.That(t, owner == 1, "shard %d has bucket 0 while shard 0 has not been read", owner)
	err = d.learn(t.Context(), d.Shard(0))
	check.That(t, err == nil, "%v", err)
	owner, _ = d.Map.Now().Owner(0)
	check.That(t, owner == 0, "shard %d has bucket 0 at the end", owner)
	has(0)
	check.Is(t, "no shard has any bucket", d.Refresh(t.Context()), storage.ErrLayout)
}

// TestTheMapDoesNotWaitForWhoIsTold: who is told of a restored shard, or of a move that is noticed late, may wait for a Redis that hangs. The
// buckets of the other shards are read meanwhile.
func TestTheMapDoesNotWaitForWhoIsTold(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"restored": fmt.Sprintf("UPDATE kith_epoch SET epoch = epoch + %d", newLife),
		"moved":    "UPDATE kith_buckets SET state = 3, other = 1; UPDATE kith_epoch SET epoch = epoch + 1",
	} {
		dir := t.TempDir()
		d, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(dir, "0.db") + ";" + filepath.Join(dir, "1.db"), StatementTimeout: 10 * time.Second, MaxConns: 1})
		must.OK(t, err)
		t.Cleanup(func() { d.Close() })
		told, let := make(chan bool), make(chan struct{})
		d.OnMisread(func(here bool) {
			told <- here
			<-let
		})
		time.Sleep(2 * MoverWaits)
		must.OK(t, d.Exclusive(t.Context(), "buckets", 0, func(tx *Tx) error { _, err := tx.tx.Exec(change); return err }))
		read := make(chan error, 2)
		go func() { read <- d.learn(t.Context(), d.Shard(0)) }()
		check.Equal(t, name+": told of what is here only", <-told, name == "moved")
		go func() { read <- d.learn(t.Context(), d.Shard(1)) }()
		select {
		case err := <-read:
			check.That(t, err == nil, "%s: %v", name, err)
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the other shard waits", name)
		}
		close(let)
		<-read
	}
}

// TestClaimsOfAShardThatHasJustBeenAdded: the list of shards grows before it is read what the new one has.
func TestClaimsOfAShardThatHasJustBeenAdded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := Config{Location: "sqlite:" + filepath.Join(dir, "0.db"), MaxConns: 1}
	d, err := Open(t.Context(), cfg)
	must.OK(t, err)
	t.Cleanup(func() { d.Close() })
	other, err := Open(t.Context(), cfg)
	must.OK(t, err)
	t.Cleanup(func() { other.Close() })
	_, err = other.Add(t.Context(), filepath.Join(dir, "1.db"))
	must.OK(t, err)
	must.OK(t, d.learnShards(t.Context()))
	shards, claims := len(d.All()), len(d.Claims())
	check.That(t, shards == 2 && claims == 2, "%d shards are open, and claims are those of %d", shards, claims)
}

// TestTwoDatabasesAreAddedAtOnce: of two databases that two operators add at once, none takes the other's place.
func TestTwoDatabasesAreAddedAtOnce(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]error{"before the list is read": nil, "behind it": storage.ErrLayout} {
		dir := t.TempDir()
		first, second := filepath.Join(dir, "1.db"), filepath.Join(dir, "2.db")
		cfg := Config{Location: "sqlite:" + filepath.Join(dir, "0.db"), MaxConns: 1}
		other, err := Open(t.Context(), cfg)
		must.OK(t, err)
		t.Cleanup(func() { other.Close() })
		left := -1 // looks at the list of added shards, until the other adds the first: Add refreshes what is known before it reads the list
		cfg.OnStatement = func(ctx context.Context, s Statement) {
			if s.Lookup != "shards" {
				return
			}
			if left--; left == 0 {
				_, err := other.Add(ctx, first)
				must.OK(t, err)
			}
		}
		d, err := Open(t.Context(), cfg)
		must.OK(t, err)
		t.Cleanup(func() { d.Close() })
		left = 1
		if want != nil {
			left = 2
		}
		ordinal, err := d.Add(t.Context(), second)
		check.That(t, errors.Is(err, want) && (err != nil || ordinal == 2), "added %s: the second is shard %d, %v", at, ordinal, err)
		listed, err := other.listed(t.Context())
		check.That(t, err == nil && listed[1] == first && (listed[2] == second || want != nil), "added %s: %v, %v", at, listed, err)
	}
}
