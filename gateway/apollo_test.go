package gateway_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/internal/apitest"
	"kith/internal/testenv"
	"kith/storage/memory"
)

// shown is what Apollo Client passes to a component.
type shown struct {
	Job       int
	Handler   string
	Data      map[string]any
	DataState string
	Errors    []map[string]any
}

// node runs a script of the folder defer_test.
func node(t *testing.T, script, input string, args ...string) []byte {
	t.Helper()
	testenv.NPM(t, "defer_test")
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"defer_test/" + script}, args...)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return out
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Apollo Client shows the parts that have come before the others, ends with the whole answer, and has it in its cache.
func TestApolloClientTakesParts(t *testing.T) {
	store := memory.New()
	apitest.Users(t, store, 9)
	apitest.Follow(t, store, 1, 2, 3, 4, 5)
	apitest.Follow(t, store, 9, 3, 4, 5, 6)
	_, faulty := deferring(t, nil)
	out := node(t, "apollo.mjs", "", asJSON(t, []map[string]string{
		{"url": apitest.New(t, store, apitest.Options{}).URL(), "query": `{ user(id: 1) { id ... @defer { name ... @defer { bio } } ...Common @defer
			followings(first: 1) { nodes { id } ... @defer(label: "total") { totalCount } } } }
			fragment Common on User { commonFollowings(with: 9, first: 2) { nodes { id handle } } }`},
		{"url": faulty.url + "/graphql", "query": `{ user(id: 404) { id ... @defer { viewerRelationship { id } } } }`},
		{"url": faulty.url + "/graphql", "query": `{ user(id: 410) { id ... @defer { followerCount } } }`},
	}))
	type key struct {
		job     int
		handler string
	}
	all := make(map[key][]shown)
	for line := range bytes.Lines(out) {
		var one shown
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		at := key{one.Job, one.Handler}
		all[at] = append(all[at], one)
	}
	for _, handler := range []string{"17", "2022"} {
		got := all[key{0, handler}]
		const first = `{"user":{"__typename":"User","followings":{"__typename":"UserConnection","nodes":[{"__typename":"User","id":"5"}]},"id":"1"}}`
		const whole = `{"user":{"__typename":"User","bio":null,"commonFollowings":{"__typename":"UserConnection","nodes":[{"__typename":"User","handle":"u3","id":"3"},{"__typename":"User","handle":"u4","id":"4"}]},` +
			`"followings":{"__typename":"UserConnection","nodes":[{"__typename":"User","id":"5"}],"totalCount":4},"id":"1","name":"User 1"}}`
		if n := len(got); n < 4 || got[0].DataState != "empty" || got[1].DataState != "streaming" || asJSON(t, got[1].Data) != first ||
			got[n-2].DataState != "complete" || asJSON(t, got[n-2].Data) != whole || got[n-1].DataState != "cache" || asJSON(t, got[n-1].Data) != whole {
			t.Errorf("handler %s shows %s", handler, asJSON(t, got))
		}
		for job, want := range map[int]string{1: "NOT_FOUND", 2: "UNAVAILABLE"} {
			got := all[key{job, handler}]
			if n := len(got); n < 4 || asJSON(t, got[1].Data) == "null" || !strings.Contains(asJSON(t, got[n-2].Errors), want) {
				t.Errorf("handler %s shows of job %d %s", handler, job, asJSON(t, got))
			}
		}
	}
}

// graphql-js 17 defers the same fragments as Kith, and sends the same data. (If two fragments beside each other have fields
// in common, graphql-js sends them once, and Kith with each fragment.)
func TestGraphQLJSDefersTheSame(t *testing.T) {
	_, s := deferring(t, nil)
	type task struct {
		Query string         `json:"query"`
		Data  map[string]any `json:"data"`
	}
	var tasks []task
	var ours [][]map[string]any
	for _, query := range []string{
		named,
		`{ ... @defer { user(id: 1) { id } } }`,
		`{ user(id: 1) { ...F @defer } } fragment F on User { id handle }`,
		`{ user(id: 1) { id ...F @defer ...F } } fragment F on User { id handle }`,
		`{ user(id: 1) { id ... @defer(label: "a") { handle } ... @defer(label: "b") { name } } }`,
		`{ user(id: 1) { id ... @defer { id handle ... @defer(label: "in") { id handle name } } } }`,
		`{ user(id: 1) { id ... @defer { id ... @defer { name } } } }`,
		`{ user(id: 1) { id listVisibility { followings } } ... @defer { user(id: 1) { id name listVisibility { followers } } } }`,
		`{ user(id: 1) { id listVisibility { followings } ... @defer { listVisibility { followings } } } }`,
		`{ node(id: 1) { __typename id ... on Post @defer { text } ... on User @defer { name } } }`,
		`{ user(id: 1) { id ... @defer(if: false) { handle } ... @defer @include(if: false) { name } } }`,
		`{ user(id: 77) { id ... @defer { handle } } }`,
		`{ user(id: 1) { id ... @defer { handle listVisibility { followings ... @defer(label: "deep") { followers } } } } }`,
	} {
		tasks = append(tasks, task{query, s.query(query).Data})
		whole, messages := s.parts(byID, query)
		if messages == nil {
			messages = []string{whole}
		}
		var read []map[string]any
		for _, m := range messages {
			var one map[string]any
			if err := json.Unmarshal([]byte(m), &one); err != nil {
				t.Fatal(err)
			}
			read = append(read, one)
		}
		ours = append(ours, read)
	}
	schema, err := sdl.Of(generated.NewExecutableSchema(generated.Config{}).Schema())
	if err != nil {
		t.Fatal(err)
	}
	var theirs [][]map[string]any
	if err := json.Unmarshal(node(t, "graphql.mjs", asJSON(t, map[string]any{"schema": schema, "cases": tasks})), &theirs); err != nil {
		t.Fatal(err)
	}
	for i, task := range tasks {
		got, want := sent(ours[i]), sent(theirs[i])
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Kith sends\n%s\ngraphql-js\n%s", task.Query, asJSON(t, ours[i]), asJSON(t, theirs[i]))
		}
	}
}

// sent collects what messages contain: the first data, and the data of each part, by its path and label.
func sent(messages []map[string]any) map[string]any {
	all := map[string]any{"": messages[0]["data"]}
	names := map[any]string{}
	list := func(of any) (objects []map[string]any) {
		some, _ := of.([]any)
		for _, one := range some {
			objects = append(objects, one.(map[string]any))
		}
		return objects
	}
	for _, m := range messages {
		for _, p := range list(m["pending"]) {
			text, _ := json.Marshal([]any{p["path"], p["label"]})
			names[p["id"]] = string(text)
			all[string(text)] = map[string]any{}
		}
		for _, one := range list(m["incremental"]) {
			at := all[names[one["id"]]].(map[string]any)
			below, _ := one["subPath"].([]any)
			for _, step := range below {
				next, ok := at[step.(string)].(map[string]any)
				if !ok {
					next = map[string]any{}
					at[step.(string)] = next
				}
				at = next
			}
			for name, value := range one["data"].(map[string]any) {
				at[name] = value
			}
		}
		for _, one := range list(m["completed"]) {
			all["completed "+names[one["id"]]] = one["errors"]
		}
	}
	return all
}
