package changes_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/files/changes"
	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/doctor"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience bounds every wait. It is long, and is only reached if something is wrong.
const patience = time.Minute

// onEachLog runs a test on a store whose changes are in the binlogs of two servers, and on one whose changes are in the relation_logs of two
// files. The last addresses are of databases that are not shards yet.
func onEachLog(t *testing.T, test func(t *testing.T, store *sqlstore.Store, more []string)) {
	open := func(t *testing.T, location string) *sqlstore.Store {
		store := opened.Store(t, sqlstore.Config{Location: location})
		return store
	}
	t.Run("relation_log", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "kith")
		test(t, open(t, "sqlite:"+file+"0;"+file+"1"), []string{file + "2"})
	})
	t.Run("binlog", func(t *testing.T) {
		t.Parallel()
		testenv.NeedsBinlog(t)
		dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)
		test(t, open(t, "mysql:"+dsns[0]+";"+dsns[2]), []string{dsns[1], testenv.MariaDB(t).CreateDatabase(t, "kith_added")})
	})
}

// read reads what is in the logs now after a cursor, without the positions.
func read(t testing.TB, store changes.Store, after string, kinds ...changes.Kind) (events []changes.Event, end string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := changes.Run(ctx, changes.Config{Store: store, After: after, Kinds: kinds, UntilNow: true, Logger: slog.New(slog.DiscardHandler)}, func(e changes.Event) error {
		if end = max(e.Cursor, end); e.Cursor != "" {
			end = e.Cursor
		}
		if e.Type != changes.Position {
			events = append(events, e)
		}
		return nil
	})
	must.OK(t, err)
	return events, end
}

// told is what was last said of each subject of a kind.
func told(events []changes.Event) map[string]map[string]string {
	last := make(map[string]map[string]string)
	for _, e := range events {
		last[strings.TrimPrefix(e.Type, "kith.")+" "+e.Subject] = e.Data
	}
	return last
}

// ofShard are the first ids of a shard.
func ofShard(store *sqlstore.Store, shard, n int) (ids []storage.UserID) {
	for id := storage.UserID(1); len(ids) < n; id++ {
		if store.ShardOf(id) == shard {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestEveryKindOfChangeIsTold(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, _ []string) {
		ctx := t.Context()
		_, start := read(t, store, "")
		ada, ben := ofShard(store, 0, 1)[0], ofShard(store, 1, 1)[0]
		a, b := ada.String(), ben.String()
		must.All(t, store.CreateUsers(ctx, []storage.User{{ID: ada, Handle: "ada", Name: "Ada", CreatedAt: 1e6}, {ID: ben, Handle: "ben", Name: "Ben", CreatedAt: 1e6}}))
		change := func(side storage.Side, c storage.EdgeChange) {
			t.Helper()
			c.To, c.At = ben, 2_500_000
			must.All(t, store.ChangeEdges(ctx, side, ada, []storage.EdgeChange{c}, storage.ChangeOptions{}))
		}
		name := "Ada L."
		post, gone := storage.PostID{Author: ben, Number: 71}, storage.PostID{Author: ben, Number: 72}
		for _, id := range []storage.PostID{post, gone} {
			_, _, err := store.Publish(ctx, storage.PostRow{PostID: id, Key: id.Author.String() + "k" + string(rune('a'+id.Number%26)), Text: "<hello>", At: 3e6})
			must.OK(t, err)
		}
		change(storage.Forward, storage.EdgeChange{Type: storage.Following})
		change(storage.Requests, storage.EdgeChange{Type: storage.Pending})
		change(storage.Favorites, storage.EdgeChange{Item: post.Number, Type: storage.Favorited})
		change(storage.Relations, storage.EdgeChange{Item: declared.Mutes.Number, Type: storage.Related})
		change(storage.Relations, storage.EdgeChange{Item: declared.FirstKind, Type: storage.Related, Detail: storage.DetailChange{EndsAt: 9e6, Attributes: storage.AttributeChange{"a": json.RawMessage("1")}}})
		comment, taken := storage.CommentID{Author: ben, Number: 81}, storage.CommentID{Author: ben, Number: 82}
		for _, id := range []storage.CommentID{comment, taken} {
			_, _, err := store.AddComment(ctx, storage.Comment{CommentID: storage.CommentID{Author: post.Author, Number: id.Number}, Post: post.Number, By: ada, Key: "k" + string(rune('a'+id.Number%26)), Text: "<well>", CreatedAt: 3_500_000})
			must.OK(t, err)
		}
		_, _, err := store.UpdateProfile(ctx, ada, storage.ProfileChange{Name: &name}, 4e6)
		_, err2 := store.SetState(ctx, ben, storage.Deactivated, 5e6)
		_, err3 := store.DeletePost(ctx, gone)
		_, err4 := store.DeleteComment(ctx, taken, ada)
		_, _, err5 := store.Moderate(ctx, storage.ModerationEntry{Owner: ben, User: ben, At: 6e6, Action: storage.Suspended, By: "maya", Reason: "spam", Until: 7_500_000})
		must.OK(t, errors.Join(err, err2, err3, err4, err5))

		events, end := read(t, store, start)
		got := told(events)
		relation := "relations " + a + "/" + b + "/" + strconv.FormatInt(declared.FirstKind, 10)
		want := map[string]map[string]string{
			"users " + a:                       {"id": a, "handle": "ada", "name": "Ada L.", "state": "active", "created_at": "1"},
			"users " + b:                       {"handle": "ben", "state": "deactivated", "suspended_until": "7.500000"},
			"posts " + b + "/71":               {"author": b, "post": "71", "text": "<hello>", "created_at": "3", "deleted": "false"},
			"posts " + b + "/72":               {"author": b, "post": "72", "deleted": "true"},
			"follows " + a + "/" + b:           {"relation": "following", "from": a, "to": b, "at": "2.500000"},
			"requests " + a + "/" + b:          {"relation": "friend_request", "from": a, "to": b, "at": "2.500000"},
			"favorites " + a + "/" + b + "/71": {"user": a, "author": b, "post": "71", "at": "2.500000", "favorited": "true"},
			"relations " + a + "/" + b + "/1":  {"from": a, "to": b, "kind": "1", "at": "2.500000", "related": "true", "ends_at": ""},
			"comments " + b + "/81":            {"author": b, "post": "71", "comment": "81", "user": a, "text": "<well>", "created_at": "3.500000", "deleted": ""},
			"comments " + b + "/82":            {"author": b, "comment": "82", "deleted": "true"},
			relation:                           {"from": a, "to": b, "at": "2.500000", "related": "true", "ends_at": "9", "attributes": `{"a":1}`},
		}
		if store.HasBinlog() {
			want["counts "+a] = map[string]string{"user": a, "following": "1", "favorites": "1"}
		}
		for key, columns := range want {
			for column, value := range columns {
				check.That(t, got[key][column] == value, "of %s the %s is %q, want %q", key, column, got[key][column], value)
			}
		}
		for key := range got {
			check.That(t, want[key] != nil || strings.HasPrefix(key, "counts "), "%s: nothing has changed there", key)
		}
		for _, e := range events {
			if text, err := json.Marshal(e); err != nil || !strings.Contains(string(text), `"specversion":"1.0"`) || e.Source == "" || e.DataContentType != "application/json" {
				t.Errorf("%s, %v", text, err)
			}
		}

		// From every cursor, exactly the rest comes, with the same ids, and of some kinds only these.
		for i, e := range events {
			if e.Cursor == "" {
				continue
			}
			rest, _ := read(t, store, e.Cursor)
			ids := func(list []changes.Event) (ids []string) {
				for _, e := range list {
					ids = append(ids, e.Source+e.ID)
				}
				return slices.Sorted(slices.Values(ids))
			}
			want, got := ids(events[i+1:]), ids(rest)
			check.That(t, slices.Equal(got, want), "after event %d came %v, want %v", i, got, want)
		}
		for id, n := range maps.Collect(func(yield func(string, int) bool) {
			counts := map[string]int{}
			for _, e := range events {
				counts[e.Source+e.ID]++
			}
			maps.All(counts)(yield)
		}) {
			check.That(t, n <= 1, "%d events are called %s", n, id)
		}
		some, _ := read(t, store, start, changes.Requests)
		check.That(t, len(some) == 1 && some[0].Type == "kith.requests", "of one kind came %+v", some)
		none, _ := read(t, store, end)
		check.That(t, len(none) == 0, "at the end came %+v", none)
		_, _, err = store.Moderate(ctx, storage.ModerationEntry{Owner: ben, User: ben, At: 7e6, Action: storage.Reinstated, By: "maya", Reason: "a mistake"})
		must.OK(t, err)
		free, _ := read(t, store, end, changes.Users)
		check.That(t, len(free) == 1 && free[0].Subject == b && free[0].Data["suspended_until"] == "", "of a user who has been reinstated came %+v", free)
		_, err = store.DeleteComment(ctx, comment, ada)
		must.OK(t, err)
		if gone, _ := read(t, store, end, changes.Comments); len(gone) != 1 || gone[0].Subject != b+"/81" || gone[0].Data["deleted"] != "true" {
			t.Errorf("of a comment that is gone came %+v", gone)
		}
	})
}

// follow writes follows of a user, one by one, and returns their subjects.
func follow(t testing.TB, store *sqlstore.Store, from storage.UserID, first, n int) (subjects []string) {
	t.Helper()
	for to := range n {
		change := storage.EdgeChange{To: storage.UserID(first + to), Type: storage.Following, At: storage.MicrosOf(time.Now())}
		must.All(t, store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{}))
		subjects = append(subjects, from.String()+"/"+change.To.String())
	}
	return subjects
}

// A cursor from before shards were added, and buckets moved to them, leads to everything that was written there; a reader that was there all
// the time has it, too.
func TestAddedShardsAreRead(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, more []string) {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		ids := ofShard(store, 0, 400)
		var users []storage.User
		for _, id := range ids {
			users = append(users, storage.User{ID: id, Handle: "h" + id.String(), CreatedAt: 1e6})
		}
		must.All(t, store.CreateUsers(ctx, users))
		_, start := read(t, store, "")
		var mu sync.Mutex
		live, began, ended := map[string]bool{}, make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- changes.Run(ctx, changes.Config{Store: store, Kinds: []changes.Kind{changes.Follows}, Logger: slog.New(slog.DiscardHandler)}, func(e changes.Event) error {
				mu.Lock()
				defer mu.Unlock()
				if !live[""] { // the first position
					close(began)
				}
				live[e.Subject], live[""] = true, true
				return nil
			})
		}()
		<-began
		var want []string
		for i, address := range more {
			want = append(want, follow(t, store, ids[0], 100+10*i, 5)...)
			shard, err := store.AddShard(ctx, address)
			must.OK(t, err)
			first := ids[2+i].Bucket()
			_, err = store.Move(ctx, sqlstore.Move{Buckets: storage.BucketRange{First: first, Last: first}, From: 0, To: shard}, sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond})
			must.OK(t, err)
			must.Equal(t, "the user is on shard", store.ShardOf(ids[2+i]), shard)
			want = append(want, follow(t, store, ids[2+i], 100, 5)...)
		}
		events, _ := read(t, store, start, changes.Follows)
		got := storage.Each(events, func(e changes.Event) string { return e.Subject })
		slices.Sort(got)
		slices.Sort(want)
		check.Equal(t, "what came from before", got, want)
		for _, subject := range want {
			for has := false; !has; time.Sleep(10 * time.Millisecond) {
				mu.Lock()
				has = live[subject]
				mu.Unlock()
				must.That(t, ctx.Err() == nil, "%s was not told", subject)
			}
		}
		stop()
		err := <-ended
		check.That(t, errors.Is(err, context.Canceled), "%v", err)
	})
}

// Where a log no longer has what came after a cursor, nothing is skipped.
func TestPurgedLogsNeedASnapshot(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, store *sqlstore.Store, after string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := changes.Run(ctx, changes.Config{Store: store, After: after, UntilNow: true, Logger: slog.New(slog.DiscardHandler)}, func(changes.Event) error { return nil })
		var lost *changes.SnapshotNeeded
		check.That(t, errors.As(err, &lost) && strings.HasPrefix(err.Error(), "SNAPSHOT_NEEDED: "), "the error is %v", err)
	}
	t.Run("relation_log", func(t *testing.T) {
		store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")})
		must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "ada"}}))
		_, start := read(t, store, "")
		follow(t, store, 1, 10, 3)
		last, err := store.LastOfLog(t.Context(), 0)
		if err == nil {
			err = store.PruneLog(t.Context(), 0, last-1)
		}
		must.OK(t, err)
		refused(t, store, start)
	})
	t.Run("binlog", func(t *testing.T) {
		testenv.NeedsBinlog(t)
		server := testenv.MariaDB(t)
		store := opened.Store(t, sqlstore.Config{Location: "mysql:" + server.CreateDatabase(t, "kith")})
		must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "ada"}}))
		_, start := read(t, store, "")
		follow(t, store, 1, 10, 3)
		_, later := read(t, store, start)
		server.Exec(t, "FLUSH BINARY LOGS")
		follow(t, store, 1, 20, 1)
		db := server.Open(t, "kith")
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // a server keeps files as long as it sends them to somebody
			files, err := doctor.Rows(t.Context(), db, "SHOW BINARY LOGS")
			must.That(t, err == nil && time.Since(began) <= patience, "%v, %v", files, err)
			if len(files) == 1 {
				break
			}
			server.Exec(t, "PURGE BINARY LOGS TO '"+files[len(files)-1]["Log_name"]+"'")
		}
		refused(t, store, start)
		rest, _ := read(t, store, later, changes.Follows)
		check.That(t, len(rest) == 1, "after the purged files came %+v", rest)
		server.ResetBinlog(t)
		refused(t, store, later)
	})
}

// A reader that stands still holds everything up but the writers, and gets it all afterwards.
func TestSlowReadersAreWaitedFor(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, _ []string) {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		ada := ofShard(store, 0, 1)[0]
		must.All(t, store.CreateUsers(ctx, []storage.User{{ID: ada, Handle: "ada", CreatedAt: 1e6}}))
		events := make(chan changes.Event)
		ended := make(chan error, 1)
		done := errors.New("done")
		const n = 300
		go func() {
			got := 0
			ended <- changes.Run(ctx, changes.Config{Store: store, Kinds: []changes.Kind{changes.Follows}, Logger: slog.New(slog.DiscardHandler)}, func(e changes.Event) error {
				if events <- e; e.Type == changes.Position {
					return nil
				}
				if got++; got == n {
					return done
				}
				return nil
			})
		}()
		<-events // it has begun, and nobody reads on
		want := follow(t, store, ada, 100, n)
		for _, subject := range want {
			e := <-events
			for e.Type == changes.Position {
				e = <-events
			}
			must.Equal(t, "came", e.Subject, subject)
		}
		err := <-ended
		check.That(t, errors.Is(err, done), "%v", err)
	})
}

// A reader that stood still while a user moved tells how the user is, and not how it was, or that it is gone.
func TestUsersWhoHaveMovedAreTold(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, _ []string) {
		ctx := t.Context()
		user := ofShard(store, 0, 1)[0]
		must.All(t, store.CreateUsers(ctx, []storage.User{{ID: user, Handle: "ada", CreatedAt: 1e6}}))
		_, start := read(t, store, "")
		location := "sqlite:"
		if store.HasBinlog() {
			location = "mysql:"
		}
		mover := opened.Store(t, sqlstore.Config{Location: location + strings.Join(store.Addresses(), ";")})
		_, err := mover.Move(ctx, sqlstore.Move{Buckets: storage.BucketRange{First: user.Bucket(), Last: user.Bucket()}, From: 0, To: 1}, sqlstore.MoveConfig{Token: "test"})
		must.OK(t, err)
		_, _, err = mover.UpdateProfile(ctx, user, storage.ProfileChange{Name: new("Ada L.")}, 4e6)
		must.OK(t, err)
		events, _ := read(t, store, start, changes.Users)
		must.That(t, len(events) > 0, "nothing was told")
		for _, e := range events {
			check.That(t, e.Data["name"] == "Ada L.", "of the user came %v", e.Data)
		}
	})
}
