package resolvers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/storage"
	"kith/storage/memory"
	"kith/storage/shard"
)

// Deferring is for set answers, and for totals of lists whose page is ready before the total.
func TestSetAnswersAndTotalsAreDeferred(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, 9)
	apitest.Follow(t, store, 1, 2, 3, 4, 5)
	apitest.Follow(t, store, 9, 3, 4, 5, 6)
	apitest.Follow(t, store, 2, 7)
	apitest.Follow(t, store, 3, 7)
	api := apitest.New(t, store, apitest.Options{}).As(1)
	const query = `{ user(id: 1) { handle
		followings(first: 1) { nodes { id } ... @defer(label: "total") { totalCount } }
		... @defer(label: "common") { commonFollowings(with: 9, first: 2) { nodes { id } } }
		... @defer(label: "suggested") { followSuggestions(first: 1) { nodes { id } } } } }`
	const whole = `{"user": {"handle": "u1", "followings": {"nodes": [{"id": "5"}], "totalCount": 4},
		"commonFollowings": {"nodes": [{"id": "3"}, {"id": "4"}]}, "followSuggestions": {"nodes": [{"id": "7"}]}}}`
	for _, format := range []string{apitest.PartsByID, apitest.PartsByPath} {
		parts := api.InParts(format, query, nil)
		parts.Is(whole)
		if first := `{"data":{"user":{"handle":"u1","followings":{"nodes":[{"id":"5"}]}}},`; !strings.Contains(parts.Text, first) {
			t.Errorf("%s: it does not begin with %s: %s", format, first, parts.Text)
		}
		for _, label := range []string{"total", "common", "suggested"} {
			if !strings.Contains(parts.Text, `"label":"`+label+`"`) {
				t.Errorf("%s: %s is not in a part of its own: %s", format, label, parts.Text)
			}
		}
	}
	api.Ask(query, nil).Is(whole)
}

// A mutation's deferred fragments are answered at once: nothing is written twice.
func TestMutationsAreNotDeferred(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, 3)
	parts := apitest.New(t, store, apitest.Options{}).As(1).InParts(apitest.PartsByID,
		`mutation { follow(userId: 2) { changed ... @defer { relationship { status ... @defer { following } } } } }`, nil)
	parts.Is(`{"follow": {"changed": true, "relationship": {"status": "FOLLOWING", "following": true}}}`)
	if parts.Format != "" {
		t.Errorf("it comes in parts: %s", parts.Text)
	}
}

// The parts of an answer do not read again what their request has read.
func TestPartsReadNothingTwice(t *testing.T) {
	api, recorder := countedAPI(t, ringOn(t, 1), apitest.Options{})
	const fields = `handle followings(first: 3) { nodes { id } }`
	api.Ask(`{ user(id: 1) { `+fields+` } }`, nil).Whole()
	alone := recorder.Take()
	parts := api.InParts(apitest.PartsByID, `{ user(id: 1) { `+fields+` ... @defer { name other: followings(first: 3) { nodes { id } } } ... @defer { bio } } }`, nil)
	if got := recorder.Take(); len(got) != len(alone) || len(parts.Messages) < 2 {
		t.Errorf("in %d messages, the statements are %v, want %v", len(parts.Messages), got.ByLookup(), alone.ByLookup())
	}
}

// A server that does not answer costs only the part that needs it. The first answer and the other
// parts come without waiting for it.
func TestASilentServerCostsTheDeferredPart(t *testing.T) {
	const limit = time.Second
	p := behindProxy(t, limit)
	shards := shard.NewMap(4)
	user := func(where int) storage.UserID {
		for id := storage.UserID(1); ; id++ {
			if shards.Of(id) == where {
				return id
			}
		}
	}
	live, other, silent := user(0), user(1), user(deadShard)
	for _, id := range []storage.UserID{live, other, silent} {
		apitest.CreateUsers(t, p.store, storage.User{ID: id, Handle: "u" + id.String()})
	}
	apitest.Follow(t, p.store, live, other)
	apitest.Follow(t, p.store, silent, other)
	api := apitest.New(t, p.store, apitest.Options{RequestTimeout: 10 * limit})
	query := fmt.Sprintf(`{ user(id: %s) { id ... @defer(label: "silent") { commonFollowings(with: %s) { nodes { id } } } ... @defer(label: "live") { followings { nodes { id } } } } }`, live, silent)
	whole := fmt.Sprintf(`{"user": {"id": "%s", "commonFollowings": {"nodes": [{"id": "%s"}]}, "followings": {"nodes": [{"id": "%s"}]}}}`, live, other, other)
	api.InParts(apitest.PartsByID, query, nil).Is(whole)
	p.hang(t)
	got := api.InParts(apitest.PartsByID, query, nil)
	p.heal()
	if n := len(got.Messages); n != 3 || !strings.Contains(fmt.Sprint(got.Messages[1]), "followings") || strings.Contains(fmt.Sprint(got.Messages[1]), "commonFollowings") {
		t.Errorf("it comes in %d messages: %s", n, got.Text)
	}
	if len(got.Errors) != 1 || !strings.Contains(fmt.Sprint(got.Errors), "UNAVAILABLE") || len(got.Failed) != 0 || got.Data["user"].(map[string]any)["commonFollowings"] != nil {
		t.Errorf("got %s", got.Text)
	}
	api.InParts(apitest.PartsByID, query, nil).Is(whole)
}
