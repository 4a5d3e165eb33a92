package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
)

// Random valid queries and subscriptions with variables of any kind are answered as graphql-js answers them: the same values, nulls, paths
// of errors and order. Queries that are not valid are refused.
func TestAnswersAreThoseOfGraphQLJS(t *testing.T) {
	t.Parallel()
	testenv.NPM(t, "audit")
	const users, viewer = 9, 3
	queries, subscriptions := 280, 60
	if testenv.AllTests() {
		queries, subscriptions = 2100, 2000
	}
	store, hub := oracle.New(), events.NewHub(nil)
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	apitest.Publish(t, store, users)
	text, err := sdl.Of(sdl.Without(generated.NewSchema(generated.Config{}).Schema(), sdl.Operators), "")
	must.OK(t, err)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, Hub: hub}).As(viewer)
	watched := publishAll(t, store, hub, viewer)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	input, err := json.Marshal(map[string]any{
		"url": api.URL(), "events": firstEvents(t, api, stop), "sdl": text, "viewer": fmt.Sprint(viewer), "watched": watched, "queries": queries, "subscriptions": subscriptions, "seed": 2,
	})
	must.OK(t, err)
	compare := exec.CommandContext(ctx, "node", "audit/compare.mjs")
	compare.Stdin = bytes.NewReader(input)
	var complaint bytes.Buffer
	compare.Stderr = &complaint
	out, err := compare.Output()
	must.OK(t, context.Cause(ctx))
	must.That(t, err == nil, "compare: %v: %s", err, complaint.String())
	var found struct {
		Counts      map[string]int
		Differences []struct{ How, Text, Variables, Want, Got string }
	}
	must.OK(t, json.Unmarshal(out, &found))
	t.Logf("%v", found.Counts)
	for _, d := range found.Differences {
		t.Errorf("%s: %s\nwith %s\nis answered %s\ngraphql-js: %s", d.How, d.Text, d.Variables, d.Got, d.Want)
	}
	for kind, least := range map[string]int{
		"query": queries, "subscription": subscriptions, "watched": subscriptions / 21, "refused": queries / 21, "withErrors": queries / 7, "lenient": queries / 21, "wrong": queries / 21,
		"null with a default": queries / 21, "block": queries / 21, "single": queries / 21, "merged": queries / 21, "cursors": queries / 42,
		"again": queries / 21, "entities": queries / 42, "invalid": queries / 21,
	} {
		check.Least(t, kind, found.Counts[kind], least)
	}
}

// publishAll publishes an event of each kind for the viewer again and again until the test ends, each the same every time: subscriptions
// hear of one as soon as they have begun. The viewer's relationship with the watched user, whom it does not follow, changes in what nobody
// sees: when it ended.
func publishAll(t *testing.T, store storage.Store, hub *events.Hub, viewer storage.UserID) (watched storage.UserID) {
	const ahead = storage.Micros(1 << 52) // what subscriptions report is newer than they are
	post := storage.PostRow{PostID: storage.PostID{Author: 2, Number: 900}, Key: "ahead", Text: "x", At: ahead}
	comment := storage.Comment{CommentID: storage.CommentID{Author: viewer, Number: 901}, Post: int64(viewer), By: 4, Key: "ahead", Text: "x", CreatedAt: ahead}
	asks := storage.Edge{From: 5, To: viewer, Type: storage.Pending, UpdateTime: apitest.Epoch}
	favorite := storage.Edge{From: 4, To: viewer, Item: int64(viewer), Type: storage.Favorited, UpdateTime: apitest.Epoch}
	_, _, err := store.Publish(t.Context(), post)
	must.OK(t, err)
	_, _, err = store.AddComment(t.Context(), comment)
	must.OK(t, err)
	for _, side := range []storage.Side{storage.Requests, storage.Inbox} {
		must.OK(t, store.Apply(t.Context(), side, []storage.Edge{asks}, storage.IfNewer)[0].Err)
	}
	all := []events.Event{
		{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 2, To: viewer, Type: storage.Following, UpdateTime: ahead}}},
		{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 6, To: viewer, Type: storage.Requested, UpdateTime: ahead}}},
		{Row: storage.Row{Side: storage.Inbox, Edge: asks}}, {Row: storage.Row{Side: storage.FavoriteInbox, Edge: favorite}},
		{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: post.PostID, CreatedAt: ahead}, News: storage.PostPublished}},
		{Kind: events.PostChanged, Post: storage.ChangedPost{PostAt: storage.PostAt{PostID: comment.On()}, News: storage.PostCommented, Comment: comment.Number}},
	}
	for watched = 1; watched == viewer || storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: viewer, To: watched})[0].Value.Type != storage.None; watched++ {
	}
	ended := storage.Edge{From: viewer, To: watched, UpdateTime: apitest.Epoch}
	tick := time.NewTicker(5 * time.Millisecond)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				ended.UpdateTime++
				for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
					store.Apply(t.Context(), side, []storage.Edge{ended}, storage.IfNewer)
				}
				hub.Publish(append(all, events.Event{Row: storage.Row{Side: storage.Inverse, Edge: ended}})...)
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() { <-stopped })
	return watched
}

// eventPatience is how long the first event of a subscription may take: one comes all the time.
const eventPatience = 30 * time.Second

// firstEvents serves the first event of a subscription as an answer of one request, at an address for each transport. If none comes, it
// stops everything: all others would be waited for, too.
func firstEvents(t *testing.T, api *apitest.API, stop func(error)) (addresses []string) {
	for _, over := range apitest.Transports {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var of struct {
				Query     string
				Variables map[string]json.RawMessage
			}
			check.Is(t, "what is asked", json.NewDecoder(r.Body).Decode(&of), nil)
			vars := apitest.Vars{}
			for name, value := range of.Variables {
				vars[name] = value
			}
			ctx, cancel := context.WithTimeout(r.Context(), eventPatience)
			defer cancel()
			if answer, ok := <-api.Subscribe(ctx, over, of.Query, vars); ok {
				fmt.Fprint(w, answer)
				return
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				stop(fmt.Errorf("after %v nothing has come over %s of %s with %s", eventPatience, over, of.Query, vars))
			}
			fmt.Fprintf(w, `{"errors": [{"extensions": {"code": "INTERNAL: no event over %s"}}]}`, over)
		}))
		t.Cleanup(server.Close)
		addresses = append(addresses, server.URL)
	}
	return addresses
}
