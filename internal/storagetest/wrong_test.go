package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// caught says how a mistake is found.
type caught int

const (
	promiseOnly  caught = iota // its promise fails
	historiesToo               // random histories find it as well
	lostRace                   // its promise fails if a race is lost, which depends on luck
)

// A mistake is a wrong store, and what has to notice it.
type mistake struct {
	mistake string
	open    any    // a spoil, or what makes a store
	broken  string // topic/promise
	caught  caught
}

// The suite is worth as much as it catches. Here it runs over stores that are the reference engine
// with one mistake each, and must name the broken promise.
var wrongStores = slices.Concat(edgeMistakes, checkpointMistakes, bundleMistakes, identityMistakes, accountMistakes, reconcileMistakes, stateMistakes, suggestionMistakes, requestMistakes, blockMistakes, changeMistakes, writeMistakes, besideMistakes, attributeMistakes, favoriteMistakes, listMistakes, moderationMistakes, postRowMistakes, postMistakes, relationMistakes, shardReaderMistakes, sideMistakes, snapshotMistakes)

// Mistakes about edges, users and what is in no other table.
var edgeMistakes = []mistake{
	{"nothing", func(s *oracle.Store) storage.Store { return s }, "", promiseOnly},

	{"handles are patterns", answers(func(s *oracle.Store, _ storage.Side, handle string, r *storage.Result[storage.UserID]) {
		for _, user := range s.Snapshot().Users {
			if like, _ := path.Match(strings.ReplaceAll(handle, "_", "?"), user.Handle); like {
				*r = storage.Result[storage.UserID]{Value: user.ID, Found: true}
				break
			}
		}
	}, storage.HandleLookups), "users/HandlesAreComparedExactly", promiseOnly},
	{"the end of a batch is lost", shortens(1000, storage.EdgeLookups...), "edges/ALargeBatchIsAnswered", promiseOnly},
	{"one table for both sides", reads(func(ctx context.Context, s *oracle.Store, _ storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
		return storage.EdgeLookups[storage.Forward].Read(ctx, s, pairs...)
	}, storage.EdgeLookups...), "edges/TheSidesAreApart", historiesToo},
	{"edges of one time ascend", answers(func(_ *oracle.Store, side storage.Side, _ storage.PageQuery, r *storage.Result[[]storage.Edge]) {
		slices.SortFunc(r.Value, func(a, b storage.Edge) int {
			if a.UpdateTime != b.UpdateTime {
				return int(b.UpdateTime - a.UpdateTime)
			}
			if side.Peer(a.Pair()) < side.Peer(b.Pair()) {
				return -1
			}
			return 1
		})
	}, storage.PageLookups...), "pages/OfOneTimeTheGreaterPeerComesFirst", historiesToo},
	{"tombstones are listed", func(s *oracle.Store) storage.Store { return listsType{s, oracle.New(), storage.None} }, "pages/OnlyFollowsAreListed", historiesToo},
	{"blocks are listed", func(s *oracle.Store) storage.Store { return listsType{s, oracle.New(), storage.Blocking} }, "pages/OnlyFollowsAreListed", historiesToo},
	{"after includes its row", asks(func(q *storage.PageQuery) {
		if q.After != (storage.Position{}) {
			q.After.Peer++
		}
	}, storage.PageLookups...), "pages/AfterStartsBehindIt", historiesToo},
	{"backward comes oldest first", answers(func(_ *oracle.Store, _ storage.Side, q storage.PageQuery, r *storage.Result[[]storage.Edge]) {
		if q.Backward {
			slices.Reverse(r.Value)
		}
	}, storage.PageLookups...), "pages/BackwardTakesTheFarEnd", historiesToo},
	{"one limit for each owner", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
		queries = slices.Clone(queries)
		limits := map[storage.UserID]int{}
		for i, q := range queries {
			if limits[q.Owner] == 0 {
				limits[q.Owner] = q.Limit
			}
			queries[i].Limit = limits[q.Owner]
		}
		return storage.PageLookups[side].Read(ctx, s, queries...)
	}, storage.PageLookups...), "pages/AQueryThatOccursTwiceIsAnsweredTwice", historiesToo},
	{"a boundary must be listed", reads(func(ctx context.Context, s *oracle.Store, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
		queries = slices.Clone(queries)
		for i, q := range queries {
			row := storage.EdgeLookups[side].Read(ctx, s, side.Pair(q.Owner, q.After.Peer))[0].Value
			if row.Type != storage.Following || row.UpdateTime != q.After.UpdateTime {
				queries[i].After = storage.Position{}
			}
		}
		return storage.PageLookups[side].Read(ctx, s, queries...)
	}, storage.PageLookups...), "pages/ABoundaryMayBeGone", historiesToo},
	{"edges make it not empty", reads(countedAreUsers, storage.UserIDLookups), "lifecycle/EdgesAloneLeaveItEmpty", promiseOnly},
}

// wrongStore tells a child process which mistake to make.
const wrongStore = "STORAGETEST_MISTAKE"

// TestWrongStoresFail runs TestWrongStore once for each mistake. Each run needs a process of its own,
// because a test cannot fail without failing its parents.
func TestWrongStoresFail(t *testing.T) {
	for _, wrong := range wrongStores {
		t.Run(wrong.mistake, func(t *testing.T) {
			t.Parallel()
			// The promise alone, and the random histories only if they have to find the mistake.
			topic, promise, _ := strings.Cut(wrong.broken, "/")
			tests := fmt.Sprintf("^TestWrongStore$/^%s$/^%s$", topic, promise)
			switch {
			case topic == "":
				tests = "^TestWrongStore$"
			case wrong.caught == historiesToo:
				tests = fmt.Sprintf("^TestWrongStore$/^(%s|histories)$/^(%s|Any.*)$", topic, promise)
			}
			failed, output := runChild(t, wrong.mistake, tests)
			for try := 1; wrong.caught == lostRace && !failsAt(wrong.broken, output) && try < 200; try++ {
				failed, output = runChild(t, wrong.mistake, tests)
			}
			if failed != (wrong.broken != "") {
				t.Fatalf("the suite failed: %v, want %v\n%s", failed, !failed, output)
			}
			if wrong.broken != "" && !failsAt(wrong.broken, output) {
				t.Errorf("%s did not fail:\n%s", wrong.broken, output)
			}
			if wrong.caught == historiesToo && !failsAt("histories/", output) {
				t.Error("random histories did not come across it")
			}
		})
	}
}

// failsAt reports whether a promise failed.
func failsAt(promise, output string) bool {
	if !strings.HasSuffix(promise, "/") {
		promise += " " // so that the whole name is compared
	}
	return strings.Contains(output, "--- FAIL: TestWrongStore/"+promise)
}

// TestWrongStore is the suite over one wrong store, in a child process.
func TestWrongStore(t *testing.T) {
	mistake, ok := os.LookupEnv(wrongStore)
	if !ok {
		t.Skip("runs in processes that TestWrongStoresFail starts")
	}
	for _, wrong := range wrongStores {
		if wrong.mistake == mistake {
			storagetest.Run(t, func(*testing.T) storage.Store { return made(wrong.open) })
			return
		}
	}
	t.Fatalf("no store with the mistake %q", mistake)
}

func made(open any) storage.Store {
	if by, is := open.(spoil); is {
		return spoiled(oracle.New(), by)
	}
	return open.(func(*oracle.Store) storage.Store)(oracle.New())
}

// runChild runs some of this binary's tests and reports whether they failed. If the process ends
// in any other way than with success or failed tests, the calling test ends.
func runChild(t *testing.T, mistake, tests string) (failed bool, output string) {
	t.Helper()
	self, err := os.Executable()
	must.OK(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run="+tests, "-test.timeout=2m",
		"-rapid.seed=1", "-rapid.checks=30", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	// A lost race needs two goroutines that run at the same time, also on one processor.
	child.Env = append(os.Environ(), wrongStore+"="+mistake, fmt.Sprintf("GOMAXPROCS=%d", max(4, runtime.GOMAXPROCS(0))))
	text, err := child.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("child: %v\n%s", err, text)
	}
	if strings.Contains(string(text), "no tests to run") {
		t.Fatalf("child ran nothing for %s", tests)
	}
	return err != nil, string(text)
}
