package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestBucketsAreParsed(t *testing.T) {
	for text, want := range map[string]storage.BucketRange{"0-1023": {First: 0, Last: 1023}, "7": {First: 7, Last: 7}, "3 - 4": {First: 3, Last: 4}} {
		var got bucketRange
		err := got.UnmarshalText([]byte(text))
		check.That(t, err == nil && storage.BucketRange(got) == want, "%q is %v (%v), want %v", text, got, err, want)
	}
	for _, text := range []string{"", "-", "a-b", "5-", "9-3", "-1-4", "0-1024", "1-2-3", "99999999999999999999"} {
		var got bucketRange
		check.That(t, got.UnmarshalText([]byte(text)) != nil, "%q is %v", text, got)
	}
}

// TestResumingNothingIsAReport: a program that reads the report finds one, also if nothing was left to do.
func TestResumingNothingIsAReport(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	done(t, "migrate", store)
	code, out, complaints := ran(t, "shards", "resume", "--output=json", store)
	var report sqlstore.MoveReport
	err := json.Unmarshal([]byte(out), &report)
	check.That(t, code == 0 && err == nil && report == (sqlstore.MoveReport{}), "code %d, %v: %s%s", code, err, out, complaints)
}

// TestNoAddressIsNoCommand: an address that a script has lost is refused before anything is opened or written, and one that is not a file's
// before a file is made that has its name, which would be a shard for good.
func TestNoAddressIsNoCommand(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	code, _, complaints := ran(t, "migrate", store)
	must.That(t, code == 0, "%v", complaints)
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"copy", ""}, {"copy"}, {"shards", "add", ""}, {"shards", "add", " "}, {"shards", "add"},
		{"shards", "add", "sqlite:b.db"}, {"shards", "add", "mysql:kith:secret@tcp(db2:3306)/b"}, {"shards", "add", "tcp(db2:3306)/b"}} {
		code, out, complaints := ran(t, append(args, store)...)
		check.That(t, code == 78 && strings.Count(complaints, "\n") == 1, "%q: code %d: %s%s", args, code, out, complaints)
	}
}

// TestShardsAloneIsStatus: the command that is the default takes its flags without its name.
func TestShardsAloneIsStatus(t *testing.T) {
	store := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	done(t, "migrate", store)
	_, want, _ := ran(t, "shards", "status", "--output=json", store)
	code, out, complaints := ran(t, "shards", "--output=json", store)
	check.That(t, code == 0 && out == want && want != "", "code %d: %s%s", code, out, complaints)
}

// begin begins a move, and is interrupted.
func begin(t *testing.T, store *sqlstore.Store, plan sqlstore.Move) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	_, err := store.Move(ctx, plan, sqlstore.MoveConfig{Token: "begun", Step: func(step string) {
		if step == "copy users" {
			interrupt()
		}
	}})
	must.That(t, err != nil, "the move ended")
}

// TestOneMoveAtATime: a move is refused while another is begun, also if that began after the store was opened. Those that have begun are
// ended all the same, however many they are.
func TestOneMoveAtATime(t *testing.T) {
	dir := t.TempDir()
	location := "sqlite:" + filepath.Join(dir, "a.db") + ";" + filepath.Join(dir, "b.db")
	opened := func() *sqlstore.Store {
		store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
		must.OK(t, err)
		t.Cleanup(func() { store.Close() })
		return store
	}
	one := opened()
	to, err := one.AddShard(t.Context(), filepath.Join(dir, "c.db"))
	must.OK(t, err)
	another := opened()
	begin(t, one, sqlstore.Move{Buckets: storage.BucketRange{First: 600, Last: 609}, From: 1, To: to})
	second := sqlstore.Move{Buckets: storage.BucketRange{First: 620, Last: 629}, From: 1, To: to}
	flags := movingFlags{MaxLoad: 1, Keep: time.Millisecond}
	k := &kong.Context{Kong: &kong.Kong{Stdout: io.Discard, Stderr: io.Discard}}
	check.Says(t, "a second move", flags.move(t.Context(), another, k, second, false), "begun before: buckets 600–609")
	begin(t, one, second)
	must.OK(t, (&ShardsResumeCmd{flags}).Run(t.Context(), opened(), k))
	check.Equal(t, "moves that have not ended", len(opened().Moves()), 0)

	begin(t, opened(), sqlstore.Move{Buckets: storage.BucketRange{First: 630, Last: 639}, From: 1, To: to})
	from, err := sql.Open("sqlite", filepath.Join(dir, "b.db"))
	must.OK(t, err)
	defer from.Close()
	_, err = from.ExecContext(t.Context(), "UPDATE kith_buckets SET state = 3, changed_at = 0 WHERE first_bucket = 630") // rows are being removed
	must.OK(t, err)
	err = (&ShardsResumeCmd{flags}).Run(t.Context(), opened(), k)
	check.That(t, err != nil && strings.HasSuffix(err.Error(), "restore it to a later moment"), "a move whose new shard was restored to before it had the rows: %v", err)
}
