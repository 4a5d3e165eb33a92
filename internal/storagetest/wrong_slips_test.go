package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Slips are mistakes that any method may make: a part of what it is given, or of what it answers, is lost, turned or one more. Each has to be
// noticed by some promises of a topic.
var slipMistakes = mistakesOf([]mistake{
	{"SetPassword: answered ErrPasswordChanged is lost", nil, "accounts/OnlyTheOldPasswordIsReplaced", historiesToo},
	{"SetPassword: answered ErrUserUnknown is lost", nil, "accounts/NobodyHasNoPasswordToReplace", historiesToo},
	{"SetPassword: PasswordChange EndsTokens is lost", nil, "accounts/ChangedPasswordsAreListed", historiesToo},
	{"UpdateProfile: ProfileChange Bio is lost", nil, "accounts/AnEmptyTextIsAText", historiesToo},
	{"UpdateProfile: ProfileChange Undiscoverable is lost", nil, "profile/WhatIsGivenOfTheVisibilityIsChanged", promiseOnly},
	{"Register: User CreatedAt is lost", nil, "accounts/AnOldClaimWithoutAUserIsTakenOver", promiseOnly},
	{"Register: User CreatedAt is one more", nil, "accounts/AYoungClaimWithoutAUserIsKept", promiseOnly},
	{"CreateUsers: User FollowersVisibility is lost", nil, "profile/VisibilityComesBack", promiseOnly},
	{"CreateUsers: UserState is lost", nil, "creation/StatesAreMadeWithTheUser", promiseOnly},
	{"CreateUsers: answered ErrHandleTaken is lost", nil, "creation/ATakenHandleIsRefused", historiesToo},
	{"CreateUsers: answered ErrIDUnusable is lost", nil, "creation/SomeIDsAreNobodys", promiseOnly},
	{"CreateUsers: answered ErrIDUnusable is lost", nil, "erase/LateEventsBringNothingBack", promiseOnly},
	{"SetState: answered bool is turned", nil, "states/OneLeadsToAnother", promiseOnly},
	{"SetState: answered ErrUserUnknown is lost", nil, "states/NobodyHasNone", promiseOnly},
	{"SetState: answered ErrForbidden is lost", nil, "states/NothingElseDoes", promiseOnly},
	{"SetState: answered ErrForbidden is lost", nil, "erase/NothingLeadsBack", promiseOnly},
	{"Erase: answered ErrForbidden is lost", nil, "erase/OnlyOneWhoIsBeingDeletedIsErased", promiseOnly},
	{"Erase: Micros is lost", nil, "erase/TheHandleRests", promiseOnly},
	{"Erase: Micros is one more", nil, "erase/TheHandleRests", promiseOnly},
	{"MarkActive: Day is lost", nil, "popular/MarkingChangesNothingElse", promiseOnly},
	{"Moderate: answered ErrUserUnknown is lost", nil, "moderation/NobodyIsSuspended", promiseOnly},
	{"LinkIdentity: answered ErrKeyTaken is lost", nil, "identities/ItStaysThatOfItsUser", promiseOnly},
	{"LinkIdentity: answered ErrLimitReached is lost", nil, "identities/ThereIsABound", promiseOnly},
	{"LinkIdentity: Micros is lost", nil, "identities/AUsersAreListedInTheOrderOfTheirLinks", promiseOnly},
	{"LinkIdentity: Identity Issuer is lost", nil, "identities/TheyAreComparedExactly", promiseOnly},
	{"UnlinkIdentity: UserID is lost", nil, "identities/UnlinkedItStandsForNobody", promiseOnly},
	{"ChangeEdges: ended contexts are served", nil, "cancellation/NoPostIsWritten", promiseOnly},
	{"ChangeEdges: EdgeChange Detail Attributes is lost", nil, "relations/ItIsMadeChangedAndEnded", promiseOnly},
	{"ChangeEdges: EdgeChange IfDue is lost", nil, "relations/TheyEndByThemselves", promiseOnly},
	{"ChangeEdges: EdgeChange With is lost", nil, "relations/AChangeGoesWithTheOneBefore", promiseOnly},
	{"ChangeEdges: ChangeOptions MaxBlocks is lost", nil, "blocking/OnlyBlocksBeyondTheLimitAreRefused", historiesToo},
	{"ChangeEdges: ChangeOptions MaxFollowing is lost", nil, "followRequests/TheyCountForTheLimit", historiesToo},
	{"ChangeEdges: ChangeOptions MaxFollowing is lost", nil, "requests/TheLimitOfFollowingsHolds", promiseOnly},
	{"ChangeEdges: ChangeOptions MaxPending is lost", nil, "requests/SoManyMayBePending", historiesToo},
	{"ChangeEdges: ChangeOptions Pause is lost", nil, "requests/AfterADeclineThereIsAPause", promiseOnly},
	{"ChangeEdges: ChangeOptions TTL is lost", nil, "requests/ARequestExpires", historiesToo},
	{"ChangeEdges: ChangeOptions Peace is lost", nil, "favorites/ABlockForbidsThem", promiseOnly},
	{"ChangeEdges: ChangeOptions Peace is lost", nil, "relations/ABlockForbidsThoseOfPeace", promiseOnly},
	{"ChangeEdges: ChangeOptions Inverse is turned", nil, "inverse/WithoutTheOptionItIsNotWritten|WhatIsLocalIsWritten", historiesToo},
	{"ChangeEdges: ChangeOptions Inverse is turned", nil, "friendships/WhatIsLocalIsWrittenAtOnce|WithoutTheOptionTheInboxIsNotWritten", historiesToo},
	{"ChangeEdges: ChangeOptions Inverse is turned", nil, "favorites/TheOtherSideIsWrittenAtOnce", promiseOnly},
	{"ChangeEdges: answered Value Inverse is lost", nil, "inverse/WhatIsLocalIsWritten", historiesToo},
	{"ChangeEdges: answered Value Also is lost", nil, "blocking/WhatIsLocalEndsAtOnce", historiesToo},
	{"ChangeEdges: answered ErrForbidden is lost", nil, "blocking/FollowsAreRefusedBothWays", historiesToo},
	{"ChangeEdges: answered ErrListUnknown is lost", nil, "userLists/MembersNeedAList", promiseOnly},
	{"ChangeEdges: answered ErrUserUnknown is lost", nil, "changes/NobodyChangesNothing", historiesToo},
	{"ChangeEdges: answered ErrUserUnknown is lost", nil, "favorites/NobodyFavoritesNothing", promiseOnly},
	{"SetMark: answered ErrNoEdge is lost", nil, "marks/OnlyAFollowIsMarked", promiseOnly},
	{"SetMark: answered ErrLimitReached is lost", nil, "marks/TheLimitOfSpecialsHolds", promiseOnly},
	{"SetMark: answered ErrAttributesTooLong is lost", nil, "attributes/TooLongTheyAreRefused", promiseOnly},
	{"SetMark: answered bool is turned", nil, "marks/TheVersionRisesWithAChange", promiseOnly},
	{"SetMark: ended contexts are served", nil, "cancellation/NothingBesideEdgesIsChanged", promiseOnly},
	{"Publish: answered ErrUserUnknown is lost", nil, "posts/NobodyPublishesNothing", promiseOnly},
	{"Publish: answered ErrPostUnknown is lost", nil, "posts/WhatIsDeletedIsGone", promiseOnly},
	{"AddComment: answered ErrForbidden is lost", nil, "comments/ABlockForbidsThem", promiseOnly},
	{"DeletePost: ended contexts are served", nil, "cancellation/NoPostIsWritten", promiseOnly},
	{"CreateList: answered ErrLimitReached is lost", nil, "userLists/TheirNumberIsBounded", promiseOnly},
	{"CreateList: answered ErrUserUnknown is lost", nil, "userLists/NobodyHasLists", promiseOnly},
	{"UpdateList: answered bool is turned", nil, "userLists/TheyAreCreatedChangedAndDeleted", promiseOnly},
	{"Lease: Micros is lost", nil, "leases/AnExpiredSlotIsTaken", promiseOnly},
	{"Release: Micros is lost", nil, "leases/ALeaseThatHasBeenRenewedIsNotReleased", promiseOnly},
	{"ReadLog: int 2 is one more", nil, "relationLog/ReadingStopsAtTheLimit", promiseOnly},
	{"ReadLog: answered ErrLogPruned is lost", nil, "relationLog/PrunedEntriesAreMissed|AnEmptiedLogKnowsWhatIsMissing", promiseOnly},
	{"NextOwner: UserID is lost", nil, "comparer/OwnersComeInOrderOnTheirShard", promiseOnly},
	{"OwnerOfRow: UserID is lost", nil, "comparer/RowsLeadToTheirOwners", promiseOnly},
	{"Digests: Choice is lost", nil, "comparer/DigestsAreTheSumsOfTheRows", promiseOnly},
	{"OwnerDigests: OwnerRange After is lost", nil, "comparer/OwnerDigestsAreOfWhatThereIs", promiseOnly},
	{"GroupRows: OwnerRange After is lost", nil, "comparer/ARangeEndsWithItsLastOwner", promiseOnly},
	{"RepairInverse: Repair Want Type is lost", nil, "repairer/AMissingRowIsWritten", promiseOnly},
	{"RepairInverse: Repair Pair Item is lost", nil, "favorites/RepairsAreCounted", promiseOnly},
	{"RepairInverse: Repair Pair Item is lost", nil, "relations/RepairsAreCounted", promiseOnly},
	{"RepairInverse: answered Value Also is lost", nil, "repairer/ABlockEndsTheFollowBack", promiseOnly},
})

// mistakesOf finds the slips that have the names of mistakes.
func mistakesOf(named []mistake) []mistake {
	known := map[string]spoil{}
	for i, methods := 0, reflect.TypeFor[double.Methods](); i < methods.NumField(); i++ {
		slips(methods.Field(i).Type, func(name string, change func(args, results []reflect.Value)) {
			known[methods.Field(i).Name+": "+name] = func(_ *oracle.Store, w *double.Store) {
				method := reflect.ValueOf(&w.Instead).Elem().Field(i)
				right := reflect.ValueOf(method.Interface()).Call
				if method.Type().IsVariadic() {
					right = reflect.ValueOf(method.Interface()).CallSlice
				}
				method.Set(reflect.MakeFunc(method.Type(), func(args []reflect.Value) []reflect.Value {
					change(args, nil)
					results := right(args)
					change(nil, results)
					return results
				}))
			}
		})
	}
	for i := range named {
		if named[i].spoil = known[named[i].mistake]; named[i].spoil == nil {
			panic("no method slips so: " + named[i].mistake)
		}
	}
	return named
}

// slips visits those of methods of a type. A change is called with what is given, and then with what is answered.
func slips(method reflect.Type, visit func(name string, change func(args, results []reflect.Value))) {
	visit("ended contexts are served", func(args, _ []reflect.Value) {
		if args != nil {
			args[0] = reflect.ValueOf(context.WithoutCancel(args[0].Interface().(context.Context)))
		}
	})
	times := map[string]int{}
	for i := 1; i < method.NumIn(); i++ {
		name := typeName.ReplaceAllString(method.In(i).String(), "")
		if times[name]++; times[name] > 1 {
			name += fmt.Sprint(" ", times[name])
		}
		parts(method.In(i), name, func(name string, change func(reflect.Value)) {
			visit(name, func(args, _ []reflect.Value) { changePart(args, i, change) })
		})
	}
	for i := range method.NumOut() {
		name := typeName.ReplaceAllString(method.Out(i).String(), "")
		parts(method.Out(i), strings.TrimSuffix("answered "+name, " Result"), func(name string, change func(reflect.Value)) {
			visit(name, func(_, results []reflect.Value) { changePart(results, i, change) })
		})
	}
}

// storeErrors are those that say what cannot be done, by their names.
var storeErrors = map[string]error{
	"ErrHandleTaken": storage.ErrHandleTaken, "ErrIDUnusable": storage.ErrIDUnusable, "ErrUserUnknown": storage.ErrUserUnknown,
	"ErrPasswordChanged": storage.ErrPasswordChanged, "ErrLimitReached": storage.ErrLimitReached, "ErrForbidden": storage.ErrForbidden,
	"ErrNoEdge": storage.ErrNoEdge, "ErrPostUnknown": storage.ErrPostUnknown, "ErrKeyTaken": storage.ErrKeyTaken,
	"ErrListUnknown": storage.ErrListUnknown, "ErrAttributesTooLong": storage.ErrAttributesTooLong, "ErrLogPruned": storage.ErrLogPruned,
}

// typeName is what a type's name has beside its last word.
var typeName = regexp.MustCompile(`^\[\]|\w+\.|\[.*\]$`)

// changePart changes one of some values, as those of a call cannot be changed where they are.
func changePart(values []reflect.Value, i int, change func(reflect.Value)) {
	if values != nil {
		value := reflect.New(values[i].Type()).Elem()
		value.Set(values[i])
		change(value)
		values[i] = value
	}
}

// parts visits what may be wrong with a part of values of a type, or with all values of a list.
func parts(of reflect.Type, path string, visit func(name string, change func(reflect.Value))) {
	switch kind := of.Kind(); {
	case kind == reflect.Struct && of.NumField() > 0 && of.Field(0).IsExported():
		for i := range of.NumField() {
			parts(of.Field(i).Type, path+" "+of.Field(i).Name, func(name string, change func(reflect.Value)) {
				visit(name, func(v reflect.Value) { change(v.Field(i)) })
			})
		}
	case kind == reflect.Slice:
		parts(of.Elem(), path, func(name string, change func(reflect.Value)) {
			visit(name, func(list reflect.Value) {
				list.Set(reflect.AppendSlice(reflect.Zero(of), list)) // the caller's stays as it is
				for i := range list.Len() {
					change(list.Index(i))
				}
			})
		})
	case of == reflect.TypeFor[error]():
		for name, lost := range storeErrors {
			visit(path[:strings.LastIndexByte(path, ' ')+1]+name+" is lost", func(v reflect.Value) {
				if err, is := v.Interface().(error); is && errors.Is(err, lost) {
					v.SetZero()
				}
			})
		}
		return
	case kind == reflect.Bool:
		visit(path+" is turned", func(v reflect.Value) { v.SetBool(!v.Bool()) })
	case reflect.Zero(of).CanInt():
		visit(path+" is one more", func(v reflect.Value) { v.SetInt(v.Int() + 1) })
	}
	visit(path+" is lost", reflect.Value.SetZero)
}
