package storagetest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

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

// The suite is worth as much as it catches. Here it runs over stores that are the reference engine
// with one mistake each, and must name the broken promise.
var wrongStores = []struct {
	mistake string
	open    func(*oracle.Store) storage.Store
	broken  string // topic/promise
	caught  caught
}{
	{"nothing", func(s *oracle.Store) storage.Store { return s }, "", promiseOnly},

	{"text of three bytes a character", func(s *oracle.Store) storage.Store { return threeByteText{s} }, "creation/EveryFieldComesBack", historiesToo},
	{"a key twice is answered once", func(s *oracle.Store) storage.Store { return answersOnce{s} }, "users/AKeyThatOccursTwiceIsAnsweredTwice", historiesToo},
	{"handles are patterns", func(s *oracle.Store) storage.Store { return handlePatterns{s} }, "users/HandlesAreComparedExactly", promiseOnly},
	{"the end of a batch is lost", func(s *oracle.Store) storage.Store { return shortBatches{s} }, "edges/ALargeBatchIsAnswered", promiseOnly},
	{"one table for both sides", func(s *oracle.Store) storage.Store { return oneTable{s} }, "edges/TheSidesAreApart", historiesToo},
	{"edges of one time ascend", func(s *oracle.Store) storage.Store { return equalTimesAscend{s} }, "pages/OfOneTimeTheGreaterPeerComesFirst", historiesToo},
	{"tombstones are listed", func(s *oracle.Store) storage.Store { return listsType{s, oracle.New(), storage.None} }, "pages/OnlyFollowsAreListed", historiesToo},
	{"blocks are listed", func(s *oracle.Store) storage.Store { return listsType{s, oracle.New(), storage.Blocking} }, "pages/OnlyFollowsAreListed", historiesToo},
	{"after includes its row", func(s *oracle.Store) storage.Store { return afterIncludes{s} }, "pages/AfterStartsBehindIt", historiesToo},
	{"before is ignored", func(s *oracle.Store) storage.Store { return beforeIgnored{s} }, "pages/BeforeEndsAheadOfIt", historiesToo},
	{"backward comes oldest first", func(s *oracle.Store) storage.Store { return backwardReversed{s} }, "pages/BackwardTakesTheFarEnd", historiesToo},
	{"one limit for each owner", func(s *oracle.Store) storage.Store { return oneLimit{s} }, "pages/AQueryThatOccursTwiceIsAnsweredTwice", historiesToo},
	{"a boundary must be listed", func(s *oracle.Store) storage.Store { return boundaryListed{s} }, "pages/ABoundaryMayBeGone", historiesToo},
	{"neighbours descend", func(s *oracle.Store) storage.Store { return neighboursDescend{s} }, "neighbours/TheyAscend", historiesToo},
	{"ended contexts are served", func(s *oracle.Store) storage.Store { return deaf{s} }, "cancellation/ReadsAreRefused", promiseOnly},
	{"edges make it not empty", func(s *oracle.Store) storage.Store { return emptyByCounts{s} }, "lifecycle/EdgesAloneLeaveItEmpty", promiseOnly},

	{"a taken identity is given", func(s *oracle.Store) storage.Store { return identitiesGiven{s} }, "identities/ItStaysThatOfItsUser", promiseOnly},
	{"an identity is answered once", func(s *oracle.Store) storage.Store { return identityAnsweredOnce{s} }, "identities/ALinkIsFound", promiseOnly},
	{"identities are linked without a lock", func(s *oracle.Store) storage.Store { return identityRace{s} }, "identities/OneOfManyGetsIt", lostRace},
	{"anybody unlinks an identity", func(s *oracle.Store) storage.Store { return identityUnlinked{s, true} }, "identities/ItIsUnlinkedFromItsUserOnly", promiseOnly},
	{"identities are unlinked in name only", func(s *oracle.Store) storage.Store { return identityUnlinked{s, false} }, "identities/UnlinkedItStandsForNobody", promiseOnly},
	{"identities are listed by their digests", func(s *oracle.Store) storage.Store { return identitiesByDigest{s} }, "identities/AUsersAreListedInTheOrderOfTheirLinks", promiseOnly},
	{"a user has any number of identities", func(s *oracle.Store) storage.Store { return identitiesUnbounded{s} }, "identities/ThereIsABound", promiseOnly},
	{"restored identities are taken away", func(s *oracle.Store) storage.Store { return identitiesRestoredOver{s} }, "identities/RestoredTheyAreAsElsewhere", promiseOnly},
	{"an identity is linked once", func(s *oracle.Store) storage.Store { return identityOnce{s} }, "identities/AgainItChangesNothing", promiseOnly},
	{"issuer and subject are one text", func(s *oracle.Store) storage.Store { return identityAsText{s, oneText} }, "identities/TheyAreComparedExactly", promiseOnly},
	{"texts of identities are made to fit", func(s *oracle.Store) storage.Store { return identityAsText{s, cutText} }, "identities/WhatIsNoneIsNotFound", promiseOnly},
	{"a user has one identity", func(s *oracle.Store) storage.Store {
		return &oneIdentity{Store: s, has: map[storage.UserID]storage.Identity{}}
	}, "identities/AUserMayHaveSeveral", promiseOnly},
	{"identities outlive their users", func(s *oracle.Store) storage.Store {
		return &identitiesStay{Store: s, linked: map[storage.Identity]storage.UserID{}}
	}, "identities/AUserWhoIsErasedHasNone", promiseOnly},

	{"handles are not unique", func(s *oracle.Store) storage.Store { return handleForAll{s} }, "creation/ATakenHandleIsRefused", historiesToo},
	{"existing users are overwritten", func(s *oracle.Store) storage.Store { return newOverwrites(s) }, "creation/AnExistingUserIsNotChanged", historiesToo},
	{"new users have no counts", func(s *oracle.Store) storage.Store { return countsByEdges{s} }, "creation/CountsAreMadeWithTheUser", historiesToo},
	{"counts belong to users", func(s *oracle.Store) storage.Store { return countsOfUsers{s} }, "applyCounts/OwnersWithoutAUserAreCounted", historiesToo},
	{"blocks are counted", func(s *oracle.Store) storage.Store { return newMiscounts(s, countBlocks) }, "applyCounts/CountsFollowTheType", historiesToo},
	{"edges given twice are counted twice", func(s *oracle.Store) storage.Store { return newMiscounts(s, countTwice) }, "applyCounts/EdgesOfOnePairAreCountedOnce", historiesToo},
	{"any tombstone counts down", func(s *oracle.Store) storage.Store { return newMiscounts(s, countTombstones) }, "applyCounts/ATombstoneForNothingCountsNothing", historiesToo},
	{"the version stays", func(s *oracle.Store) storage.Store { return versionStays{s} }, "applyCounts/TheVersionRisesWithEveryChange", historiesToo},
	{"the version always rises", func(s *oracle.Store) storage.Store { return newVersionRises(s) }, "applyCounts/TheVersionRisesForChangedOwnersOnly", historiesToo},
	{"the same time is newer", func(s *oracle.Store) storage.Store { return sameTimeIsNewer{s} }, "apply/AnEdgeOfTheSameTimeIsIgnored", historiesToo},
	{"tombstones are absent", func(s *oracle.Store) storage.Store { return tombstonesAreAbsent{s} }, "apply/IfAbsentYieldsToAnyRow", historiesToo},
	{"a tombstone for nothing is dropped", func(s *oracle.Store) storage.Store { return dropsTombstones{s} }, "apply/AMissingEdgeIsWritten", historiesToo},
	{"both sides are written", func(s *oracle.Store) storage.Store { return writesBoth{s} }, "apply/TheSidesAreIndependent", historiesToo},
	{"only the last of a pair is judged", func(s *oracle.Store) storage.Store { return lastOfPair{s} }, "apply/EdgesOfOnePairAreJudgedInTurn", historiesToo},
	{"counts without a lock", func(s *oracle.Store) storage.Store { return newUnlockedCounts(s) }, "concurrency/ApplyKeepsRowsAndCountsExact", lostRace},
	{"handles are claimed without a lock", func(s *oracle.Store) storage.Store { return unlockedClaim{s} }, "concurrency/OneHandleGoesToOneUser", lostRace},

	{"following again moves the edge", func(s *oracle.Store) storage.Store { return followsAgain{s} }, "changes/ARowOfTheWantedTypeKeepsItsTimeAndPosition", historiesToo},
	{"the clock alone gives the time", func(s *oracle.Store) storage.Store { return clockOnly{s} }, "changes/TheTimeRisesWhenTheClockGoesBack", historiesToo},
	{"ending nothing leaves a tombstone", func(s *oracle.Store) storage.Store { return endsNothing{s} }, "changes/EndingNothingWritesNothing", historiesToo},
	{"only the last change of a user is judged", func(s *oracle.Store) storage.Store { return lastChange{s} }, "changes/ChangesOfOneUserAreJudgedInTurn", historiesToo},
	{"the limit refuses whole calls", func(s *oracle.Store) storage.Store { return wholeCallLimited{s} }, "changes/OnlyWhatIsBeyondTheLimitIsRefused", historiesToo},
	{"the limit of blocks counts nothing", func(s *oracle.Store) storage.Store { return unlimitedBlocks{s} }, "blocking/OnlyBlocksBeyondTheLimitAreRefused", historiesToo},
	{"the version rises with every call", func(s *oracle.Store) storage.Store { return newChangesRaise(s) }, "changes/TheVersionRisesOnceWithACall", historiesToo},
	{"each change is a transaction", func(s *oracle.Store) storage.Store { return oneByOne{s} }, "changes/TheVersionRisesOnceWithACall", promiseOnly},
	{"anybody changes edges", func(s *oracle.Store) storage.Store { return anybodyChanges{s} }, "changes/NobodyChangesNothing", historiesToo},
	{"the inverse is always written", func(s *oracle.Store) storage.Store { return alwaysInverse{s} }, "inverse/WithoutTheOptionItIsNotWritten", historiesToo},
	{"the inverse is reported but not written", func(s *oracle.Store) storage.Store { return inverseClaimed{s} }, "inverse/WhatIsLocalIsWritten", historiesToo},
	{"the inverse is written but not reported", func(s *oracle.Store) storage.Store { return inverseUnreported{s} }, "inverse/WhatIsLocalIsWritten", historiesToo},
	{"the inverse is written over newer rows", func(s *oracle.Store) storage.Store { return inverseOverwrites{s} }, "inverse/ANewerRowStays", historiesToo},
	{"the limit is judged without a lock", func(s *oracle.Store) storage.Store { return unlockedLimit{s} }, "changesAtOnce/TheLimitHolds", lostRace},
	{"callers hear of deadlocks", func(s *oracle.Store) storage.Store { return reportsDeadlocks{s, new(sync.Mutex)} }, "changesAtOnce/ManyMayFollowMany", lostRace},
	{"edges are judged without a lock", func(s *oracle.Store) storage.Store { return staleRows{s} }, "changesAtOnce/OnePairHasOneStateAfterAnother", lostRace},
	{"claims never lapse", func(s *oracle.Store) storage.Store { return claimsNeverLapse{s} }, "accounts/AnOldClaimWithoutAUserIsTakenOver", promiseOnly},
	{"claims lapse at once", func(s *oracle.Store) storage.Store { return claimsLapseAtOnce{s} }, "accounts/AYoungClaimWithoutAUserIsKept", promiseOnly},
	{"old users lose their handles", func(s *oracle.Store) storage.Store { return oldUsersLoseHandles{s} }, "accounts/AnOldClaimWithAUserIsKept", historiesToo},
	{"existing users claim handles", func(s *oracle.Store) storage.Store { return existingUsersClaim{s} }, "accounts/AnExistingUserIsRefused", historiesToo},
	{"handles are registered without a lock", func(s *oracle.Store) storage.Store { return unlockedRegister{s} }, "accounts/OneHandleIsRegisteredOnce", lostRace},
	{"whoever is late keeps a claim", func(s *oracle.Store) storage.Store { return keepsClaims{s} }, "accounts/AUserWhoIsMadeAtOnceHasOneHandle", promiseOnly},
	{"without a password there is no user", func(s *oracle.Store) storage.Store { return noPasswordNoUser{s} }, "accounts/UsersMadeOtherwiseHaveNoPassword", historiesToo},
	{"any password is replaced", func(s *oracle.Store) storage.Store { return anyPasswordGoes{s} }, "accounts/OnlyTheOldPasswordIsReplaced", historiesToo},
	{"nobody hears of a password", func(s *oracle.Store) storage.Store { return passwordsInSilence{s} }, "accounts/ChangedPasswordsAreListed", historiesToo},
	{"nobody may have a password", func(s *oracle.Store) storage.Store { return passwordsOfNobody{s} }, "accounts/NobodyHasNoPasswordToReplace", historiesToo},
	{"an empty text is none", func(s *oracle.Store) storage.Store { return emptyIsNil{s} }, "accounts/AnEmptyTextIsAText", historiesToo},
	{"profiles leave the version", func(s *oracle.Store) storage.Store { return newProfileKeepsVersion(s) }, "accounts/TheVersionRisesWithTheProfile", historiesToo},
	{"an owner gets another slot", func(s *oracle.Store) storage.Store { return anotherSlot{s} }, "leases/AnOwnerKeepsItsSlot", promiseOnly},
	{"leases last for ever", func(s *oracle.Store) storage.Store { return leasesLastForEver{s} }, "leases/AnExpiredSlotIsTaken", promiseOnly},
	{"a release takes the slot from its next owner", func(s *oracle.Store) storage.Store { return releasesSlot{s} }, "leases/AReleasedSlotIsTaken", promiseOnly},
	{"a release takes a slot that has been renewed", func(s *oracle.Store) storage.Store { return releasesRenewed{s} }, "leases/ALeaseThatHasBeenRenewedIsNotReleased", promiseOnly},
	{"slots are leased without a lock", func(s *oracle.Store) storage.Store { return unlockedLeases{s} }, "leases/ManyMayAskAtOnce", lostRace},
	{"an unknown checkpoint cannot be deleted", func(s *oracle.Store) storage.Store { return unknownIsAnError{s} }, "checkpoints/AnUnknownNameHasNone", promiseOnly},
	{"an empty checkpoint is none", func(s *oracle.Store) storage.Store { return emptyIsNone{s} }, "checkpoints/TheValueComesBack", promiseOnly},
	{"the first checkpoint stays", func(s *oracle.Store) storage.Store { return firstValueStays{s} }, "checkpoints/TheLastValueCounts", promiseOnly},
	{"names of checkpoints have no case", func(s *oracle.Store) storage.Store { return namesFold{s} }, "checkpoints/NamesAreApart", promiseOnly},
	{"deleted checkpoints are empty", func(s *oracle.Store) storage.Store { return deletedIsEmpty{s} }, "checkpoints/WhatIsDeletedIsForgotten", promiseOnly},
	{"checkpoints share the caller's bytes", func(s *oracle.Store) storage.Store { return sharesValues{s, map[string][]byte{}} }, "checkpoints/ValuesAreCopied", promiseOnly},
	{"a bundle loses its last key", func(s *oracle.Store) storage.Store { return lastKeyForgotten{s} }, "bundles/EachKeyIsAnsweredAsAlone", promiseOnly},
	{"a bundle mixes the sides up", func(s *oracle.Store) storage.Store { return mixesUp{s} }, "bundles/KindsTogetherAreAnsweredAsApart", promiseOnly},
	{"a bundle answers what has been answered", func(s *oracle.Store) storage.Store { return answersAgain{s} }, "bundles/WhatIsAnsweredIsLeftAsItIs", promiseOnly},
	{"half of a kind is at hand", func(s *oracle.Store) storage.Store { return halfAtHand{s} }, "bundles/AtHandIsAllOrNothing", promiseOnly},
	{"bundles outlive their context", func(s *oracle.Store) storage.Store { return deafBundles{s} }, "bundles/ErrorsAreOfEveryKey", promiseOnly},
	{"the owner before comes again", func(s *oracle.Store) storage.Store { return ownersTwice{s} }, "comparer/OwnersComeInOrderOnTheirShard", promiseOnly},
	{"digests are of all classes", func(s *oracle.Store) storage.Store { return digestsOfAllClasses{s} }, "comparer/DigestsAreTheSumsOfTheRows", promiseOnly},
	{"digests have every tombstone", func(s *oracle.Store) storage.Store { return countsEveryTombstone{s} }, "comparer/ATombstoneAtTimeZeroIsNoRow", promiseOnly},
	{"ranges begin an owner early", func(s *oracle.Store) storage.Store { return rangesBeginEarly{s} }, "comparer/ARangeEndsWithItsLastOwner", promiseOnly},
	{"rows are of all groups", func(s *oracle.Store) storage.Store { return rowsOfAllGroups{s} }, "comparer/RowsAreThoseOfTheGroups", promiseOnly},
	{"blocks are forbidden", func(s *oracle.Store) storage.Store { return blocksAreForbidden{s} }, "comparer/NothingIsWrongThatIsRight", promiseOnly},
	{"what is missing is not repaired", func(s *oracle.Store) storage.Store { return changedRepairs{s, onlyRows} }, "repairer/AMissingRowIsWritten", promiseOnly},
	{"newer rows are not repaired", func(s *oracle.Store) storage.Store { return changedRepairs{s, onlyNewer} }, "repairer/ANewerRowIsWrittenOver", promiseOnly},
	{"any row is repaired", func(s *oracle.Store) storage.Store { return changedRepairs{s, observesItself} }, "repairer/ARowThatHasChangedStays", promiseOnly},
	{"what is taken away is newer", func(s *oracle.Store) storage.Store { return changedRepairs{s, newTombstones} }, "repairer/WhatIsTakenAwayMayComeAgain", promiseOnly},
	{"only follows are repaired", func(s *oracle.Store) storage.Store { return changedRepairs{s, alwaysFollows} }, "repairer/EitherTableNamesTheRelation", promiseOnly},
	{"what follows from a repair is not reported", func(s *oracle.Store) storage.Store { return secretRepairs{s} }, "repairer/ABlockEndsTheFollowBack", promiseOnly},
	{"the first repair decides", func(s *oracle.Store) storage.Store { return allOrNothing{s} }, "repairer/EachIsJudgedByItself", promiseOnly},
	{"to count again raises versions", func(s *oracle.Store) storage.Store { return recountsRaiseVersions{s} }, "repairer/ToCountAgainLeavesRightCounts", promiseOnly},
	{"the log has one side", func(s *oracle.Store) storage.Store { return logsOneSide{s} }, "relationLog/EveryRowThatIsAppliedIsThereOnce", historiesToo},
	{"pruned entries are skipped", func(s *oracle.Store) storage.Store { return prunedInSilence{s} }, "relationLog/PrunedEntriesAreMissed", promiseOnly},
	{"an emptied log misses nothing", func(s *oracle.Store) storage.Store { return emptiedInSilence{s} }, "relationLog/AnEmptiedLogKnowsWhatIsMissing", promiseOnly},
	{"the log is read to its end", func(s *oracle.Store) storage.Store { return readsToTheEnd{s} }, "relationLog/ReadingStopsAtTheLimit", promiseOnly},
	{"blockers follow whom they block", func(s *oracle.Store) storage.Store { return blockersFollow{s} }, "blocking/FollowsAreRefusedBothWays", historiesToo},
	{"what follows from a block is not reported", func(s *oracle.Store) storage.Store { return blocksAreSecret{s} }, "blocking/AnAppliedBlockEndsTheFollowBack", historiesToo},
	{"what followed is reported once", func(s *oracle.Store) storage.Store { return reportedOnce{s} }, "blocking/ARedeliveredBlockReportsAgain", historiesToo},
	{"what is past reports nothing", func(s *oracle.Store) storage.Store { return pastIsSilent{s} }, "blocking/ABlockThatIsPastReportsWhatItHasEnded", promiseOnly},
	{"late blocks end follows", func(s *oracle.Store) storage.Store { return remoteUndo{s} }, "blocking/ALateBlockDoesNothing", historiesToo},
	{"own blocks keep requests", func(s *oracle.Store) storage.Store { return keepsOwnRequests{keepsRequests{s}} }, "blocking/AnOwnBlockCancelsThePendingRequest", historiesToo},
	{"applied blocks keep requests", func(s *oracle.Store) storage.Store { return keepsBlockedRequests{keepsRequests{s}} }, "blocking/AnAppliedBlockCancelsThePendingRequest", historiesToo},
	{"an unfollow ends a block", func(s *oracle.Store) storage.Store { return unfollowEndsBlocks{s} }, "blocking/AnUnfollowDoesNotEndABlock", historiesToo},
	{"what no longer waits is accepted", func(s *oracle.Store) storage.Store { return acceptsAnything{s} }, "followRequests/EveryChangeFromEveryType", historiesToo},
	{"requests have no limit", func(s *oracle.Store) storage.Store { return requestsUnlimited{s} }, "followRequests/TheyCountForTheLimit", historiesToo},
	{"an unblock ends a follow", func(s *oracle.Store) storage.Store { return unblockEndsFollows{s} }, "blocking/AnUnblockDoesNotEndAFollow", historiesToo},
	{"imports write follows of a blocker", func(s *oracle.Store) storage.Store { return importsAnything{s} }, "blocking/AForwardFollowOfABlockedOwnerIsNotWritten", historiesToo},
	{"local blocks do not report the follow back", func(s *oracle.Store) storage.Store { return inlineStopsShort{s} }, "blocking/WhatIsLocalEndsAtOnce", historiesToo},
	{"the log has follows only", func(s *oracle.Store) storage.Store { return logsFollowsOnly{s} }, "relationLog/EveryRowOfARequestIsThereOnce", historiesToo},
	{"lists have one type", func(s *oracle.Store) storage.Store { return oneTypeOnly{s} }, "pages/TheTypeSelectsTheList", historiesToo},
	{"friends are as many as they could be", func(s *oracle.Store) storage.Store { return friendsByMinimum{s} }, "friendCounts/EveryWriteKeepsThem", historiesToo},
	{"large batches make no friends", func(s *oracle.Store) storage.Store { return bulkForgetsFriends{s, map[storage.UserID]int64{}} }, "friendCounts/BatchesCountEachFriendOnce", promiseOnly},

	{"requests last for ever", func(s *oracle.Store) storage.Store {
		return changedOptions{s, func(o *options) { o.TTL = 1 << 60 }}
	}, "requests/ARequestExpires", historiesToo},
	{"there is no pause", func(s *oracle.Store) storage.Store { return changedOptions{s, func(o *options) { o.Pause = 0 }} }, "requests/AfterADeclineThereIsAPause", promiseOnly},
	{"any number may be pending", func(s *oracle.Store) storage.Store {
		return changedOptions{s, func(o *options) { o.MaxPending = 0 }}
	}, "requests/SoManyMayBePending", historiesToo},
	{"friends are beyond the limit", func(s *oracle.Store) storage.Store {
		return changedOptions{s, func(o *options) { o.MaxFollowing = 0 }}
	}, "requests/TheLimitOfFollowingsHolds", promiseOnly},
	{"requests stay on their side", func(s *oracle.Store) storage.Store {
		return changedOptions{s, func(o *options) { o.Inverse = false }}
	}, "friendships/WhatIsLocalIsWrittenAtOnce", historiesToo},
	{"requests are always local", func(s *oracle.Store) storage.Store {
		return changedOptions{s, func(o *options) { o.Inverse = true }}
	}, "friendships/WithoutTheOptionTheInboxIsNotWritten", historiesToo},
	{"asking again makes a new request", func(s *oracle.Store) storage.Store { return asksAgain{s} }, "requests/EveryActFromEveryState", historiesToo},
	{"accepting twice is a mistake", func(s *oracle.Store) storage.Store { return acceptsOnce{s} }, "requests/EveryActFromEveryState", historiesToo},
	{"removing leaves the own follow", func(s *oracle.Store) storage.Store { return removesHalf{s} }, "requests/RemovingEndsTheFollow", historiesToo},
	{"messages stay", func(s *oracle.Store) storage.Store {
		return longMessages{s, new(sync.Mutex), map[storage.Pair]string{}}
	}, "requests/TheMessageStaysWhileItIsPending", promiseOnly},
	{"requests are judged without a lock", func(s *oracle.Store) storage.Store { return unlockedRequests{s} }, "requests/OneOfManyActsWins", lostRace},
	{"friends ask each other", func(s *oracle.Store) storage.Store { return friendsAsk{s} }, "requests/FriendsByTwoFollowsDoNotAsk", promiseOnly},
	{"accepted requests make nobody follow", func(s *oracle.Store) storage.Store { return acceptedInVain{s} }, "friendships/AnAcceptedRequestMakesTheOtherFollow", historiesToo},
	{"accepted requests make the other follow again", func(s *oracle.Store) storage.Store { return eventsInsist{s, storage.Accepted, true} }, "friendships/ItDoesSoOnce", historiesToo},
	{"late removals end newer follows", func(s *oracle.Store) storage.Store { return eventsInsist{s, storage.Removed, false} }, "friendships/LateEventsUndoNothing", historiesToo},
	{"accepted requests are stronger than blocks", func(s *oracle.Store) storage.Store { return eventsInsist{s, storage.Accepted, false} }, "friendships/ABlockIsStronger", historiesToo},
	{"crossing requests wait", func(*oracle.Store) storage.Store { return oracle.New(oracle.RequestTTL(-time.Hour)) }, "friendships/RequestsThatCrossAcceptEachOther", historiesToo},
	{"crossing requests do not expire", func(*oracle.Store) storage.Store { return oracle.New(oracle.RequestTTL(1 << 60)) }, "friendships/AnExpiredRequestDoesNotCross", historiesToo},
	{"accepted requests talk for ever", func(s *oracle.Store) storage.Store { return endlessTalk{s} }, "settling/OnceAllHasArrivedItFitsTogether", promiseOnly},
	{"blocks are not reported where users act at once", func(s *oracle.Store) storage.Store { return blocksAreSecret{s} }, "settling/SoItDoesWhereManyActAtOnce", lostRace},
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
			storagetest.Run(t, func(*testing.T) storage.Store { return wrong.open(oracle.New()) })
			return
		}
	}
	t.Fatalf("no store with the mistake %q", mistake)
}

// runChild runs some of this binary's tests and reports whether they failed. If the process ends
// in any other way than with success or failed tests, the calling test ends.
func runChild(t *testing.T, mistake, tests string) (failed bool, output string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
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
