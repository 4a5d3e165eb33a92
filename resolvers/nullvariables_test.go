package resolvers_test

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"kith/graph/cursor"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// A variable that may be null, has a default and is null is valid, and the field that takes no null fails alone. Nothing panics.
func TestNullVariablesAreErrorsOfTheirFields(t *testing.T) {
	store := storeOf(t, 3)
	var log strings.Builder
	api := apitest.New(t, store, apitest.Options{Log: &log}).As(1)
	for query, want := range map[string]string{
		`query($b: String = "u") { searchUsers(text: $b) { nodes { id } } viewer { user { id } } }`:      `["searchUsers"] {"searchUsers":null,"viewer":{"user":{"id":"1"}}}`,
		`query($b: ID = 1) { relationship(from: $b, to: 2) { id } }`:                                     `["relationship"] {"relationship":null}`,
		`query($b: ID = 1) { node(id: $b) { id } }`:                                                      `["node"] {"node":null}`,
		`query($b: ID = 1) { users(by: {ids: [2, $b]}) { id } }`:                                         `["users"] null`,
		`query($b: ID = 1) { viewer { user { id relationship(to: $b) { id } } } }`:                       `["viewer","user","relationship"] {"viewer":{"user":{"id":"1","relationship":null}}}`,
		`query($b: Boolean = true) { viewer { user { id @skip(if: $b) } } users(by: {ids: 2}) { id } }`:  `["viewer","user"] {"viewer":null,"users":[{"id":"2"}]}`,
		`query($b: Boolean = true) { users(by: {ids: [1, 2]}) { id @include(if: $b) } }`:                 `["users",0] {"users":[null,null]}`,
		`query($b: Boolean = true) { nodes(ids: [1, 2]) { id @include(if: $b) } }`:                       `["nodes",0] {"nodes":[null,null]}`,
		`query($b: Boolean = true) { node(id: 1) { id @include(if: $b) } }`:                              `["node"] {"node":null}`,
		`mutation($b: Boolean = true) { follow(userId: 2) { changed @include(if: $b) } }`:                `["follow"] {"follow":null}`,
		`query($b: ListOrder = RECENT) { user(by: {id: 1}) { followings(orderBy: $b) { totalCount } } }`: `["user","followings"] $b is null, and ListOrder! takes no null`,
		`query($b: Boolean = true) { viewer @skip(if: $b) { user { id } } }`:                             `takes no null`,
	} {
		answer := api.Ask(query, apitest.Vars{"b": nil})
		path, data, _ := strings.Cut(want, " ")
		if data == "takes no null"[6:] {
			path, data = want, `"errors"`
		}
		check.Has(t, query, answer.Text, path, data, "BAD_USER_INPUT")
	}
	both := `query($b: ID = 1) { relationship(from: $b, to: $b) { id } }`
	refused := api.Ask(both, apitest.Vars{"b": nil}).Errors
	check.That(t, len(refused) == 2 && refused[0].Argument() != refused[1].Argument(), "%s is refused with %v", both, refused)
	types := `query($a: ID!, $b: Int, $c: Int) { user(by: {id: $a}) { followings(first: $b, last: $c) { totalCount } } }`
	answer := api.Ask(types, apitest.Vars{"b": "x", "c": 1})
	check.That(t, len(answer.Errors) == 2 && answer.Data == nil, "%s is answered %s", types, answer.Text)
	check.Lacks(t, "the log", log.String(), "panic", "masked")
	api.Ask(`{ relationship(from: 1, to: 2) { following } }`, nil).Is(`{"relationship": {"following": true}}`)
}

// A cursor that somebody has made up may claim any number of users before it. The total is an Int, and the list goes on.
func TestMadeUpCursorsMakeNoNegativeTotals(t *testing.T) {
	store := storeOf(t, 12)
	for from := storage.UserID(1); from <= 12; from++ {
		for to := storage.UserID(1); to <= 12; to++ {
			if from != to && (from+3*to)%5 > 1 {
				apitest.Follow(t, store, from, to)
			}
		}
	}
	api := apitest.New(t, store, apitest.Options{}).As(1)
	type page struct {
		TotalCount int64
		PageInfo   struct{ EndCursor string }
	}
	for field, place := range map[string]int{
		"user(by: {id: 1}).friends": 3, "user(by: {id: 8}).notFollowingBack": 3, "user(by: {id: 2}).notFollowedBack": 3,
		"user(by: {id: 1}).commonFollowings with: 2": 3, "user(by: {id: 1}).commonFollowers with: 2": 3, "people where: {followersOf: 2}": 2,
		"user(by: {id: 1}).commonFollowings with: 2, orderBy: RECENT": 3, "user(by: {id: 1}).commonFollowers with: 2, orderBy: RECENT": 3,
	} {
		owner, list, isBelow := strings.Cut(field, ".")
		if !isBelow {
			owner, list = "", field
		}
		name, arguments, _ := strings.Cut(list, " ")
		path, _, _ := strings.Cut(owner, "(")
		query := `query($after: String) { ` + name + `(first: 1, after: $after ` + arguments + `) { totalCount pageInfo { endCursor } } }`
		if isBelow {
			query, path = strings.Replace(query, "{", "{ "+owner+" {", 1)+" }", path+"."
		}
		ask := func(after any) page {
			return apitest.Into[page](api.Ask(query, apitest.Vars{"after": after}).Whole(), path+name)
		}
		raw, err := base64.RawURLEncoding.DecodeString(ask(nil).PageInfo.EndCursor)
		must.That(t, err == nil && len(raw) > 0, "%v: %s, %v", field, raw, err)
		var numbers []int64
		for b := raw[1:]; len(b) > 0; {
			n, size := binary.Uvarint(b)
			numbers, b = append(numbers, int64(n)), b[size:]
		}
		must.Equal(t, field, numbers[place], 1)
		for _, found := range []int64{1<<30 - 1, 1 << 30, 1<<31 - 1, 1<<31 + 5, 1<<63 - 2, 1<<63 - 1} {
			numbers[place] = found
			after := (*cursor.Sealer)(nil).Encode(cursor.Kind(raw[0]), numbers...)
			for pages := 0; pages < 2 && after != ""; pages++ {
				got := ask(after)
				check.That(t, got.TotalCount >= 2 && got.TotalCount < 1<<31-1, "%s, %d: %+v", field, found, got)
				after = got.PageInfo.EndCursor
			}
		}
	}
}
