package importer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

var errKilled = errors.New("killed")

// mortal is a store whose program is killed at one of its writes: before the write, or, if late is set,
// after the write and before its answer.
type mortal struct {
	*keeper
	left int // writes until then
	late bool
}

func (m *mortal) write(do func()) error {
	m.left--
	if m.left > 0 || m.left == 0 && m.late {
		do()
	}
	if m.left <= 0 {
		return errKilled
	}
	return nil
}

func (m *mortal) SaveCheckpoint(ctx context.Context, key string, value []byte) error {
	return m.write(func() { m.keeper.SaveCheckpoint(ctx, key, value) })
}

func (m *mortal) DeleteCheckpoint(ctx context.Context, key string) error {
	return m.write(func() { m.keeper.DeleteCheckpoint(ctx, key) })
}

func (m *mortal) CreateUsers(ctx context.Context, users []storage.User, states ...storage.UserState) []storage.Result[bool] {
	return answer(m, len(users), func() []storage.Result[bool] { return m.keeper.CreateUsers(ctx, users, states...) })
}

func (m *mortal) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	return answer(m, len(edges), func() []storage.Result[storage.Changed] { return m.keeper.Apply(ctx, side, edges, rule) })
}

func (m *mortal) Restore(ctx context.Context, rows storage.Restored) []storage.Result[bool] {
	n := len(rows.Posts) + len(rows.Comments) + len(rows.Lists) + len(rows.Identities) + len(rows.Moderation) + len(rows.Annotations)
	return answer(m, n, func() []storage.Result[bool] { return m.keeper.Restore(ctx, rows) })
}

func answer[T any](m *mortal, n int, do func() []storage.Result[T]) (results []storage.Result[T]) {
	err := m.write(func() { results = do() })
	if err == nil {
		return results
	}
	results = make([]storage.Result[T], n)
	for i := range results {
		results[i].Err = err
	}
	return results
}

// An import that is killed at any of its writes and run again, even with other chunks and from another
// folder, ends like one that was not killed: with the same rows, times, counts and report.
func TestKilledImportGoesOn(t *testing.T) {
	files := func() []string {
		return []string{
			file(t, "one.txt", "# head\n1 2\n2 1\n1 2\n3 3\n1 3 50\nbad\n9 1\n4 1 60.5\n1 2\n"),
			file(t, "two.txt.gz", "5 1\n1 5\n2 1\n\n6 7\n8 9 2024-02-29T13:14:15Z\n7 6\n1 9\n"),
			file(t, "people.csv", "id,handle,name\n1,maya,Maya\n6,liam,\"Liam\nof two lines\"\n6,late,Late\n20,u19,No\n21,taken,No\n22,noor,Noor\n"),
		}
	}
	seed := func(*testing.T) *keeper {
		k := newKeeper()
		k.CreateUsers(ctx, []storage.User{{ID: 2, Handle: "old"}, {ID: 30, Handle: "taken"}})
		k.Apply(ctx, storage.Forward, []storage.Edge{{From: 9, To: 1, Type: storage.Blocking, UpdateTime: 5}}, storage.IfAbsent)
		return k
	}
	whole := seed(t)
	want := mustRun(t, whole, Config{Files: files(), Chunk: 2})
	w := (Report{Lines: 24, UsersMade: 9, UsersExisted: 1, Edges: 9, Duplicates: 3, Existed: 2, SelfFollows: 1, Malformed: 2, Refused: 1})
	must.Equal(t, "uninterrupted", bare(want), w)
	config := func() Config { return Config{Files: files(), Chunk: 2, Start: start} }
	for _, lines := range []int{2, 1, 3} {
		killAtEachWrite(t, 30, seed, config, func(name string, k *keeper, over bool) {
			if over {
				return
			}
			again := start
			if len(k.saved) > 0 {
				again = start.Add(time.Hour) // must not matter: the first start is kept
			}
			name = fmt.Sprintf("%s, then %d lines a chunk", name, lines)
			check.Equal(t, name, bare(mustRun(t, k, Config{Files: files(), Chunk: lines, Start: again})), bare(want))
			same(t, name, k.Store, whole.Store)
			check.That(t, len(k.saved) == 0, "%s: the checkpoint is still there", name)
		})
	}
}

// TestRefusedLinesAreCountedOnce, also if a user who cannot be made is named before a kill and behind it.
func TestRefusedLinesAreCountedOnce(t *testing.T) {
	seed := func(t *testing.T) *keeper {
		k := newKeeper()
		k.CreateUsers(ctx, []storage.User{{ID: 40, Handle: "gone"}, {ID: 30, Handle: "taken"}})
		_, err := k.SetState(ctx, 40, storage.Deleting, 5)
		must.OK(t, err)
		must.OK(t, k.Erase(ctx, 40, 6))
		return k
	}
	config := func() Config {
		return Config{Start: start, Chunk: 2, Files: []string{file(t, "a.txt", "40 1\n1 2\n40 2\n1 3\n3 40\n4 5\n"), file(t, "u.csv", "id,handle\n8,taken\n9,nine\n")}}
	}
	want := Report{Lines: 8, UsersMade: 6, Edges: 3, Refused: 4}
	check.Equal(t, "uninterrupted", bare(mustRun(t, seed(t), config())), want)
	killAtEachWrite(t, 10, seed, config, func(name string, k *keeper, over bool) {
		if !over {
			check.Equal(t, name, bare(mustRun(t, k, config())), want)
		}
	})
}

// TestStatesAfterAKill: nobody who is to be hidden is visible at any moment, and who has come back meanwhile stays.
func TestStatesAfterAKill(t *testing.T) {
	config := func() Config {
		return Config{Start: start, Chunk: 2, Files: []string{file(t, "u.csv", "id,handle,state,created_at\n1,maya,deactivated,50\n2,liam,,50\n3,noor,deactivated,50\n")}}
	}
	state := func(k *keeper, id storage.UserID) storage.UserState {
		return storage.StateLookups.Read(ctx, k, id)[0].Value.State
	}
	killAtEachWrite(t, 4, func(*testing.T) *keeper { return newKeeper() }, config, func(name string, k *keeper, _ bool) {
		var back []storage.UserID
		for _, u := range k.Snapshot().Users {
			if u.ID != 2 {
				check.Equal(t, name, state(k, u.ID), storage.Deactivated)
				_, err := k.SetState(ctx, u.ID, storage.Active, 60)
				must.OK(t, err)
				back = append(back, u.ID)
			}
		}
		mustRun(t, k, config())
		for _, id := range []storage.UserID{1, 3} {
			want := storage.Deactivated
			if slices.Contains(back, id) {
				want = storage.Active
			}
			check.Equal(t, fmt.Sprintf("%s, then again: user %d", name, id), state(k, id), want)
		}
	})
}

// killAtEachWrite kills imports at their first write, their second and so on, before it is made and after. What each has left is looked at. An
// import that was killed after its last write is over: only the answer is missing.
func killAtEachWrite(t *testing.T, fewest int, seed func(*testing.T) *keeper, config func() Config, look func(name string, k *keeper, over bool)) {
	t.Helper()
	for _, late := range []bool{false, true} {
		kills := 0
		for n := 1; ; n++ {
			k, name := seed(t), fmt.Sprintf("killed at write %d (late: %v)", n, late)
			_, err := Run(ctx, &mortal{k, n, late}, config())
			if err == nil {
				break
			}
			kills++
			must.That(t, errors.Is(err, errKilled), "%s: %v", name, err)
			look(name, k, late && len(k.saved) == 0)
		}
		check.Least(t, "kills", kills, fewest)
	}
}

// same compares two stores. Only versions, and the times at which users were made, may differ, because
// they depend on the chunks.
func same(t *testing.T, name string, got, want *oracle.Store) {
	t.Helper()
	bare := func(s *oracle.Store) oracle.Snapshot {
		all := s.Snapshot()
		for i := range all.Users {
			all.Users[i].CreatedAt, all.Users[i].UpdatedAt = 0, 0
		}
		for i := range all.Counts {
			all.Counts[i].Version = 0
		}
		return all
	}
	g, w := bare(got), bare(want)
	check.That(t, reflect.DeepEqual(g, w), "%s: the store holds\n%+v, want\n%+v", name, g, w)
}

// interrupter ends a context at the n-th write of edges, as Ctrl-C would.
type interrupter struct {
	*keeper
	left   int
	cancel func()
}

func (i *interrupter) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	if i.left--; i.left == 0 {
		i.cancel()
	}
	return i.keeper.Apply(ctx, side, edges, rule)
}

// An import that can be continued stops in the middle of a chunk, which may have millions of lines. Continued, it completes the
// chunk, and counts as if nothing had happened. Any other finishes the chunk.
func TestInterruptedInAChunk(t *testing.T) {
	path := file(t, "graph.txt", "1 2\n1 3\n1 4\n1 5\n")
	for _, name := range []string{path, "-"} {
		ctx, cancel := context.WithCancel(context.Background())
		i := &interrupter{newKeeper(), 3, cancel} // the forward side of the second chunk
		report, err := Run(ctx, i, Config{Files: []string{name}, Stdin: strings.NewReader("1 2\n1 3\n1 4\n1 5\n"), Chunk: 1, Start: start})
		must.That(t, errors.Is(err, ErrInterrupted), "%s: error %v", name, err)
		check.That(t, report.Resumable == (name == path), "%s: resumable: %v", name, report.Resumable)
		counts := storage.CountLookups.Read(context.Background(), i, 1, 3)[0].Value
		check.That(t, counts.Following == 2, "%s: %d edges counted, want the 2 that were written", name, counts.Following)
		_, whole := i.edge(t, storage.Inverse, 1, 3)
		if name == "-" {
			check.That(t, whole && report.Edges == 2, "the chunk under way is only half written: %+v", report)
			continue
		}
		check.That(t, !whole && report.Edges == 1, "it went on to the end of the chunk: %+v", report)
		check.Has(t, "the checkpoint", fmt.Sprintf("%s", i.saved), `"ordinal":1},"pending":2`)
		got := mustRun(t, i.keeper, Config{Files: []string{name}, Chunk: 1})
		check.That(t, got.Edges == 4 && got.Lines == 4 && got.Existed == 0, "gone on with: %+v", got)
		for to := range storage.UserID(4) {
			_, ok := i.edge(t, storage.Inverse, 1, to+2)
			check.That(t, ok, "follower has no row of 1 and %d", to+2)
		}
	}
}

// restoring ends a context at the first records that are restored.
type restoring struct {
	*keeper
	cancel func()
	calls  int
}

func (r *restoring) Restore(ctx context.Context, rows storage.Restored) []storage.Result[bool] {
	r.calls++
	r.cancel()
	return r.keeper.Restore(ctx, rows)
}

// Chunks of records are as long: with [Config.MaxLoad], one may take many minutes.
func TestInterruptedInAChunkOfRecords(t *testing.T) {
	var posts strings.Builder
	posts.WriteString("author,post,key,created_at,edited_at,deleted,text,media,attributes\n")
	for n := range addedAtOnce + 1 {
		fmt.Fprintf(&posts, "1,%d,k%[1]d,50,,false,x,,\n", n+1)
	}
	config := Config{Files: []string{file(t, "posts.csv", posts.String())}, Start: start}
	ctx, cancel := context.WithCancel(t.Context())
	r := &restoring{newKeeper(), cancel, 0}
	r.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "maya"}})
	_, err := Run(ctx, r, config)
	check.That(t, errors.Is(err, ErrInterrupted) && r.calls == 1, "after %d calls: %v", r.calls, err)
	got := mustRun(t, r.keeper, config)
	check.That(t, got.Posts == addedAtOnce+1, "gone on with: %+v", got)
}

// Between two chunks nothing is half written, so nothing is written again.
func TestInterruptedBetweenChunks(t *testing.T) {
	path := file(t, "graph.txt", "1 2\n1 3\n1 4\n1 5\n")
	ctx, cancel := context.WithCancel(context.Background())
	i := &interrupter{newKeeper(), 4, cancel} // the inverse side of the second chunk
	report, err := Run(ctx, i, Config{Files: []string{path}, Chunk: 1, Start: start})
	must.That(t, errors.Is(err, ErrInterrupted) && report.Edges == 2, "%+v, %v", report, err)
	check.Has(t, "the checkpoint", fmt.Sprintf("%s", i.saved), `"ordinal":2},"pending":2`)
	got := mustRun(t, i.keeper, Config{Files: []string{path}, Chunk: 1})
	check.That(t, got.Edges == 4 && got.Lines == 4 && got.Existed == 0, "gone on with: %+v", got)
}

// A shard that is restored while an import is interrupted may have lost what the import has written: that is written again, with the same times and
// counts.
func TestContinuedAfterARestore(t *testing.T) {
	config := Config{Files: []string{file(t, "graph.txt", "1 2\n1 3\n1 4\n1 5\n")}, Chunk: 1, Start: start}
	whole := newKeeper()
	want := mustRun(t, whole, config)
	killed := newKeeper()
	_, err := Run(ctx, &mortal{keeper: killed, left: 11}, config)
	must.That(t, errors.Is(err, errKilled) && len(killed.saved) == 1, "%v", err)
	restored := newKeeper() // all is lost but the checkpoint, which is on another shard
	restored.saved = killed.saved
	restored.Readmit(0)
	check.Equal(t, "the report", bare(mustRun(t, restored, config)), bare(want))
	same(t, "after a restore", restored.Store, whole.Store)
}

// An import is continued as it began: an id in its second half means what it means in the first.
func TestContinuedWithOtherKinds(t *testing.T) {
	path := file(t, "r.csv", "from,to,kind,at,related,ends_at,attributes\n1,5,100,50,false,,\n1,6,100,50,false,,\n")
	saved := func(kinds map[int64]bool) *keeper {
		k := newKeeper()
		im := &mortal{keeper: k, left: 3}
		_, err := Run(t.Context(), im, Config{Files: []string{path}, Chunk: 1, Things: kinds})
		must.That(t, errors.Is(err, errKilled), "%v", err)
		return k
	}
	things, users := map[int64]bool{100: true}, map[int64]bool{100: false}
	for _, c := range []struct {
		began, on map[int64]bool
		refused   bool
	}{{things, things, false}, {nil, nil, false}, {things, users, true}, {nil, things, true}, {things, nil, true}} {
		_, err := Run(t.Context(), saved(c.began), Config{Files: []string{path}, Chunk: 1, Things: c.on})
		refused := err != nil && strings.Contains(err.Error(), "continue it with the file of --relations")
		check.That(t, refused == c.refused && (err == nil || refused), "begun with %v, continued with %v: %v", c.began, c.on, err)
	}
}

// Problems name the right lines wherever an import has gone on, also behind records of several lines.
func TestLinesOfRecordsAfterAKill(t *testing.T) {
	users := file(t, "users.csv", "id,handle,bio\n1,maya,\"two\nlines\"\n2,liam,\"three\r\n\nlines\"\n# a comment\nx,bad,\n")
	for n, killed := 1, true; killed; n++ {
		k, seen := newKeeper(), 0
		cfg := Config{Files: []string{users}, Chunk: 1, Start: start, Problems: 9, OnProblem: func(p Problem) {
			if seen++; p.Line != 8 {
				t.Errorf("killed at write %d: line %d: %v", n, p.Line, p.Reason)
			}
		}}
		_, err := Run(ctx, &mortal{k, n, true}, cfg)
		if killed = errors.Is(err, errKilled); killed {
			mustRun(t, k, cfg)
		}
		check.That(t, seen != 0, "killed at write %d: no problem is reported", n)
	}
}

func TestProgressAdvances(t *testing.T) {
	path := file(t, "graph.txt", "1 2\n1 3\n1 4\n1 5\n")
	var seen []Progress
	mustRun(t, newKeeper(), Config{Files: []string{path}, Chunk: 1, OnProgress: func(p Progress) { seen = append(seen, p) }})
	first := seen[0]
	check.That(t, first.Bytes == 0 && first.TotalBytes == 16 && first.Edges == 0, "at first %+v", first)
	for i := 1; i < len(seen); i++ {
		check.That(t, seen[i].Bytes >= seen[i-1].Bytes && seen[i].Lines >= seen[i-1].Lines, "%+v follows %+v", seen[i], seen[i-1])
	}
	last := seen[len(seen)-1]
	check.That(t, last.Bytes == 16 && last.Edges == 4 && last.Report.EdgesPerSecond() > 0, "at last %+v", last)
}

// Entries of the moderation log that are dated ahead get times just behind the start of the import, so that what their owners' logs get
// later is not of the future, too: in their order, and the same ones if the import is killed and run again.
func TestEntriesDatedAheadComeOnce(t *testing.T) {
	users := file(t, "users.csv", "id,handle\n1,maya\n2,liam\n")
	log := file(t, "moderation.csv", "owner,at,user,action,by,reason,until,number\n1,10,1,suspended,op,spam,4000000000,\n"+
		"1,3000000000,1,reinstated,op,sorry,,\n1,3500000000,1,suspended,op,worse,4000000000,\n2,3500000000,2,suspended,op,too,4000000000,\n")
	ahead := storage.MicrosOf(start) + 1
	want := map[storage.UserID][]storage.Micros{1: {ahead + 4, ahead + 3, 10_000_000}, 2: {ahead + 5}}
	for n := 1; ; n++ {
		k := newKeeper()
		_, err := Run(ctx, &mortal{k, n, true}, Config{Files: []string{users, log}, Chunk: 3, Start: start})
		must.That(t, err == nil || errors.Is(err, errKilled), "%v", err)
		if err != nil && len(k.saved) > 0 {
			mustRun(t, k, Config{Files: []string{users, log}, Chunk: 2, Start: start.Add(time.Hour)})
		}
		for user, times := range want {
			got, err := storage.ModerationLookups.Get(ctx, k, storage.PlaceQuery{Of: storage.PostID{Author: user}, Limit: 10})
			at := storage.Each(got, func(e storage.ModerationEntry) storage.Micros { return e.At })
			check.That(t, err == nil && reflect.DeepEqual(at, times), "killed at write %d: the log of user %d has the times %v, %v, want %v", n, user, at, err, times)
		}
		if err == nil {
			break
		}
	}
}
