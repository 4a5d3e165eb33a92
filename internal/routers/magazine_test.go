package routers_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// composed composes a schema of Kith with the second subgraph magazine, as Apollo does and as Cosmo does, and returns what is wrong.
func composed(t *testing.T, flags ...string) (byApollo, cosmo string) {
	t.Helper()
	file := printed(t, append([]string{"schema", "--federation"}, flags...)...)
	out, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `
		import { readFileSync } from "node:fs";
		import { composeServices } from "@apollo/composition";
		import { parse } from "graphql";
		import { typeDefs } from "./magazine.mjs";
		const kith = parse(readFileSync(process.argv[1], "utf8"));
		for (const e of composeServices([{ name: "kith", typeDefs: kith }, { name: "magazine", typeDefs }]).errors ?? []) console.log(e.message);
	`, "--", file).CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	return string(out), byCosmo(t, file, "magazine")
}

// byCosmo returns what is wrong with a schema of Kith and the second subgraph.
func byCosmo(t *testing.T, file, second string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "node", "cosmo.mjs", file, second).CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	return string(out)
}

// TestNamesOfTwoSubgraphs: a graph that has names of Kith composes with it if Kith gets a prefix and does without its posts. Each of
// these alone leaves names that collide.
func TestNamesOfTwoSubgraphs(t *testing.T) {
	testenv.Clients(t)
	testenv.NPM(t, ".")
	for _, c := range []struct{ flags, collide, not string }{
		{"", "Mutation.register Post.author Post.media Post.comments Query.user User.posts Visibility", "Kith"},
		{"--without=posts,accounts", "Query.user Visibility", "Post. register User.posts"},
		{"--type-prefix=Kith", "User.posts", "Post. register Query.user Visibility"},
		{"--type-prefix=Kith --without=posts", "", "."},
		{"--type-prefix=Kith --without=posts,accounts", "", "."},
	} {
		wrong, byCosmo := composed(t, strings.Fields(c.flags)...)
		check.That(t, (byCosmo == "") == (c.collide == ""), "%s: Cosmo says %s", c.flags, byCosmo)
		for _, name := range strings.Fields(c.collide) {
			check.That(t, strings.Contains(wrong, name), "%s: %s does not collide: %s", c.flags, name, wrong)
		}
		for _, name := range strings.Fields(c.not) {
			check.That(t, !strings.Contains(wrong, `"`+name), "%s: %s collides: %s", c.flags, name, wrong)
		}
	}
}

// asked is a query with the names of both, and its answer: the magazine has the name of its authors, Kith all other users' names.
const (
	asked = `{ magazine { title visibility media { src } comments { body } author { id handle listVisibility { __typename followers } posts { title } } }
		kithSearchUsers(text: "maya_okafor", first: 1) { nodes { handle followings(first: 1) { __typename } } } user(handle: "maya") { id name handle } }`
	answered = `{"magazine": [
		{"title": "Title 1", "visibility": "PUBLISHED", "media": [{"src": "cover.png"}], "comments": [{"body": "Well said"}], "author":
			{"id": "1", "handle": "maya_okafor", "listVisibility": {"__typename": "KithListVisibility", "followers": "EVERYONE"}, "posts": [{"title": "Title 1"}]}},
		{"title": "Title 2", "visibility": "PUBLISHED", "media": [{"src": "cover.png"}], "comments": [{"body": "Well said"}], "author":
			{"id": "2", "handle": "mateo_silva", "listVisibility": {"__typename": "KithListVisibility", "followers": "EVERYONE"}, "posts": [{"title": "Title 2"}]}}],
		"kithSearchUsers": {"nodes": [{"handle": "maya_okafor", "followings": {"__typename": "KithFollowConnection"}}]},
		"user": {"id": "1", "name": "Author 1", "handle": "maya_okafor"}}`
)

// shape are the flags of a Kith that does without what the magazine has.
var shape = []string{"--type-prefix=Kith", "--without=posts,accounts"}

// TestAGraphWithTheSameNames: behind each router, both subgraphs answer their own fields.
func TestAGraphWithTheSameNames(t *testing.T) {
	kith := serve(t, shape...)
	file := printed(t, append([]string{"schema", "--federation"}, shape...)...)
	for _, arguments := range [][]string{{"apollo", "-"}, {"hive", file}, {"mesh", file}, {"stitch", printed(t, append([]string{"schema"}, shape...)...)}} {
		t.Run(arguments[0], func(t *testing.T) { start(t, kith, append(arguments, "magazine")...).answers(asked, answered) })
	}
}

// TestCommandsOfRouters: `mesh-compose` writes a supergraph by the file mesh.config.mjs, and `hive-gateway` serves it by gateway.config.mjs.
func TestCommandsOfRouters(t *testing.T) {
	kith := serve(t, shape...)
	at := filepath.Dir(printed(t, append([]string{"schema", "--federation"}, shape...)...))
	second := start(t, kith, "none", filepath.Join(at, "kith.graphql"), "magazine")
	for _, name := range []string{"node_modules", "mesh.mjs", "mesh.config.mjs", "hive.mjs", "gateway.config.mjs"} {
		from, err := filepath.Abs(name)
		if err == nil {
			err = link(from, filepath.Join(at, name))
		}
		must.OK(t, err)
	}
	seen := &seen{}
	compose := exec.CommandContext(t.Context(), "node_modules/.bin/mesh-compose", "-o", "supergraph.graphql")
	compose.Dir = at
	compose.Env = append(os.Environ(), "KITH_URL="+seen.observed(t, kith.URL), "ARTICLES_URL="+second.url)
	out, err := compose.CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	r := &router{t, hive(t, at), seen}
	r.answers(asked, answered)
	maya := token(t, map[string]any{"sub": "1"})
	r.take()
	r.whole(`{ kithViewer { __typename } }`, "Authorization", maya)
	asked := r.take()
	check.That(t, len(asked) == 1 && asked[0].header.Get("Authorization") == maya, "Kith was asked %+v", asked)
}

// hive starts the command `hive-gateway` in a folder, and returns its address.
func hive(t *testing.T, at string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	cmd := exec.Command("node", "node_modules/@graphql-hive/gateway/dist/bin.js", "supergraph", "supergraph.graphql", "--host", "127.0.0.1", "--port", port)
	cmd.Dir, cmd.Stderr = at, os.Stderr
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url := "http://127.0.0.1:" + port
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if response, err := http.Get(url + "/readiness"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return url + "/graphql"
			}
		}
	}
	t.Fatal("hive-gateway does not serve")
	return ""
}

// link is a link to a folder, or a copy of a file: node looks for packages beside the file that it runs.
func link(from, to string) error {
	if info, err := os.Stat(from); err != nil || info.IsDir() {
		return os.Symlink(from, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// answers fails the test unless the data of an answer is what is wanted.
func (r *router) answers(query, want string) {
	r.t.Helper()
	_, a := r.whole(query)
	var got struct{ Data any }
	var wanted any
	must.OK(r.t, json.Unmarshal([]byte(want), &wanted))
	err := json.Unmarshal(a.text, &got)
	check.That(r.t, err == nil && reflect.DeepEqual(got.Data, wanted), "it is %s, want %s", a.text, want)
}
