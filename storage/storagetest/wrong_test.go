package storagetest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
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

	{"following again moves the edge", func(s *memory.Store) storage.Store { return followsAgain{s} }, "changes/ARowOfTheWantedTypeKeepsItsTimeAndPlace", true},
	{"the clock alone tells the time", func(s *memory.Store) storage.Store { return clockOnly{s} }, "changes/TheTimeRisesWhenTheClockGoesBack", true},
	{"ending nothing leaves a tombstone", func(s *memory.Store) storage.Store { return endsNothing{s} }, "changes/EndingNothingWritesNothing", true},
	{"only the last change of a user is judged", func(s *memory.Store) storage.Store { return lastChange{s} }, "changes/ChangesOfOneUserAreJudgedInTurn", true},
	{"the limit refuses whole calls", func(s *memory.Store) storage.Store { return wholeCallLimited{s} }, "changes/OnlyWhatIsBeyondTheLimitIsRefused", true},
	{"the version rises with every call", func(s *memory.Store) storage.Store { return newChangesRaise(s) }, "changes/TheVersionRisesOnceWithACall", true},
	{"each change is a transaction", func(s *memory.Store) storage.Store { return oneByOne{s} }, "changes/TheVersionRisesOnceWithACall", false},
	{"anybody changes edges", func(s *memory.Store) storage.Store { return anybodyChanges{s} }, "changes/NobodyChangesNothing", true},
	{"the inverse is always written", func(s *memory.Store) storage.Store { return alwaysInverse{s} }, "inverse/WithoutTheOptionItIsNotWritten", true},
	{"the inverse is told but not written", func(s *memory.Store) storage.Store { return inverseClaimed{s} }, "inverse/WhatIsLocalIsWritten", true},
	{"the inverse is written but not told", func(s *memory.Store) storage.Store { return inverseUntold{s} }, "inverse/WhatIsLocalIsWritten", true},
	{"the inverse is written over newer rows", func(s *memory.Store) storage.Store { return inverseOverwrites{s} }, "inverse/ANewerRowStays", true},
	{"the limit is judged without a lock", func(s *memory.Store) storage.Store { return unlockedLimit{s} }, "changesAtOnce/TheLimitHolds", false},
	{"callers hear of deadlocks", func(s *memory.Store) storage.Store { return tellsDeadlocks{s, new(sync.Mutex)} }, "changesAtOnce/ManyMayFollowMany", false},
	{"edges are judged without a lock", func(s *memory.Store) storage.Store { return staleRows{s} }, "changesAtOnce/OnePairHasOneStateAfterAnother", false},
	{"claims never lapse", func(s *memory.Store) storage.Store { return claimsNeverLapse{s} }, "accounts/AnOldClaimWithoutAUserIsTakenOver", false},
	{"claims lapse at once", func(s *memory.Store) storage.Store { return claimsLapseAtOnce{s} }, "accounts/AYoungClaimWithoutAUserIsKept", false},
	{"old users lose their handles", func(s *memory.Store) storage.Store { return oldUsersLoseHandles{s} }, "accounts/AnOldClaimWithAUserIsKept", true},
	{"existing users claim handles", func(s *memory.Store) storage.Store { return existingUsersClaim{s} }, "accounts/AnExistingUserIsRefused", true},
	{"handles are registered without a lock", func(s *memory.Store) storage.Store { return unlockedRegister{s} }, "accounts/OneHandleIsRegisteredOnce", false},
	{"without a password there is no user", func(s *memory.Store) storage.Store { return noPasswordNoUser{s} }, "accounts/UsersMadeOtherwiseHaveNoPassword", true},
	{"nobody may have a password", func(s *memory.Store) storage.Store { return passwordsOfNobody{s} }, "accounts/NobodyHasNoPasswordToReplace", true},
	{"an empty text is none", func(s *memory.Store) storage.Store { return emptyIsNil{s} }, "accounts/AnEmptyTextIsAText", true},
	{"profiles leave the version", func(s *memory.Store) storage.Store { return newProfileKeepsVersion(s) }, "accounts/TheVersionRisesWithTheProfile", true},
	{"an owner gets another slot", func(s *memory.Store) storage.Store { return anotherSlot{s} }, "leases/AnOwnerKeepsItsSlot", false},
	{"leases last for ever", func(s *memory.Store) storage.Store { return leasesLastForEver{s} }, "leases/AnExpiredSlotIsTaken", false},
	{"a slot is released by whoever had it", func(s *memory.Store) storage.Store { return releasesSlot{s} }, "leases/AReleasedSlotIsTaken", false},
	{"slots are leased without a lock", func(s *memory.Store) storage.Store { return unlockedLeases{s} }, "leases/ManyMayAskAtOnce", false},
	{"the log has one side", func(s *memory.Store) storage.Store { return logsOneSide{s} }, "relationLog/EveryRowThatIsAppliedIsThereOnce", true},
	{"pruned entries are skipped", func(s *memory.Store) storage.Store { return prunedInSilence{s} }, "relationLog/PrunedEntriesAreMissed", false},
	{"an emptied log misses nothing", func(s *memory.Store) storage.Store { return emptiedInSilence{s} }, "relationLog/AnEmptiedLogKnowsWhatIsMissing", false},
	{"the log is read to its end", func(s *memory.Store) storage.Store { return readsToTheEnd{s} }, "relationLog/ReadingStopsAtTheLimit", false},
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
