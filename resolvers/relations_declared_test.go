package resolvers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/graph/declared"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/sides"
)

const someKinds = `
relations:
  subscribes: {number: 100, to: Show, max: 3, seen: everyone, ends: true, description: Shows that a user watches.}
  worksWith: {number: 101, seen: everyone, peace: true}
  admires: {number: 102, seen: ends}
  bookmarks: {number: 103}
attributes:
  edge:
    since: {type: String}
    rank: {type: Int}
`

func declare(t *testing.T, text string) *declared.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "declared.yaml")
	must.OK(t, os.WriteFile(name, []byte(text), 0o600))
	f, err := declared.Read(name)
	must.OK(t, err)
	return f
}

// A product's kinds are served by generic fields, on every store.
func TestDeclaredRelations(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		me := v.api.As(v.a)
		relate := func(asker *apitest.API, kind, ids, more string) apitest.Answer {
			return asker.Ask(fmt.Sprintf(`mutation { relate(kind: %s, ids: [%s]%s) { outcomes { id changed error { code reason } } } }`, kind, ids, more), nil)
		}
		outcome := func(id, changed, err string) string {
			return fmt.Sprintf(`{"id": %q, "changed": %s, "error": %s}`, id, changed, err)
		}

		// To what is no user: up to the bound of the kind, with an end and attributes.
		relate(me, "SUBSCRIBES", `"7", "8", "7", "x"`, `, until: "2030-01-02T03:04:05Z", attributes: {since: "always", rank: 1}`).Is(fmt.Sprintf(`{"relate": {"outcomes": [%s, %s, %s, %s]}}`,
			outcome("7", "true", "null"), outcome("8", "true", "null"), outcome("7", "false", "null"), outcome("x", "false", `{"code": "BAD_USER_INPUT", "reason": "ID_MALFORMED"}`)))
		wrong := strings.Repeat("x", 64)
		relate(me, "SUBSCRIBES", `"`+wrong+`"`, "").Is(fmt.Sprintf(`{"relate": {"outcomes": [%s]}}`, outcome(wrong, "false", `{"code": "BAD_USER_INPUT", "reason": "ID_MALFORMED"}`)))
		relate(me, "SUBSCRIBES", `"9", "10"`, "").Is(fmt.Sprintf(`{"relate": {"outcomes": [%s, %s]}}`,
			outcome("9", "true", "null"), outcome("10", "false", `{"code": "LIMIT_REACHED", "reason": "TOO_MANY_RELATIONS"}`)))
		me.Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { edges(kind: SUBSCRIBES, first: 9) { totalCount complete nodes { id } edges { endId until attributes { since rank } node { id } } } } }`, v.a), nil).Is(`{"user": {"edges": {
			"totalCount": 3, "complete": true, "nodes": [null, null, null], "edges": [
			{"endId": "9", "until": null, "attributes": {"since": null, "rank": null}, "node": null},
			{"endId": "8", "until": "2030-01-02T03:04:05.000000Z", "attributes": {"since": "always", "rank": 1}, "node": null},
			{"endId": "7", "until": "2030-01-02T03:04:05.000000Z", "attributes": {"since": "always", "rank": 1}, "node": null}]}}}`)
		v.api.As(v.b).Ask(`{ edgesTo(kind: SUBSCRIBES, id: "7") { totalCount edges { endId node { id } } } }`, nil).Is(fmt.Sprintf(
			`{"edgesTo": {"totalCount": 1, "edges": [{"endId": "%s", "node": {"id": "%[1]s"}}]}}`, v.a))
		me.Ask(`mutation { unrelate(kind: SUBSCRIBES, ids: ["7", "11"]) { outcomes { changed } viewer { edge(kind: SUBSCRIBES, id: "7") { endId } other: edge(kind: SUBSCRIBES, id: "8") { endId attributes { since } } } } }`, nil).Is(
			`{"unrelate": {"outcomes": [{"changed": true}, {"changed": false}], "viewer": {"edge": null, "other": {"endId": "8", "attributes": {"since": "always"}}}}}`)
		v.api.Ask(`{ edgesTo(kind: SUBSCRIBES, id: "7") { totalCount nodes { id } } }`, nil).Is(`{"edgesTo": {"totalCount": 0, "nodes": []}}`)

		// A show has the id of a user, and nothing else of it.
		v.api.Ask(fmt.Sprintf(`{ edgesTo(kind: SUBSCRIBES, id: "%s") { totalCount } user(by: {id: "%[1]s"}) { followerCount } }`, v.b), nil).Is(`{"edgesTo": {"totalCount": 0}, "user": {"followerCount": 0}}`)

		// Between users: who sees them, and what a block does.
		for _, kind := range []string{"WORKS_WITH", "ADMIRES", "BOOKMARKS"} {
			relate(me, kind, `"`+v.b.String()+`"`, "").Is(fmt.Sprintf(`{"relate": {"outcomes": [%s]}}`, outcome(v.b.String(), "true", "null")))
		}
		sees := func(asker *apitest.API) (seen []string) {
			for _, kind := range []string{"WORKS_WITH", "ADMIRES", "BOOKMARKS"} {
				a := asker.Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { edges(kind: %s) { totalCount } } edgesTo(kind: %s, id: "%s") { totalCount } }`, v.a, kind, kind, v.b), nil).Whole()
				if a.At("user.edges") != nil {
					seen = append(seen, kind+" out")
				}
				if a.At("edgesTo") != nil {
					seen = append(seen, kind+" in")
				}
			}
			return seen
		}
		for name, c := range map[string]struct {
			asker *apitest.API
			want  string
		}{
			"the owner": {me, "WORKS_WITH out, WORKS_WITH in, ADMIRES out, BOOKMARKS out"}, "the end": {v.api.As(v.b), "WORKS_WITH out, WORKS_WITH in, ADMIRES in"},
			"another": {v.api.As(v.c), "WORKS_WITH out, WORKS_WITH in"}, "nobody": {v.api, "WORKS_WITH out, WORKS_WITH in"},
		} {
			check.Equal(t, name, strings.Join(sees(c.asker), ", "), c.want)
		}
		v.does(v.d, "follow", v.b)
		people := func(asker *apitest.API, kind string) apitest.Answer {
			return asker.Ask(fmt.Sprintf(`{ people(where: {and: [{relatedTo: {kind: %s, userId: "%s"}}, {followedBy: "%s"}]}) { totalCount nodes { id } } }`, kind, v.a, v.d), nil)
		}
		found := fmt.Sprintf(`{"people": {"totalCount": 1, "nodes": [{"id": "%s"}]}}`, v.b)
		people(me, "BOOKMARKS").Is(found)
		people(v.api.As(v.c), "WORKS_WITH").Is(found)
		people(v.api.As(v.c), "BOOKMARKS").Is(`{"people": null}`)
		people(me, "SUBSCRIBES").Refused("BAD_USER_INPUT")
		v.does(v.b, "block", v.c)
		relate(v.api.As(v.c), "WORKS_WITH", `"`+v.b.String()+`"`, "").Is(fmt.Sprintf(`{"relate": {"outcomes": [%s]}}`, outcome(v.b.String(), "false", `{"code": "FORBIDDEN", "reason": "BLOCKED"}`)))
		check.Equal(t, "whoever is blocked", strings.Join(sees(v.api.As(v.c)), ", "), "WORKS_WITH out")

		// Edges of a locked user are for its followers, for itself, and for whom they enter; pages are filled up with others'.
		v.api.As(v.d).Ask(`mutation { updateProfile(locked: true) { changed } }`, nil).Whole()
		relate(v.api.As(v.d), "WORKS_WITH", `"`+v.b.String()+`"`, "").Whole()
		for name, c := range map[string]struct {
			asker *apitest.API
			want  string
		}{
			"nobody":  {v.api, fmt.Sprintf(`{"totalCount": 1, "nodes": [{"id": "%s"}], "pageInfo": {"hasNextPage": false}}`, v.a)},
			"the end": {v.api.As(v.b), fmt.Sprintf(`{"totalCount": 2, "nodes": [{"id": "%s"}], "pageInfo": {"hasNextPage": true}}`, v.d)},
			"itself":  {v.api.As(v.d), fmt.Sprintf(`{"totalCount": 2, "nodes": [{"id": "%s"}], "pageInfo": {"hasNextPage": true}}`, v.d)},
		} {
			t.Run(name, func(t *testing.T) {
				c.asker.For(t).Ask(fmt.Sprintf(`{ edgesTo(kind: WORKS_WITH, id: "%s", first: 1) { totalCount nodes { id } pageInfo { hasNextPage } } }`, v.b), nil).Is(`{"edgesTo": ` + c.want + `}`)
			})
		}

		// What validation, bounds and rules refuse.
		me.Ask(`{ edgesTo(kind: UNKNOWN, id: "7") { totalCount } }`, nil).Refused("BAD_USER_INPUT")
		relate(me, "WORKS_WITH", `"2"`, `, until: "2030-01-02T03:04:05Z"`).Refused("BAD_USER_INPUT")
		relate(me, "WORKS_WITH", strings.Repeat(`"2",`, 101), "").Refused("BAD_USER_INPUT")
		relate(me, "SUBSCRIBES", `"7"`, `, attributes: {unknown: 1}`).Refused("BAD_USER_INPUT")
		relate(v.api, "SUBSCRIBES", `"7"`, "").Refused("UNAUTHENTICATED")
		relate(me, "WORKS_WITH", `"`+v.a.String()+`", "77"`, "").Is(fmt.Sprintf(`{"relate": {"outcomes": [%s, %s]}}`,
			outcome(v.a.String(), "false", `{"code": "BAD_USER_INPUT", "reason": "SELF"}`), outcome("77", "false", `{"code": "NOT_FOUND", "reason": "USER_NOT_FOUND"}`)))
		for shard := range v.store.Shards() {
			for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
				wrong, err := v.store.(sides.Comparer).WrongItemCounts(t.Context(), side, shard, sides.OwnerRange{UpTo: 1<<63 - 1})
				check.That(t, err == nil && len(wrong) == 0, "wrong counts: %v, %v", wrong, err)
			}
		}
	})
}

// A user in a block with the viewer is not shown, neither in the list nor by the edge alone.
func TestAnEdgeIsHiddenByABlock(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		me := v.api.As(v.a)
		me.Ask(fmt.Sprintf(`mutation { relate(kind: ADMIRES, ids: ["%s"]) { outcomes { changed } } }`, v.b), nil).Whole()
		v.does(v.b, "block", v.a)
		me.Ask(fmt.Sprintf(`{ viewer { edge(kind: ADMIRES, id: "%s") { endId node { id } } user { edges(kind: ADMIRES) { totalCount nodes { id } } } } }`, v.b), nil).
			Is(`{"viewer": {"edge": null, "user": {"edges": {"totalCount": 0, "nodes": []}}}}`)
	})
}

// What is beside an edge lies where it leaves: if that shard does not answer, the others are shown whole.
func TestDetailsOfEdgesFailOneByOne(t *testing.T) {
	o := apitest.Options{Declared: declare(t, someKinds)}
	whole, store := withUsers(t, 30, o)
	town := byShard(30)
	me, live, gone := town[0][0], town[0][1], town[deadShard][0]
	for _, from := range []storage.UserID{live, gone} {
		whole.As(from).Ask(fmt.Sprintf(`mutation { relate(kind: ADMIRES, ids: ["%s"], attributes: {rank: 1}) { outcomes { changed } } }`, me), nil).Whole()
	}
	answer := apitest.New(t, dead(store, 4, deadShard), o).As(me).Ask(fmt.Sprintf(`{ edgesTo(kind: ADMIRES, id: "%s") { edges { endId x: attributes { rank } attributes { rank } until } } }`, me), nil)
	answer.DataIs(fmt.Sprintf(`{"edgesTo": {"edges": [{"endId": "%s", "x": null, "attributes": null, "until": null}, {"endId": "%s", "x": {"rank": 1}, "attributes": {"rank": 1}, "until": null}]}}`, gone, live))
	answer.FailsAt("UNAVAILABLE", "edgesTo.edges.0.x", "edgesTo.edges.0.attributes", "edgesTo.edges.0.until")
}

// Without a file, the schema has nothing of it.
func TestNothingIsDeclared(t *testing.T) {
	api := apitest.New(t, oracle.New(), apitest.Options{})
	api.Ask(`{ edgesTo(kind: A, id: "1") { totalCount } }`, nil).Refused("BAD_USER_INPUT")
	api.Ask(`{ __type(name: "RelationKind") { name } }`, nil).Is(`{"__type": null}`)
}

// A client that has lost an answer sends the mutation again, and brings the token of the edge that there is.
func TestRelationsThatThereAreHaveTokens(t *testing.T) {
	onShards(t, apitest.Options{Declared: declare(t, someKinds)}, func(t *testing.T, v *village) {
		me := v.api.As(v.a)
		for _, mutation := range []string{"relate", "unrelate"} {
			query := fmt.Sprintf(`mutation { %s(kind: WORKS_WITH, ids: ["%s"]) { outcomes { changed } } }`, mutation, v.b)
			first, again := me.Ask(query, nil).Whole(), me.Ask(query, nil).Whole()
			again.Is(fmt.Sprintf(`{"%s": {"outcomes": [{"changed": false}]}}`, mutation))
			check.Equal(t, mutation+" again", again.Token(), first.Token())
		}
		check.Equal(t, "where there never was one", me.Ask(fmt.Sprintf(`mutation { unrelate(kind: ADMIRES, ids: ["%s"]) { outcomes { changed } } }`, v.b), nil).Token(), "")
	})
}

// Payloads say that the other side lags for a reason that waiting does not repair, as that of a follow does.
func TestPayloadsOfRelationsAreStaleWhereNothingPropagates(t *testing.T) {
	for _, mode := range []never{{}, {errors.New("no connection")}} {
		api, _ := withUsers(t, 3, apitest.Options{Redundancy: mode, Declared: declare(t, someKinds)})
		list := apitest.Into[string](api.As(1).Ask(`mutation { createList(name: "x") { list { id } } }`, nil).Whole(), "createList.list.id")
		for _, call := range []string{
			`relate(kind: WORKS_WITH, ids: [2])`, `unrelate(kind: WORKS_WITH, ids: [2])`, `mute(userId: 2)`, `unmute(userId: 2)`,
			fmt.Sprintf(`addToList(listId: %q, userIds: [2, 3])`, list), fmt.Sprintf(`removeFromList(listId: %q, userIds: [2])`, list),
		} {
			for _, isStale := range []bool{mode.err != nil, false} { // the second time, nothing is written
				a := api.As(1).Ask(`mutation { `+call+` { viewer { id } } }`, nil).Whole()
				check.Equal(t, fmt.Sprintf("%v: %s is stale", mode.err, call), a.Stale(), isStale)
			}
		}
	}
}
