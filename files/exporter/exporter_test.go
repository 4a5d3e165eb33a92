package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/files/graphfile"
	"kith/files/importer"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/contents"
)

// identified is a store in memory with an identity.
type identified struct {
	*oracle.Store
	uuid string
}

func (s identified) UUID() string { return s.uuid }

// filled is a store with rows of every type, as users make them, and users of every state.
func filled(t *testing.T) identified {
	t.Helper()
	s := oracle.New()
	fill(t, s)
	return identified{s, "one"}
}

// fill makes rows of every kind and type.
func fill(t *testing.T, s storage.Store) {
	t.Helper()
	ctx := t.Context()
	var users []storage.User
	for id := storage.UserID(1); id <= 12; id++ {
		users = append(users, storage.User{ID: id, Handle: fmt.Sprintf("user_%d", id), Name: "A, \"B\"", Bio: "x\ny", CreatedAt: 7, UpdatedAt: 8,
			FollowersVisibility: storage.ToNobody, Undiscoverable: id%2 == 0, Attributes: `{"motto":"\"<&>\",\n"}`})
	}
	must.All(t, s.CreateUsers(ctx, users))
	change := func(from, to storage.UserID, kind, ends storage.EdgeType, at storage.Micros) {
		must.All(t, s.ChangeEdges(ctx, storage.Forward, from, []storage.EdgeChange{{To: to, Type: kind, Ends: ends, At: at}}, storage.ChangeOptions{Inverse: true}))
	}
	act := func(act storage.EdgeType, from, to storage.UserID, at storage.Micros) {
		_, err := storagetest.Request(ctx, s, storage.Pair{From: from, To: to}, storage.EdgeChange{Type: act, At: at, Message: fmt.Sprintf("from %d,\nto \"%d\"", from, to)}, storage.ChangeOptions{TTL: 1e18, Inverse: true})
		must.OK(t, err)
	}
	change(1, 2, storage.Following, 0, 1_700_000_000_000_001)
	change(2, 1, storage.Following, 0, 20)
	change(1, 3, storage.Following, 0, 21)
	change(1, 3, storage.None, 0, 22)
	change(4, 1, storage.Following, 0, 23)
	change(1, 4, storage.Blocking, 0, 24) // ends the follow back
	act(storage.Pending, 5, 6, 30)
	act(storage.Pending, 6, 7, 31)
	act(storage.Accepted, 6, 7, 32)
	act(storage.Pending, 7, 8, 33)
	act(storage.Declined, 7, 8, 34)
	act(storage.Pending, 8, 9, 35)
	act(storage.Cancelled, 8, 9, 36)
	act(storage.Pending, 9, 10, 37)
	act(storage.Pending, 10, 9, 38) // these two requests cross
	act(storage.Pending, 1, 12, 39)
	act(storage.Accepted, 1, 12, 40)
	act(storage.Removed, 1, 12, 41)
	act(storage.Pending, 12, 1, 42) // pending after requests that have ended
	act(storage.Pending, 2, 11, 43)
	act(storage.Pending, 11, 2, 44)    // accepted
	change(2, 11, storage.None, 0, 45) // then both have ended the follow
	change(11, 2, storage.None, 0, 46) // …
	act(storage.Pending, 2, 11, 47)    // and one of them asks again
	for i, e := range []storage.ModerationEntry{
		{Owner: 3, User: 3, Action: storage.Suspended, At: 60, Until: storage.Forever},
		{Owner: 5, User: 5, Action: storage.Suspended, At: 61, Until: 1_900_000_000_000_001}, {Owner: 5, User: 5, Action: storage.Reinstated, At: 62},
		{Owner: 6, User: 6, Action: storage.Suspended, At: 63, Until: 64}, {Owner: 6, User: 6, Action: storage.Suspended, At: 65, Until: 66},
	} {
		e.By, e.Reason = "https://id.example.org op|1", fmt.Sprintf("spam, \"%d\"\nand worse", i)
		_, changed, err := s.Moderate(ctx, e)
		must.That(t, err == nil && changed, "%v %v", changed, err)
	}
	for id, state := range map[storage.UserID]storage.UserState{3: storage.Deactivated, 8: storage.Deleting} {
		_, err := s.SetState(ctx, id, state, 50)
		must.OK(t, err)
	}
	s.Apply(ctx, storage.Forward, []storage.Edge{{From: 1, To: 99, UpdateTime: 60}}, storage.IfNewer) // ended, and one user no longer exists
	s.Apply(ctx, storage.Inverse, []storage.Edge{{From: 1, To: 99, UpdateTime: 60}}, storage.IfNewer)
	special, remark := true, "Maya, of \"the\"\nriver"
	for pair, mark := range map[storage.Pair]storage.MarkChange{
		{From: 1, To: 2}: {Special: &special}, {From: 2, To: 1}: {Remark: &remark}, {From: 9, To: 10}: {Special: &special, Remark: &remark, Attributes: storage.AttributeChange{"met": json.RawMessage(`"in \"1999\", é"`)}},
	} {
		_, _, err := s.SetMark(ctx, pair, mark)
		must.OK(t, err)
	}
	publish(t, s)
	for n := range 9 { // in different buckets
		id := storage.Identity{Issuer: "https://id.example.org/\"a\",b", Subject: fmt.Sprintf(" #auth0|%d, é ", n)}
		must.OK(t, s.LinkIdentity(ctx, id, storage.UserID(1+n%8), 1_700_000_000_000_080+storage.Micros(n)))
	}
}

// publish makes posts and comments, some of them of hidden users, and deletes a post with its comments.
func publish(t *testing.T, s storage.Store) {
	t.Helper()
	ctx, text := t.Context(), "edited,\n\"twice\""
	for n := range int64(6) {
		id := storage.PostID{Author: storage.UserID(1 + n%3), Number: 1<<62 + n}
		media := []storage.Media{{Name: "a, \"b\"", URL: "https://example.org/<a>", Kind: storage.Image + storage.MediaKind(n%4)}}
		_, _, err := s.Publish(ctx, storage.PostRow{PostID: id, Key: fmt.Sprint("key", n/2), Text: "x\ny", Media: media[:n%2], At: 70 + storage.Micros(n), Attributes: `{"price":0.5}`})
		must.OK(t, err)
		for by := storage.UserID(5); by < 8; by++ {
			_, _, err := s.AddComment(ctx, storage.Comment{CommentID: storage.CommentID{Author: id.Author, Number: 1<<61 + 10*n + int64(by)}, Post: id.Number, By: by, Key: "k", Text: "a, \"b\"\nc", CreatedAt: 80})
			must.OK(t, err)
		}
	}
	_, _, err := s.EditPost(ctx, storage.PostID{Author: 1, Number: 1 << 62}, storage.PostChange{Text: &text}, 1_700_000_000_000_090)
	must.OK(t, err)
	favorite := func(user storage.UserID, post storage.PostID, kind storage.EdgeType, at storage.Micros) {
		r := s.ChangeEdges(ctx, storage.Favorites, user, []storage.EdgeChange{post.Favorite(kind, at)}, storage.ChangeOptions{Inverse: true})[0]
		must.OK(t, r.Err)
	}
	for n := range int64(6) { // by users, among them one who is deactivated and one who is the author of a post
		for by := storage.UserID(1); by < 8; by += 2 {
			favorite(by, storage.PostID{Author: storage.UserID(1 + n%3), Number: 1<<62 + n}, storage.Favorited, 1_700_000_000_000_080+storage.Micros(n))
		}
	}
	relate := func(user, to storage.UserID, kind int64, related storage.EdgeType, at storage.Micros) {
		change := storage.EdgeChange{To: to, Item: kind, Type: related, At: 1_700_000_000_000_080 + at}
		if at%2 == 0 {
			change.Detail = storage.DetailChange{EndsAt: 1_900_000_000_000_000, Attributes: storage.AttributeChange{"a": fmt.Appendf(nil, `"%d, \n"`, at)}}
		}
		r := s.ChangeEdges(ctx, storage.Relations, user, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})[0]
		must.OK(t, r.Err)
		if !r.Value.Inverse {
			s.Apply(ctx, storage.RelationInbox, []storage.Edge{r.Value.Row}, storage.IfNewer)
		}
	}
	for n := range storage.Micros(18) { // several kinds to one end, and ends that are no users
		relate(1+storage.UserID(n%3), 4+storage.UserID(n%2), 101+int64(n%4), storage.Related, n)
		relate(1, storage.Foreign(int64(1+n)), 102, storage.Related, n)
	}
	relate(1, storage.Foreign(3), 102, storage.None, 30)
	for n := range int64(9) { // two or more of a user, some with members
		list, _, err := s.CreateList(ctx, storage.UserList{ListID: storage.ListID{Owner: storage.UserID(1 + n%4), Number: 1_700_000_000_000_000 + n/8}, Name: fmt.Sprintf("List, %d\"", n), Public: n%2 == 0})
		must.OK(t, err)
		for m := range n % 3 {
			relate(list.Owner, storage.UserID(5+m), list.Kind(), storage.Related, 2*storage.Micros(m)+1)
		}
	}
	favorite(5, storage.PostID{Author: 3, Number: 1<<62 + 2}, storage.None, 1_700_000_000_000_099)
	removal := storage.ModerationEntry{Owner: 2, User: 2, Action: storage.PostRemoved, Number: 1<<62 + 1, At: 90, By: "o", Reason: "spam"}
	_, _, err = s.Moderate(ctx, removal)
	must.OK(t, err)
	_, err = s.DeleteComment(ctx, storage.CommentID{Author: 1, Number: 1<<61 + 5}, 1)
	must.OK(t, err)
}

// contentsOf are the users, states and rows of all tables.
func contentsOf(t *testing.T, s *oracle.Store) (all oracle.Snapshot, states []storage.UserState) {
	t.Helper()
	all = s.Snapshot()
	for _, u := range all.Users {
		states = append(states, storage.StateLookups.Read(t.Context(), s, u.ID)[0].Value.State)
	}
	return all, states
}

func TestWhatIsExportedIsImportedAsItWas(t *testing.T) {
	for _, plain := range []bool{false, true} {
		for _, page := range []int{1, 2, DefaultPage} {
			for _, chunk := range []int{1, 3, 1000} {
				t.Run(fmt.Sprintf("plain %v, %d rows a page, %d lines a chunk", plain, page, chunk), func(t *testing.T) {
					from, to := filled(t), oracle.New()
					dir := filepath.Join(t.TempDir(), "copy")
					report := mustExport(t, from, Config{Dir: dir, Plain: plain, Page: page})
					_, err := importer.Run(t.Context(), to, importer.Config{Files: []string{dir}, Chunk: chunk, Strict: true})
					must.OK(t, err)
					sameContents(t, from.Store, to)
					again := mustExport(t, identified{to, "two"}, Config{Dir: t.TempDir()})
					check.That(t, maps.Equal(report.Totals, again.Totals), "digests %v, then %v", report.Totals, again.Totals)
				})
			}
		}
	}
}

func sameContents(t *testing.T, a, b *oracle.Store) {
	t.Helper()
	want, wantStates := contentsOf(t, a)
	got, gotStates := contentsOf(t, b)
	check.That(t, slices.Equal(got.Users, want.Users) && slices.Equal(gotStates, wantStates), "users %+v %v, want %+v %v", got.Users, gotStates, want.Users, wantStates)
	for _, side := range []struct{ got, want []storage.Edge }{
		{got.Forward, want.Forward}, {got.Inverse, want.Inverse}, {got.Requests, want.Requests}, {got.Inbox, want.Inbox},
	} {
		check.Equal(t, "rows", side.got, side.want)
	}
	for _, u := range want.Users {
		linked, err := storage.LinkLookups.Get(t.Context(), a, u.ID)
		if now, failed := storage.LinkLookups.Get(t.Context(), b, u.ID); errors.Join(err, failed) != nil || !slices.Equal(now, linked) {
			t.Errorf("user %d has the identities %+v (%v), want %+v", u.ID, now, errors.Join(err, failed), linked)
		}
	}
	for kind, rows := range besides(t, a) {
		if now := besides(t, b)[kind]; len(rows) == 0 || !slices.Equal(now, rows) {
			t.Errorf("%s %+v, want %+v", graphfile.AnnotationKind(storage.AnnotationKind(kind)), now, rows)
		}
	}
	for _, c := range want.Counts {
		if now := storage.CountLookups.Read(t.Context(), b, c.ID)[0].Value; now.Following != c.Following || now.Follower != c.Follower || now.Friend != c.Friend || now.Posts != c.Posts {
			t.Errorf("counts of %d: %+v, want %+v", c.ID, now, c.Counts)
		}
	}
}

// besides returns the rows beside the edges of a store.
func besides(t *testing.T, s *oracle.Store) (all [len(storage.AnnotationKinds)][]storage.Annotation) {
	t.Helper()
	err := s.ReadShard(t.Context(), 0, func(at contents.Moment) (err error) {
		for _, kind := range storage.AnnotationKinds {
			if all[kind], err = at.Annotations(t.Context(), kind, storage.Pair{}, 1000); err != nil {
				return err
			}
		}
		return nil
	})
	must.OK(t, err)
	return all
}

func mustExport(t *testing.T, store Store, config Config) Report {
	t.Helper()
	report, err := run(t.Context(), store, config)
	must.OK(t, err)
	return report
}

func run(ctx context.Context, store Store, config Config) (Report, error) {
	e, err := Open(config)
	if err != nil {
		return Report{}, err
	}
	defer e.Close()
	return e.Run(ctx, store)
}

func TestAFolderThatDoesNotFitIsRefused(t *testing.T) {
	store := filled(t)
	exported := func(t *testing.T) string {
		dir := t.TempDir()
		mustExport(t, store, Config{Dir: dir})
		return dir
	}
	put := func(t *testing.T, dir, name string) {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	for name, tt := range map[string]struct {
		prepare func(t *testing.T) (dir string)
		store   Store
		plain   bool
		want    string
	}{
		"a file of somebody else": {func(t *testing.T) string { dir := t.TempDir(); put(t, dir, "thesis.doc"); return dir }, store, false, "holds thesis.doc"},
		"one beside an export":    {func(t *testing.T) string { dir := exported(t); put(t, dir, "thesis.doc"); return dir }, store, false, "holds thesis.doc"},
		"like an export's":        {func(t *testing.T) string { dir := t.TempDir(); put(t, dir, "users-0000.csv"); return dir }, store, false, "holds users-0000.csv"},
		"another store":           {exported, identified{store.Store, "two"}, false, "another store"},
		"other files":             {exported, store, true, "gzipped"},
		"a damaged manifest":      {func(t *testing.T) string { dir := t.TempDir(); put(t, dir, graphfile.ManifestName); return dir }, store, false, graphfile.ManifestName},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t.Context(), tt.store, Config{Dir: tt.prepare(t), Plain: tt.plain})
			check.That(t, errors.Is(err, ErrFolder) && strings.Contains(err.Error(), tt.want) && !strings.Contains(err.Error(), "\n"), "%v, want %q", err, tt.want)
		})
	}
}

func TestOneExportAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(Config{Dir: dir})
	must.OK(t, err)
	_, err = Open(Config{Dir: dir})
	check.Is(t, "the second", err, ErrFolder)
	first.Close()
	second, err := Open(Config{Dir: dir})
	must.OK(t, err)
	second.Close()
}

// A whole export is neither written anew nor taken for a new one. A shard is written again if one of its files is missing or shorter.
// TestAFolderThatCannotBeLockedIsNotTaken: as on a file system without locks.
func TestAFolderThatCannotBeLockedIsNotTaken(t *testing.T) {
	folder, err := os.Open(t.TempDir())
	must.OK(t, err)
	must.OK(t, folder.Close())
	err = lock(folder)
	check.That(t, err != nil && !errors.Is(err, ErrFolder), "%v", err)
	dir := t.TempDir()
	first, err := Open(Config{Dir: dir})
	must.OK(t, err)
	defer first.Close()
	second, err := os.Open(dir)
	must.OK(t, err)
	defer second.Close()
	err = lock(second)
	check.That(t, errors.Is(err, ErrFolder), "%v", err)
}

func TestAWholeExportIsRefused(t *testing.T) {
	store, dir := filled(t), t.TempDir()
	made := mustExport(t, store, Config{Dir: dir, Plain: true}).Last
	_, err := run(t.Context(), store, Config{Dir: dir, Plain: true})
	want := dir + " holds a whole export, made " + made.Format(time.RFC3339) + ": choose another folder"
	check.That(t, errors.Is(err, ErrFolder) && strings.HasSuffix(err.Error(), want) && !made.IsZero(), "%v, want %q", err, want)
	must.OK(t, os.Truncate(filepath.Join(dir, "following-0000.txt"), 10))
	_, err = graphfile.WholeExport(dir)
	check.Says(t, "cut off", err, "has 10 bytes")
	r := mustExport(t, store, Config{Dir: dir, Plain: true})
	check.That(t, r.Kept == 0 && r.Rows != 0 && r.Last.After(made), "after a loss: %+v", r)
	_, err = graphfile.WholeExport(dir)
	check.That(t, err == nil, "%v", err)
}

// An export that is cut off leaves nothing but its manifest, and cannot be imported.
func TestAnInterruptedExportLeavesNoHalfFile(t *testing.T) {
	store, dir := filled(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	pages := 0
	_, err := run(ctx, store, Config{Dir: dir, Page: 2, OnProgress: func(Progress) {
		if pages++; pages == 9 {
			cancel()
		}
	}})
	check.That(t, errors.Is(err, ErrInterrupted) && err.Error() == "interrupted after 0 of 1 shards", "%v", err)
	entries, _ := os.ReadDir(dir)
	check.That(t, len(entries) == 1 && entries[0].Name() == graphfile.ManifestName, "left: %v", entries)
	_, err = graphfile.WholeExport(dir)
	check.That(t, err != nil && strings.Contains(err.Error(), "0 of 1024 buckets"), "%v", err)
	mustExport(t, store, Config{Dir: dir})
}

// The cursor is of before the first row: it is asked for again as long as nothing has been read, as the logs may not have answered.
func TestACursorThatIsMissingIsAskedForAgain(t *testing.T) {
	store, dir := filled(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := run(ctx, store, Config{Dir: dir, Cursor: func() string { cancel(); return "" }})
	must.That(t, errors.Is(err, ErrInterrupted), "%v", err)
	for _, says := range []string{"after a failure", ""} { // which keeps the one that is known
		_, err := run(ctx, store, Config{Dir: dir, Cursor: func() string { return says }})
		if m, found, unread := graphfile.ReadManifest(dir); !errors.Is(err, ErrInterrupted) || m.Cursor != "after a failure" || !found || unread != nil {
			t.Errorf("asked for one, which is %q, %v: the manifest has %q", says, err, m.Cursor)
		}
	}
	mustExport(t, store, Config{Dir: dir})
}

// Rows that no file can hold end the export with an error that names them.
func TestADamagedRowIsNamed(t *testing.T) {
	for _, e := range []storage.Edge{{From: 1, To: 2, Type: 7, UpdateTime: 1}, {From: 1, To: 2, Type: storage.Following, UpdateTime: -5}} {
		s := oracle.New()
		s.Apply(t.Context(), storage.Forward, []storage.Edge{e}, storage.IfNewer)
		if e.UpdateTime < 0 {
			s.Apply(t.Context(), storage.Forward, []storage.Edge{e}, storage.IfAbsent)
		}
		_, err := run(t.Context(), identified{s, "x"}, Config{Dir: t.TempDir()})
		check.That(t, errors.Is(err, graphfile.ErrDamaged) && strings.Contains(err.Error(), "1 → 2 of following"), "%+v: %v", e, err)
	}
}
