package cli

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kong"

	"kith/storage/sqlstore"
)

// The log of a database that replaces a shard is not the log that reconcile has read.
func TestReplaceForgetsHowFarTheOldLogWasRead(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: "sqlite:" + filepath.Join(dir, "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	out := &kong.Context{Kong: &kong.Kong{Stdout: io.Discard}}
	add := ShardsAddCmd{Address: filepath.Join(dir, "b.db")}
	if err := add.Run(ctx, store, out); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{ // whether they are kept
		"reconcile/incremental/relation_log/0": true,
		"reconcile/incremental/relation_log/1": false,
		"reconcile/realtime/relation_log/1":    false,
	}
	for name := range names {
		if err := store.SaveCheckpoint(ctx, name, []byte("7")); err != nil {
			t.Fatal(err)
		}
	}
	ordinal := 1
	replace := ShardsReplaceCmd{Address: filepath.Join(dir, "c.db"), Shard: &ordinal}
	if err := replace.Run(ctx, &Settings{}, store, out); err != nil {
		t.Fatal(err)
	}
	for name, stays := range names {
		if _, found, err := store.LoadCheckpoint(ctx, name); err != nil || found != stays {
			t.Errorf("%s: there is one: %t, %v, want %t", name, found, err, stays)
		}
	}
}
