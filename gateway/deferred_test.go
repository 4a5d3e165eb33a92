package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/gateway"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/storage"
)

const (
	byID   = "multipart/mixed;incrementalSpec=v0.2,application/graphql-response+json,application/json;q=0.9"
	byPath = "multipart/mixed;deferSpec=20220824,application/json"
)

// deferring is a site whose users have what ViewerRelationship and Followings say.
func deferring(t *testing.T, change func(*gateway.Config)) (*live, site) {
	t.Helper()
	l := newLive()
	cfg := l.config(gateway.Subscriptions{})
	cfg.RequestTimeout = patience
	cfg.PerPart = func(ctx context.Context) context.Context { return ctx }
	if change != nil {
		change(&cfg)
	}
	return l, serve(t, cfg)
}

// patience is how long a test waits for something that must come.
const patience = 20 * time.Second

// parts sends a query, and returns the messages of an answer in parts. If the answer is whole, messages is nil.
func (s site) parts(accept, query string) (whole string, messages []string) {
	s.t.Helper()
	got := s.query(query, "Accept", accept)
	if !strings.HasPrefix(got.header.Get("Content-Type"), "multipart/mixed;") {
		return got.text, nil
	}
	text, ok := strings.CutSuffix(strings.TrimPrefix(got.text, "\r\n---"), "\r\n-----\r\n")
	if !ok {
		s.t.Fatalf("the end is missing: %q", got.text)
	}
	for one := range strings.SplitSeq(text, "\r\n---") {
		body, ok := strings.CutPrefix(one, "\r\nContent-Type: application/json; charset=utf-8\r\n\r\n")
		if !ok || !json.Valid([]byte(body)) {
			s.t.Errorf("no message of JSON: %q", one)
		}
		messages = append(messages, body)
	}
	return "", messages
}

// User returns a user, but none for 77. The counts of 410 cannot be read.
func (l liveQuery) User(_ context.Context, id string) (*model.User, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	n := storage.UserID(number)
	if err != nil || n == 77 {
		return nil, err
	}
	u := &model.User{UserID: n, Row: storage.User{ID: n, Handle: "u" + id, Name: "User " + id}}
	switch n {
	case 2:
		u.Row.Name, u.Row.Handle = "@0", `@0":"x","@1`
	case 410:
		u.Counts.Err = fmt.Errorf("read counts on %s: %w", secret, storage.ErrUnavailable)
	}
	return u, nil
}

// Node returns a user.
func (l liveQuery) Node(ctx context.Context, id string) (model.Node, error) { return l.User(ctx, id) }

const named = `{ user(id: 1) { id ... @defer(label: "who") { handle } } }`

func TestPartsInBothFormats(t *testing.T) {
	_, s := deferring(t, nil)
	for accept, want := range map[string][]string{
		byID: {
			`{"data":{"user":{"id":"1"}},"pending":[{"id":"0","path":["user"],"label":"who"}],"hasNext":true}`,
			`{"incremental":[{"id":"0","data":{"handle":"u1"}}],"completed":[{"id":"0"}],"hasNext":false}`,
		},
		byPath: {
			`{"data":{"user":{"id":"1"}},"hasNext":true}`,
			`{"incremental":[{"path":["user"],"label":"who","data":{"handle":"u1"}}],"hasNext":false}`,
		},
	} {
		for range 2 { // the second time, the query is known
			if _, got := s.parts(accept, named); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: got\n%s\nwant\n%s", accept, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// A client that does not accept parts gets the whole answer at once, without any sign of parts.
func TestWholeAnswers(t *testing.T) {
	_, s := deferring(t, nil)
	const want = `{"data":{"user":{"id":"1","handle":"u1"}}}`
	for range 2 {
		for _, accept := range []string{
			"", "*/*", "application/json", "application/json, multipart/mixed", "multipart/mixed;incrementalSpec=v0.1",
			"multipart/mixed;incrementalSpec=v0.2;q=0", "multipart/mixed;incrementalSpec", "text/html;incrementalSpec=v0.2", ";;,",
		} {
			got := s.query(named, "Accept", accept)
			if got.text != want || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
				t.Errorf("%q: %s, %s", accept, got.header.Get("Content-Type"), got.text)
			}
		}
		if got := s.query(named, "Accept", "application/graphql-response+json, "+byID); got.text == want {
			t.Error("a client that takes parts, too, does not get them")
		}
		e := s.subscribeSSE(strings.ReplaceAll(named, "\n", " "))
		if name, data := e.next(); name != "next" || data != want {
			t.Errorf("server-sent events: %s, %s", name, data)
		}
		e.leave()
	}
	c := s.joined()
	c.subscribe("1", named)
	c.expect(`{"id":"1","type":"next","payload":` + want + `}`)
}

// A query that defers nothing has one answer, even for clients that accept parts.
func TestNothingToDefer(t *testing.T) {
	_, s := deferring(t, nil)
	for query, want := range map[string]string{
		`{ user(id: 1) { id ... @defer(if: false) { handle } } }`:                                                                                `{"data":{"user":{"id":"1","handle":"u1"}}}`,
		`{ user(id: 1) { handle ... @defer { handle } } }`:                                                                                       `{"data":{"user":{"handle":"u1"}}}`,
		`{ user(id: 1) { id ... @defer @skip(if: true) { handle } } }`:                                                                           `{"data":{"user":{"id":"1"}}}`,
		`{ user(id: 1) { id ... @defer { handle @skip(if: true) } } }`:                                                                           `{"data":{"user":{"id":"1"}}}`,
		`{ user(id: 77) { id ... @defer { handle } } }`:                                                                                          `{"data":{"user":null}}`,
		`{ user(id: 1) { followings { edges { cursor ... @defer { node { id } } } } } }`:                                                         `{"data":{"user":{"followings":{"edges":[{"cursor":"1","node":null}]}}}}`,
		`{ user(id: 1) { ...F followings { edges { cursor } } ... @defer { followings { edges { node { id } } } } } } fragment F on User { id }`: `{"data":{"user":{"id":"1","followings":{"edges":[{"cursor":"2","node":null}]}}}}`,
	} {
		whole, messages := s.parts(byID, query)
		if messages != nil || !sameButLoaders(whole, want) {
			t.Errorf("%s: %s%s, want %s", query, whole, messages, want)
		}
	}
}

// sameButLoaders compares answers, except for the numbers of loaders in cursors.
func sameButLoaders(a, b string) bool {
	cut := func(s string) string {
		before, after, ok := strings.Cut(s, `"cursor":"`)
		if !ok {
			return s
		}
		_, after, _ = strings.Cut(after, `"`)
		return before + after
	}
	return cut(a) == cut(b)
}

func TestHowFragmentsAreSplit(t *testing.T) {
	_, s := deferring(t, nil)
	for name, tt := range map[string]struct {
		query string
		want  []string
	}{
		"at the root": {`{ ... @defer { user(id: 1) { id } } }`, []string{
			`{"data":{},"pending":[{"id":"0","path":[]}],"hasNext":true}`,
			`{"incremental":[{"id":"0","data":{"user":{"id":"1"}}}],"completed":[{"id":"0"}],"hasNext":false}`,
		}},
		"all of an object": {`{ user(id: 1) { ...F @defer } } fragment F on User { id handle }`, []string{
			`{"data":{"user":{}},"pending":[{"id":"0","path":["user"]}],"hasNext":true}`,
			`{"incremental":[{"id":"0","data":{"id":"1","handle":"u1"}}],"completed":[{"id":"0"}],"hasNext":false}`,
		}},
		"one in another": {`{ user(id: 1) { id ... @defer { id handle ... @defer(label: "in") { id handle name } } } }`, []string{
			`{"data":{"user":{"id":"1"}},"pending":[{"id":"0","path":["user"]}],"hasNext":true}`,
			`{"pending":[{"id":"1","path":["user"],"label":"in"}],"incremental":[{"id":"0","data":{"handle":"u1"}}],"completed":[{"id":"0"}],"hasNext":true}`,
			`{"incremental":[{"id":"1","data":{"name":"User 1"}}],"completed":[{"id":"1"}],"hasNext":false}`,
		}},
		"one in another that adds nothing": {`{ user(id: 1) { id ... @defer { id ... @defer { name } } } }`, []string{
			`{"data":{"user":{"id":"1"}},"pending":[{"id":"0","path":["user"]}],"hasNext":true}`,
			`{"incremental":[{"id":"0","data":{"name":"User 1"}}],"completed":[{"id":"0"}],"hasNext":false}`,
		}},
		"more of what is selected": {`{ user(id: 1) { id listVisibility { followings } } ... @defer { user(id: 1) { id name listVisibility { followers } } } }`, []string{
			`{"data":{"user":{"id":"1","listVisibility":{"followings":"EVERYONE"}}},"pending":[{"id":"0","path":[]}],"hasNext":true}`,
			`{"incremental":[{"id":"0","subPath":["user","listVisibility"],"data":{"followers":"EVERYONE"}},{"id":"0","subPath":["user"],"data":{"name":"User 1"}}],"completed":[{"id":"0"}],"hasNext":false}`,
		}},
		"on what is of another type": {`{ node(id: 1) { id ... on Post @defer { text } ... on User @defer { __typename name } } }`, []string{
			`{"data":{"node":{"id":"1"}},"pending":[{"id":"0","path":["node"]}],"hasNext":true}`,
			`{"incremental":[{"id":"0","data":{"__typename":"User","name":"User 1"}}],"completed":[{"id":"0"}],"hasNext":false}`,
		}},
		"values like the marks of places": {`{ user(id: 2) { name handle ... @defer { id ... @defer { bio } } } }`, []string{
			`{"data":{"user":{"name":"@0","handle":"@0\":\"x\",\"@1"}},"pending":[{"id":"0","path":["user"]}],"hasNext":true}`,
			`{"pending":[{"id":"1","path":["user"]}],"incremental":[{"id":"0","data":{"id":"2"}}],"completed":[{"id":"0"}],"hasNext":true}`,
			`{"incremental":[{"id":"1","data":{"bio":null}}],"completed":[{"id":"1"}],"hasNext":false}`,
		}},
	} {
		for range 2 {
			if _, got := s.parts(byID, tt.query); strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		}
	}
}

// Variables decide for each request whether a fragment is deferred.
func TestDeferredByVariable(t *testing.T) {
	_, s := deferring(t, nil)
	for range 2 {
		for value, parts := range map[string]bool{`{"later": true}`: true, `{"later": false}`: false, `{}`: true} {
			got := s.ask(`query($later: Boolean) { user(id: 1) { id ... @defer(if: $later) { handle } } }`, value, "", "Accept", byID)
			if strings.Contains(got.text, `"hasNext":true`) != parts {
				t.Errorf("%s: %s", value, got.text)
			}
		}
	}
}

func TestTooManyAreNotDeferred(t *testing.T) {
	_, s := deferring(t, nil)
	var query strings.Builder
	for i := range 12 {
		fmt.Fprintf(&query, "... @defer { f%d: handle } ", i)
	}
	_, messages := s.parts(byID, "{ user(id: 1) { id "+query.String()+"} }")
	if len(messages) == 0 || strings.Count(messages[0], `"path"`) != 8 || strings.Count(messages[0], `"u1"`) != 4 {
		t.Errorf("got %s", messages)
	}
}

// The fields that lead to a part are looked up again. All parts together must not cost more than a request may.
func TestPartsThatCostTooMuch(t *testing.T) {
	_, s := deferring(t, func(cfg *gateway.Config) { cfg.Limits = limits.Limits{Cost: 7} })
	if _, messages := s.parts(byID, named); messages == nil {
		t.Error("two operations of 3 are more than 7")
	}
	const two = `{ user(id: 1) { id ... @defer { handle } ... @defer { name } } }`
	if whole, messages := s.parts(byID, two); messages != nil || whole != `{"data":{"user":{"id":"1","handle":"u1","name":"User 1"}}}` {
		t.Errorf("got %s%s", whole, messages)
	}
}

func TestErrorsInParts(t *testing.T) {
	_, s := deferring(t, nil)
	notFound := `{"message":"there is no such user","path":["user","viewerRelationship"],"locations":[{"line":1,"column":35}],"extensions":{"code":"NOT_FOUND","retryable":false}}`
	for accept, want := range map[string]string{
		byID:   `{"incremental":[{"id":"0","data":{"viewerRelationship":null},"errors":[` + notFound + `]}],"completed":[{"id":"0"}],"hasNext":false}`,
		byPath: `{"incremental":[{"path":["user"],"data":{"viewerRelationship":null},"errors":[` + notFound + `]}],"hasNext":false}`,
	} {
		if _, got := s.parts(accept, `{ user(id: 404) { id ... @defer { viewerRelationship { id } } } }`); len(got) != 2 || got[1] != want {
			t.Errorf("%s: got\n%s\nwant\n%s", accept, got, want)
		}
	}
	// If a value that must not be null is null, the part that contains it is null, but not what has
	// already been answered.
	for accept, want := range map[string]string{
		byID:   `"completed":[{"id":"0","errors":[{`,
		byPath: `{"incremental":[{"path":["user"],"data":null,"errors":[{`,
	} {
		_, got := s.parts(accept, `{ user(id: 410) { id ... @defer { followerCount ... @defer { name } } } }`)
		if len(got) != 2 || !strings.Contains(got[1], want) || strings.Contains(got[1], `"incremental":[{"id"`) || !strings.Contains(got[1], "UNAVAILABLE") || strings.Contains(got[1], secret) {
			t.Errorf("%s: got\n%s", accept, got)
		}
	}
	if _, got := s.parts(byID, `{ user(id: 500) { id ... @defer { viewerRelationship { id } } } }`); len(got) != 2 || !strings.Contains(got[1], "INTERNAL_SERVER_ERROR") || strings.Contains(got[1], secret) {
		t.Errorf("a panic: %s", got)
	}
}
