package baseline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kith/accounts/identity"
	"kith/bench"
	"kith/files/importer"
	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The baseline is a fair comparison only if it gives exactly the answers that Kith gives.
func TestAnswersAreThoseOfTheGateway(t *testing.T) {
	graph := bench.NewGraph(6000, 42) // its celebrities have more followers than one merge here takes
	graph.Degree = 10
	onEach(t, 1, func(t *testing.T, locations []string) {
		gateway := fill(t, locations[0], graph)
		baseline := serveBaseline(t, locations[0])
		random := rand.New(rand.NewPCG(1, 2))
		for _, q := range bench.Questions {
			for range 30 {
				arguments := q.Draw(graph, random)
				body := q.AppendBody(nil, arguments)
				want, got := post(t, gateway, body, ""), post(t, baseline, body, "")
				if !bytes.Equal(got, want) {
					t.Fatalf("%s\nthe baseline answers %s\nKith              %s", body, got, want)
				}
				must.OK(t, q.Check(arguments, got))
			}
		}
	})
}

// After the same requests, the baseline has written the same rows as Kith, and has answered the same.
func TestWritesAreThoseOfTheGateway(t *testing.T) {
	graph := bench.NewGraph(300, 42) // so small that many users are friends, and lose more than one edge
	graph.Degree = 15
	onEach(t, 2, func(t *testing.T, locations []string) {
		gateway := fill(t, locations[0], graph)
		fill(t, locations[1], graph)
		baseline := serveBaseline(t, locations[1])
		all := map[string][]string{}
		for _, url := range []string{gateway, baseline} {
			mix, err := bench.NewMix(graph, []byte("a secret for tests of 32 bytes or more"))
			must.OK(t, err)
			err = mix.Ask(7, 1500, func(body []byte, token string) (int, []byte, error) {
				answer := post(t, url, body, token)
				all[url] = append(all[url], string(body)+timesAside(answer))
				return http.StatusOK, answer, nil
			})
			must.OK(t, err)
		}
		for i, want := range all[gateway] {
			if got := all[baseline][i]; got != want {
				t.Fatalf("the baseline answers\n%s\nKith\n%s", got, want)
			}
		}
		want, got := rowsOf(t, locations[0]), rowsOf(t, locations[1])
		for table := range want {
			if got[table] != want[table] || want[table] == "" {
				t.Errorf("%s: the baseline leaves\n%.500s\nKith\n%.500s", table, got[table], want[table])
			}
		}
	})
}

var changing = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"|,"extensions":\{"consistencyToken":"[^"]*"\}`)

// timesAside removes what depends on the clock, and the tokens, which the baseline does not have.
func timesAside(answer []byte) string { return changing.ReplaceAllString(string(answer), "") }

// rowsOf reads everything that the mix can have changed, except times.
func rowsOf(t *testing.T, location string) map[string]string {
	t.Helper()
	dbs, err := open(location)
	must.OK(t, err)
	defer dbs.close()
	all := map[string]string{}
	for table, query := range map[string]string{
		"following":   "SELECT from_user_id, to_user_id, '', '' FROM following WHERE type = 1 ORDER BY 1, 2",
		"follower":    "SELECT from_user_id, to_user_id, '', '' FROM follower WHERE type = 1 ORDER BY 1, 2",
		"user_counts": "SELECT c.user_id, following_count, follower_count, friend_count FROM user_counts c JOIN users u ON u.user_id = c.user_id ORDER BY 1",
		"users":       "SELECT user_id, handle, name, '' FROM users ORDER BY 1",
		"handles":     "SELECT handle, user_id, '', '' FROM handles ORDER BY 1",
		"edge_marks":  "SELECT m.from_user_id, m.to_user_id, m.special, m.remark FROM edge_marks m ORDER BY 1, 2",
	} {
		rows, err := dbs.read.Query(query)
		must.OK(t, err)
		defer rows.Close()
		var text strings.Builder
		for rows.Next() {
			var row [4]string
			must.OK(t, rows.Scan(&row[0], &row[1], &row[2], &row[3]))
			fmt.Fprintln(&text, row)
		}
		must.OK(t, rows.Err())
		all[table] = text.String()
	}
	return all
}

// onEach runs a test on SQLite and on MariaDB, each with a number of empty stores.
func onEach(t *testing.T, stores int, test func(t *testing.T, locations []string)) {
	t.Run("sqlite", func(t *testing.T) {
		var locations []string
		for range stores {
			locations = append(locations, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
		}
		test(t, locations)
	})
	t.Run("mariadb", func(t *testing.T) {
		var locations []string
		for _, dsn := range testenv.SharedMariaDB(t, 1).FreshDatabases(t, stores) {
			locations = append(locations, "mysql:"+dsn)
		}
		test(t, locations)
	})
}

// fill puts the graph into a store, and returns where Kith answers from it.
func fill(t *testing.T, location string, graph *bench.Graph) (url string) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	must.OK(t, err)
	t.Cleanup(func() { store.Close() })
	if _, err := importer.Run(t.Context(), store, importer.Config{Files: []string{graphFile(t, graph)}}); err != nil {
		t.Fatal(err)
	}
	users := make([]storage.User, 0, graph.Users)
	for n := 1; n <= graph.Users; n++ { // some users of these graphs have no edges
		id := graph.ID(n)
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "u" + id.String(), CreatedAt: 1, UpdatedAt: 1})
	}
	for _, r := range store.CreateUsers(t.Context(), users) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return apitest.New(t, store, apitest.Options{}).URL()
}

// serveBaseline runs the baseline program's own loop.
func serveBaseline(t *testing.T, location string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, location, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/graphql"
}

func graphFile(t *testing.T, graph *bench.Graph) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graph.tsv")
	file, err := os.Create(path)
	must.OK(t, err)
	defer file.Close()
	if _, err := graph.WriteTo(file); err != nil {
		t.Fatal(err)
	}
	return path
}

// post sends a request, signed in at the test's gateway with the token.
func post(t *testing.T, url string, body []byte, token string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	must.OK(t, err)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
		viewer, err := viewerOf(request)
		must.OK(t, err)
		request.Header.Set("X-Test-Viewer", strconv.FormatInt(viewer, 10))
		if bytes.Contains(body, []byte("mutation AddNode(")) {
			request.Header.Set("X-Test-Scope", identity.ScopeAdmin)
		}
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must.OK(t, err)
	return answer
}
