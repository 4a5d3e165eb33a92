package storagetest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"kith/storage"
	"kith/storage/memory"
	"kith/storage/storagetest"
)

// The suite is worth what it catches. Here it runs over stores that are the
// reference engine with one mistake each, and must name the broken promise.
var wrongStores = []struct {
	mistake string
	open    func(*memory.Store) storage.Store
	broken  string // topic/promise
	random  bool   // random histories must come across it as well
}{
	{"nothing", func(s *memory.Store) storage.Store { return s }, "", false},

	{"text of three bytes a character", func(s *memory.Store) storage.Store { return threeByteText{s} }, "creation/EveryFieldComesBack", true},
	{"a key twice is answered once", func(s *memory.Store) storage.Store { return answersOnce{s} }, "users/AKeyThatOccursTwiceIsAnsweredTwice", true},
	{"handles are patterns", func(s *memory.Store) storage.Store { return handlePatterns{s} }, "users/HandlesAreComparedExactly", false},
	{"the end of a batch is lost", func(s *memory.Store) storage.Store { return shortBatches{s} }, "edges/ALargeBatchIsAnswered", false},
	{"one table for both sides", func(s *memory.Store) storage.Store { return oneTable{s} }, "edges/TheSidesAreApart", true},
	{"ties ascend", func(s *memory.Store) storage.Store { return tiesAscend{s} }, "pages/OfOneTimeTheGreaterPeerComesFirst", true},
	{"tombstones are listed", func(s *memory.Store) storage.Store { return listsType{s, memory.New(), storage.None} }, "pages/OnlyFollowsAreListed", true},
	{"blocks are listed", func(s *memory.Store) storage.Store { return listsType{s, memory.New(), storage.Blocking} }, "pages/OnlyFollowsAreListed", true},
	{"after includes its row", func(s *memory.Store) storage.Store { return afterIncludes{s} }, "pages/AfterStartsBehindIt", true},
	{"before is ignored", func(s *memory.Store) storage.Store { return beforeIgnored{s} }, "pages/BeforeEndsAheadOfIt", true},
	{"backward comes oldest first", func(s *memory.Store) storage.Store { return backwardReversed{s} }, "pages/BackwardTakesTheFarEnd", true},
	{"one limit for each owner", func(s *memory.Store) storage.Store { return oneLimit{s} }, "pages/AQueryThatOccursTwiceIsAnsweredTwice", true},
	{"a boundary must be listed", func(s *memory.Store) storage.Store { return boundaryListed{s} }, "pages/ABoundaryMayBeGone", true},
	{"end only below the limit", func(s *memory.Store) storage.Store { return endBelowLimit{s} }, "walks/EndIsToldWithTheLastRow", true},
	{"only follows are examined", func(s *memory.Store) storage.Store { return examinesFollows{s} }, "walks/TombstonesAndBlocksAreExaminedButNotReturned", true},
	{"neighbours descend", func(s *memory.Store) storage.Store { return neighboursDescend{s} }, "neighbours/TheyAscend", true},
	{"ended contexts are served", func(s *memory.Store) storage.Store { return deaf{s} }, "cancellation/ReadsAreRefused", false},
	{"edges make it not empty", func(s *memory.Store) storage.Store { return emptyByCounts{s} }, "lifecycle/EdgesAloneLeaveItEmpty", false},

	{"handles are not unique", func(s *memory.Store) storage.Store { return handleForAll{s} }, "creation/ATakenHandleIsRefused", true},
	{"existing users are overwritten", func(s *memory.Store) storage.Store { return newOverwrites(s) }, "creation/AnExistingUserIsNotChanged", true},
	{"new users have no counts", func(s *memory.Store) storage.Store { return countsByEdges{s} }, "creation/CountsAreMadeWithTheUser", true},
	{"counts belong to users", func(s *memory.Store) storage.Store { return countsOfUsers{s} }, "applyCounts/OwnersWithoutAUserAreCounted", true},
	{"blocks are counted", func(s *memory.Store) storage.Store { return newMiscounts(s, countBlocks) }, "applyCounts/CountsFollowTheType", true},
	{"edges given twice are counted twice", func(s *memory.Store) storage.Store { return newMiscounts(s, countTwice) }, "applyCounts/EdgesOfOnePairAreCountedOnce", true},
	{"any tombstone counts down", func(s *memory.Store) storage.Store { return newMiscounts(s, countTombstones) }, "applyCounts/ATombstoneForNothingCountsNothing", true},
	{"the version stays", func(s *memory.Store) storage.Store { return versionStays{s} }, "applyCounts/TheVersionRisesWithEveryChange", true},
	{"the version always rises", func(s *memory.Store) storage.Store { return newVersionRises(s) }, "applyCounts/TheVersionRisesForChangedOwnersOnly", true},
	{"the same time is newer", func(s *memory.Store) storage.Store { return sameTimeIsNewer{s} }, "apply/AnEdgeOfTheSameTimeIsIgnored", true},
	{"tombstones are absent", func(s *memory.Store) storage.Store { return tombstonesAreAbsent{s} }, "apply/IfAbsentYieldsToAnyRow", true},
	{"a tombstone for nothing is dropped", func(s *memory.Store) storage.Store { return dropsTombstones{s} }, "apply/AMissingEdgeIsWritten", true},
	{"both sides are written", func(s *memory.Store) storage.Store { return writesBoth{s} }, "apply/TheSidesAreIndependent", true},
	{"only the last of a pair is judged", func(s *memory.Store) storage.Store { return lastOfPair{s} }, "apply/EdgesOfOnePairAreJudgedInTurn", true},
	{"counts without a lock", func(s *memory.Store) storage.Store { return newUnlockedCounts(s) }, "concurrency/ApplyKeepsRowsAndCountsExact", false},
	{"handles are claimed without a lock", func(s *memory.Store) storage.Store { return unlockedClaim{s} }, "concurrency/OneHandleGoesToOneUser", false},
}

// wrongStore names the mistake to a child process.
const wrongStore = "STORAGETEST_MISTAKE"

// TestWrongStoresFail runs TestWrongStore once for each mistake. It takes a
// process each because a test cannot fail without failing its parents.
func TestWrongStoresFail(t *testing.T) {
	for _, wrong := range wrongStores {
		t.Run(wrong.mistake, func(t *testing.T) {
			t.Parallel()
			topic, _, _ := strings.Cut(wrong.broken, "/")
			if topic == "" {
				topic = ".*"
			}
			failed, output := runChild(t, wrong.mistake, fmt.Sprintf("^TestWrongStore$/^(%s|histories)$", topic))
			if failed != (wrong.broken != "") {
				t.Fatalf("the suite failed: %v, want %v\n%s", failed, !failed, output)
			}
			if wrong.broken != "" && !strings.Contains(output, "--- FAIL: TestWrongStore/"+wrong.broken+" ") {
				t.Errorf("%s did not fail:\n%s", wrong.broken, output)
			}
			if wrong.random && !strings.Contains(output, "--- FAIL: TestWrongStore/histories/") {
				t.Error("random histories did not come across it")
			}
		})
	}
}

// TestWrongStore is the suite over one wrong store, in a child process.
func TestWrongStore(t *testing.T) {
	mistake, ok := os.LookupEnv(wrongStore)
	if !ok {
		t.Skip("runs in processes that TestWrongStoresFail starts")
	}
	for _, wrong := range wrongStores {
		if wrong.mistake == mistake {
			storagetest.Run(t, func(*testing.T) storage.Store { return wrong.open(memory.New()) })
			return
		}
	}
	t.Fatalf("no store with the mistake %q", mistake)
}

// runChild runs some of this binary's tests and tells whether they failed. Any
// other end than success or failed tests ends the calling test.
func runChild(t *testing.T, mistake, tests string) (failed bool, output string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self, "-test.run="+tests, "-test.timeout=2m",
		"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	child.Env = append(os.Environ(), wrongStore+"="+mistake)
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
