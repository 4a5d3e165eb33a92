package baseline

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/accounts/identity"
	"kith/bench"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// What the web app asks has the same answers, also with everything in them that a graph just imported does not have: profiles, marks, requests,
// favorites, comments, lists without rows.
func TestAppAnswersAreThoseOfTheGateway(t *testing.T) {
	graph := bench.NewGraph(bench.Community, 42)
	graph.Degree = 8
	const secret = "a secret for tests of 32 bytes or more"
	app, err := bench.NewApp(graph, bench.AppName, []byte(secret))
	must.OK(t, err)
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(secret))})
	must.OK(t, err)
	onEach(t, 1, func(t *testing.T, locations []string) {
		gateway := fill(t, locations[0], graph)
		posts := addPosts(t, locations[0], graph)
		change := func(by storage.UserID, mutation string, args ...any) {
			t.Helper()
			token, _, err := issuer.Issue(by, 0)
			must.OK(t, err)
			body, _ := json.Marshal(map[string]string{"query": "mutation { " + fmt.Sprintf(mutation, args...) + " }"})
			if answer := string(post(t, gateway, body, token)); strings.Contains(answer, `"errors"`) {
				t.Fatalf("%s: %s", body, answer)
			}
		}
		n := 0
		for e := range graph.Edges() {
			switch n++; {
			case e.From <= 10:
				change(e.From, `unfollow(userId: "%d") { changed }`, e.To)
			case n%6 == 0:
				change(e.From, `setFollowMark(userId: "%d", special: %t, remark: "from \"work\" %d") { changed }`, e.To, n%18 > 0, n)
			case n%6 == 1 && posts[e.To] != "":
				change(e.From, `favorite(postId: "%s") { changed } addComment(postId: "%[1]s", text: "so it is", clientKey: "%d") { comment { id } }`, posts[e.To], n)
			}
		}
		for id := storage.UserID(1); id <= storage.UserID(graph.Users); id++ {
			change(id, `updateProfile(name: "Zoë %d", bio: "says \"hello\"", avatarUrl: "/faces/%[1]d.svg") { viewer { user { id } } }`, id)
			for _, step := range []storage.UserID{11, 77, 123} {
				change(id, `requestFriend(userId: "%d") { changed }`, (id+step-1)%storage.UserID(graph.Users)+1)
			}
		}

		baseline := serveBaseline(t, locations[0])
		missing := []string{
			`"status":"MUTUAL"`, `"status":"FOLLOWED_BY"`, `"remark":"from`, `"special":true`, `"sentRequest":{"id`, `"receivedRequest":{"id`,
			`"viewerHasFavorited":true`, `"commentCount":1`, `"hasNextPage":true`, `"nodes":[]`, `"edges":[]`, `"bio":"says`, `"requests":{"totalCount":3`,
		}
		err := app.Ask(1, 400, func(q bench.AppRequest) ([]byte, error) {
			want, got := post(t, gateway, q.Body, q.Token), post(t, baseline, q.Body, q.Token)
			if !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
				return nil, fmt.Errorf("the baseline answers %s\nKith              %s", got, want)
			}
			missing = slices.DeleteFunc(missing, func(part string) bool { return strings.Contains(string(want), part) })
			return got, nil
		})
		must.OK(t, err)
		if len(missing) > 0 {
			t.Errorf("no answer had %s", missing)
		}
	})
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil || answer["data"] == nil || answer["errors"] != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer["data"]
}

// addPosts lets most users post, and returns a post of each.
func addPosts(t *testing.T, location string, graph *bench.Graph) map[storage.UserID]string {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	must.OK(t, err)
	defer store.Close()
	posts := map[storage.UserID]string{}
	var rows []storage.PostRow
	for _, row := range graph.Posts(time.Now()) {
		if row.Author%10 != 0 {
			rows = append(rows, row)
			posts[row.Author] = fmt.Sprintf("post_%d_%d", row.Author, row.Number)
		}
	}
	for _, restored := range store.Restore(t.Context(), storage.Restored{Posts: rows}) {
		if restored.Err != nil {
			t.Fatal(restored.Err)
		}
	}
	return posts
}
