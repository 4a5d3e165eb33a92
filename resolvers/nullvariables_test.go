package resolvers_test

import (
	"strings"
	"testing"

	"kith/graph/cursor"
	"kith/internal/apitest"
	"kith/storage/memory"
)

// A variable that may be null, has a default and is null is valid, and the field that takes no null fails alone. Nothing panics.
func TestNullVariablesAreErrorsOfTheirFields(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, 3)
	var log strings.Builder
	api := apitest.New(t, store, apitest.Options{Log: &log}).As(1)
	for query, want := range map[string]string{
		`query($b: ID = 1) { user(id: $b) { id } viewer { id } }`:                         `["user"] {"user":null,"viewer":{"id":"1"}}`,
		`query($b: String = "u1") { userByHandle(handle: $b) { id } }`:                    `["userByHandle"] {"userByHandle":null}`,
		`query($b: ID = 1) { relationship(from: $b, to: 2) { id } }`:                      `["relationship"] {"relationship":null}`,
		`query($b: ID = 1) { node(id: $b) { id } }`:                                       `["node"] {"node":null}`,
		`query($b: ID = 1) { users(ids: [2, $b]) { id } }`:                                `["users"] null`,
		`query($b: ID = 1) { viewer { id relationship(to: $b) { id } } }`:                 `["viewer","relationship"] {"viewer":{"id":"1","relationship":null}}`,
		`query($b: Boolean = true) { viewer { id @skip(if: $b) } users(ids: 2) { id } }`:  `["viewer"] {"viewer":null,"users":[{"id":"2"}]}`,
		`query($b: Boolean = true) { users(ids: [1, 2]) { id @include(if: $b) } }`:        `["users",0] {"users":[null,null]}`,
		`query($b: Boolean = true) { nodes(ids: [1, 2]) { id @include(if: $b) } }`:        `["nodes",0] {"nodes":[null,null]}`,
		`query($b: Boolean = true) { node(id: 1) { id @include(if: $b) } }`:               `["node"] {"node":null}`,
		`mutation($b: Boolean = true) { follow(userId: 2) { changed @include(if: $b) } }`: `["follow"] {"follow":null}`,
		`query($b: Boolean = true) { viewer @skip(if: $b) { id } }`:                       `takes no null`,
	} {
		answer := api.Ask(query, apitest.Vars{"b": nil})
		path, data, _ := strings.Cut(want, " ")
		if data == "takes no null"[6:] {
			path, data = want, `"errors"`
		}
		if !strings.Contains(answer.Text, path) || !strings.Contains(answer.Text, data) || !strings.Contains(answer.Text, "BAD_USER_INPUT") {
			t.Errorf("%s is answered %s, want %s", query, answer.Text, want)
		}
	}
	if strings.Contains(log.String(), "panic") || strings.Contains(log.String(), "masked") {
		t.Error(log.String())
	}
	api.Ask(`{ relationship(from: 1, to: 2) { following } }`, nil).Is(`{"relationship": {"following": true}}`)
}

// A cursor that somebody has made up may claim any number of users before it.
func TestMadeUpCursorsMakeNoNegativeTotals(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, 3)
	apitest.Follow(t, store, 1, 2)
	apitest.Follow(t, store, 2, 1)
	api := apitest.New(t, store, apitest.Options{}).As(1)
	for _, found := range []int64{1<<31 - 1, 1<<31 + 5, 1<<63 - 1} {
		after := cursor.Encode(cursor.Friends, 1, 1<<60, 1, found)
		answer := api.Ask(`query($after: String) { viewer { friends(after: $after) { totalCount } } }`, apitest.Vars{"after": after})
		if strings.Contains(answer.Text, "-") || !strings.Contains(answer.Text, `"totalCount":`) {
			t.Errorf("%d: %s", found, answer.Text)
		}
	}
}
