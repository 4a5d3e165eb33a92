package program_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
)

// readTable reads following or follower from all shards, the oldest row first. It checks that each
// row is on its owner's shard, and is a follow. Times are relative to the first row.
func readTable(t testing.TB, table, owner string, shards ...database) (edges []testgraph.Edge, times []int64) {
	t.Helper()
	type row struct {
		testgraph.Edge
		time int64
	}
	var list []row
	for i, d := range shards {
		rows, err := d.open(t).Query("SELECT from_user_id, to_user_id, type, update_time FROM " + table)
		must.OK(t, err)
		for rows.Next() {
			var r row
			var kind int
			must.OK(t, rows.Scan(&r.From, &r.To, &kind, &r.time))
			of := r.From
			if owner == "to_user_id" {
				of = r.To
			}
			must.That(t, kind == 1 && bucketShard(of, len(shards)) == i, "%s of shard %d has %+v of type %d", table, i, r, kind)
			list = append(list, r)
		}
		must.OK(t, rows.Err())
	}
	slices.SortFunc(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, r := range list {
		edges, times = append(edges, r.Edge), append(times, r.time-list[0].time)
	}
	return edges, times
}

// holdsGraph checks that both tables of all shards hold exactly these edges, in their order and at
// the same times, and that all counts are right.
func holdsGraph(t testing.TB, graph []testgraph.Edge, shards ...database) {
	t.Helper()
	following, times := readTable(t, "following", "from_user_id", shards...)
	follower, inverseTimes := readTable(t, "follower", "to_user_id", shards...)
	check.That(t, slices.Equal(following, graph), "following has %d rows, which are not the %d of the graph in their order", len(following), len(graph))
	if !slices.Equal(follower, following) || !slices.Equal(inverseTimes, times) {
		t.Errorf("follower has %d rows, which are not the %d of following", len(follower), len(following))
	}
	for i := range times {
		if times[i] != int64(i) {
			t.Errorf("edge %d has the time %d", i, times[i])
			break
		}
	}
	users := usersOf(graph)
	for _, table := range []string{"users", "handles", "user_counts"} {
		check.Equal(t, "rows of "+table, total(t, "SELECT COUNT(*) FROM "+table, shards...), int64(users))
	}
	countsAgree(t, shards...)
}

// usersOf counts the users of a graph.
func usersOf(graph []testgraph.Edge) int {
	users := map[int64]bool{}
	for _, e := range graph {
		users[e.From], users[e.To] = true, true
	}
	return len(users)
}

// countsAgree compares every count with the rows that it counts, and looks for users with rows but
// without counts. Counts must agree at any moment, even while an import is between the two tables.
func countsAgree(t testing.TB, shards ...database) {
	t.Helper()
	for what, query := range map[string]string{
		"following_count": `SELECT COUNT(*) FROM user_counts c WHERE following_count <>
			(SELECT COUNT(*) FROM following WHERE from_user_id = c.user_id AND type = 1)`,
		"follower_count": `SELECT COUNT(*) FROM user_counts c WHERE follower_count <>
			(SELECT COUNT(*) FROM follower WHERE to_user_id = c.user_id AND type = 1)`,
		"counts of following": `SELECT COUNT(*) FROM following WHERE from_user_id NOT IN (SELECT user_id FROM user_counts)`,
		"counts of follower":  `SELECT COUNT(*) FROM follower WHERE to_user_id NOT IN (SELECT user_id FROM user_counts)`,
		"counts of users":     `SELECT COUNT(*) FROM users WHERE user_id NOT IN (SELECT user_id FROM user_counts)`,
	} {
		check.Equal(t, what+" that are wrong or missing", total(t, query, shards...), 0)
	}
}

// total adds up the number that a query selects on each shard.
func total(t testing.TB, query string, shards ...database) int64 {
	t.Helper()
	sum := int64(0)
	for _, d := range shards {
		n, err := strconv.ParseInt(d.text(t, query), 10, 64)
		must.OK(t, err)
		sum += n
	}
	return sum
}

// TestKilledImportGoesOn kills an import at several points, checks that the store is sound and can
// be served, and lets the import continue until the graph is the same as the file's.
func TestKilledImportGoesOn(t *testing.T) {
	t.Parallel()
	killedImport(t, testgraph.Generate(t, testgraph.Small))
}

// TestLongKilledImportGoesOn is the same with a real graph.
func TestLongKilledImportGoesOn(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	killedImport(t, testgraph.Real(t, "wiki-vote"))
}

func killedImport(t *testing.T, g testgraph.Graph) {
	graph := g.Edges(t)
	onMariaDB(t, func(t *testing.T, make func(testing.TB, int) []database) {
		shards := laidOut(t, make(t, 4)...)
		store := kithtest.Args("--store", location(shards...))
		start := func() *kithtest.Command {
			return kithtest.Launch(t, kithtest.Args("import", "--chunk=2000", g.File), store)
		}
		kills := 2 // once in each table
		if testenv.AllTests() {
			kills = 4
		}
		for kill := range kills {
			running := start()
			// Sometimes this kills it between the two tables, by chance.
			table := []string{"following", "follower"}[kill%2]
			enough := int64(len(graph)*(kill+1)/(kills+3) + 777*kill)
			running.Until(t, "rows", func() bool { return total(t, "SELECT COUNT(*) FROM "+table, shards...) >= enough })
			must.Equal(t, "the code of what was killed", running.Kill(t).Code, -1)
			if shards[0].driver == "sqlite" {
				sound(t, shards...)
			}
			countsAgree(t, shards...)
			missing := total(t, "SELECT COUNT(*) FROM following", shards...) - total(t, "SELECT COUNT(*) FROM follower", shards...)
			t.Logf("killed with %d rows in following, %d of them not in follower", total(t, "SELECT COUNT(*) FROM following", shards...), missing)

			gateway := kithtest.Start(t, store)
			gateway.Query(t, `query($id: ID!) { user(by: {id: $id}) { followingCount followings(first: 100) { totalCount } } }`,
				map[string]any{"id": fmt.Sprint(graph[0].From)}, new(any))
			endedWell(t, gateway.Interrupt(t))
		}

		interrupted := start()
		rows := total(t, "SELECT COUNT(*) FROM follower", shards...)
		interrupted.Until(t, "rows", func() bool { return total(t, "SELECT COUNT(*) FROM follower", shards...) > rows+5000 })
		end := interrupted.Interrupt(t)
		if end.Code != 1 || !regexp.MustCompile(`(?m)^import: going on after [\d,]+ lines\n(.*\n)*kith: interrupted after \d+ lines; run the same command again to go on from there\n$`).MatchString(end.Stderr) {
			t.Errorf("interrupted: %+v", end)
		}
		countsAgree(t, shards...) // the other side of what is half written comes when the import is continued

		end = start().Wait(t)
		want := regexp.MustCompile(fmt.Sprintf(`^imported %s edges and %s users in .*\n  duplicates +0\n  existed +0\n  self-follows +0\n  malformed +0\n$`,
			thousands(len(graph)), thousands(usersOf(graph))))
		check.That(t, end.Code == 0 && want.MatchString(end.Stdout) && strings.HasPrefix(end.Stderr, "import: going on after "), "gone on with: %+v", end)
		holdsGraph(t, graph, shards...)
	})
}

// TestImportSurvivesItsServer kills one of two servers during an import.
func TestImportSurvivesItsServer(t *testing.T) {
	t.Parallel()
	g := testgraph.Generate(t, testgraph.Small)
	graph := g.Edges(t)
	server := testenv.MariaDB(t)
	server.CommitInOneStep(t)
	shards := []database{
		{"mysql", testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]},
		{"mysql", server.CreateDatabase(t, "kith")},
	}
	laidOut(t, shards...)
	options := kithtest.Args("import", "--chunk=2000", "--store", location(shards...), g.File)
	running := kithtest.Launch(t, options)
	running.Until(t, "rows", func() bool { return total(t, "SELECT COUNT(*) FROM follower", shards...) >= int64(len(graph)/3) })
	server.Kill(t)
	end := running.Wait(t)
	if end.Code != 1 || !strings.Contains(end.Stderr, "run the same command again to go on from there") ||
		!strings.Contains(end.Stderr, server.Addr()+"/kith") || strings.Contains(end.Stderr, "app:app") || strings.Contains(end.Stderr, "goroutine ") {
		t.Errorf("with a server gone: %+v", end)
	}
	server.Restart(t)
	end = kithtest.Run(t, options)
	check.That(t, end.Code == 0 && strings.HasPrefix(end.Stdout, "imported "+thousands(len(graph))+" edges"), "gone on with: %+v", end)
	holdsGraph(t, graph, shards...)
}

// thousands writes a number with a comma between thousands.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
