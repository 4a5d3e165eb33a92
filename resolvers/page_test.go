package resolvers_test

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// onStores runs a test over an empty reference store. The engines keep the same promises (internal/storagetest), and the random worlds are read
// from them, see [TestEverybodySeesWhatIsOpenToThem]; the long tests, and make test-engines, repeat everything on them.
func onStores(t *testing.T, test func(t *testing.T, store storage.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, oracle.New()) })
	if allEngines() {
		onEngines(t, test)
	}
}

// allEngines reports whether tests run on engines that could run on the reference store alone.
func allEngines() bool { return testenv.AllTests() || os.Getenv("KITH_TEST_ENGINE") != "" }

// onEngines runs a test over an empty store of each engine.
func onEngines(t *testing.T, test func(t *testing.T, store storage.Store)) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprintf("SQLite, %d shards", shards), func(t *testing.T) {
			if shards == 1 {
				testenv.Long(t) // the store keeps the same promises, see TestConformanceSQLite
			}
			test(t, opened.Store(t, sqlstore.Config{Location: apitest.Location(t, shards), StatementTimeout: generous}))
		})
	}
	t.Run("MariaDB, 2 shards", func(t *testing.T) {
		databases := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)
		test(t, opened.Store(t, sqlstore.Config{Location: "mysql:" + strings.Join(databases, ";"), StatementTimeout: generous}))
	})
}

// page is a page of any list, as the API gives it.
type page struct {
	Edges      []edge
	Nodes      []node
	PageInfo   pageInfo
	TotalCount int
	Complete   bool
}

type edge struct {
	Cursor     string
	FollowedAt *string
	Node       node
}

type node struct{ ID string }

type pageInfo struct {
	HasNextPage, HasPreviousPage bool
	StartCursor, EndCursor       *string
}

func selectPage(field string) string {
	return ` { edges { cursor ` + sinceOf(field) + ` node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } totalCount complete }`
}

// pageOf asks for a page of a user's list, such as `followings(first: 3)`, and checks what is true
// of every page.
func pageOf(t apitest.T, api *apitest.API, user storage.UserID, field string) page {
	t.Helper()
	answer := api.For(t).Ask(fmt.Sprintf(`{ user(by: {id: %s}) { list: %s %s } }`, user, field, selectPage(field)), nil).Whole()
	p := apitest.Into[page](answer, "user.list")
	checkPage(t, field, p)
	return p
}

// pagesAt asks for one page after another, up to the last. The query goes on behind $after, and its page is at a path of the answer.
func pagesAt(api *apitest.API, query string, vars apitest.Vars, path string) iter.Seq2[int, apitest.Answer] {
	return func(yield func(int, apitest.Answer) bool) {
		asked := apitest.Vars{"after": nil}
		maps.Copy(asked, vars)
		for n, more := 0, true; more; n++ {
			answer := api.Ask(query, asked).Whole()
			if !yield(n, answer) {
				return
			}
			more, asked["after"] = answer.At(path+".pageInfo.hasNextPage") == true, answer.At(path+".pageInfo.endCursor")
		}
	}
}

func checkPage(t apitest.T, field string, p page) {
	t.Helper()
	check.Equal(t, field, len(p.Nodes), len(p.Edges))
	for i, e := range p.Edges {
		check.That(t, e.Node == p.Nodes[i] && e.Cursor != "", "%s: edge %d is %+v, node %+v", field, i, e, p.Nodes[i])
	}
	start, end := p.PageInfo.StartCursor, p.PageInfo.EndCursor
	if n := len(p.Edges); n > 0 {
		check.That(t, start != nil && *start == p.Edges[0].Cursor && end != nil && (!p.Complete || *end == p.Edges[n-1].Cursor), "%s: start and end %v, %v; edges %+v", field, start, end, p.Edges)
	} else if start != nil {
		t.Errorf("%s: an empty page starts at %s", field, *start)
	}
	check.That(t, !p.PageInfo.HasNextPage || end != nil || strings.Contains(field, "first: 0") || strings.Contains(field, "last:"), "%s: goes on, nothing says where", field)
}

// ids lists the users of a page.
func (p page) ids() []string {
	ids := make([]string, len(p.Edges))
	for i, e := range p.Edges {
		ids[i] = e.Node.ID
	}
	return ids
}

// is fails the test unless the page has these users and these neighbours.
func (p page) is(t apitest.T, what string, want []string, next, previous bool) {
	t.Helper()
	if !slices.Equal(p.ids(), want) || p.PageInfo.HasNextPage != next || p.PageInfo.HasPreviousPage != previous {
		t.Errorf("%s: %v, next %t, previous %t; want %v, %t, %t", what,
			p.ids(), p.PageInfo.HasNextPage, p.PageInfo.HasPreviousPage, want, next, previous)
	}
}

// storeOf is the reference engine with the users 1 to n.
func storeOf(t testing.TB, n int) *oracle.Store {
	t.Helper()
	store := oracle.New()
	apitest.Users(t, store, n)
	return store
}

// withUsers is an API over the reference engine with the users 1 to n.
func withUsers(t *testing.T, n int, o apitest.Options) (*apitest.API, *oracle.Store) {
	t.Helper()
	store := storeOf(t, n)
	return apitest.New(t, store, o), store
}

func userID(t testing.TB, text string) storage.UserID {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	must.OK(t, err)
	return storage.UserID(n)
}
