package faults_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"kith/files/importer"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore"
)

// graph is a graph from a file in a store on two servers with two databases each. It has more
// users, between whom tests write, and connections that bypass the store and the binlogs.
type graph struct {
	*sqlstore.Store
	dsns     []string
	shardMap *storage.ShardMap
	past     []*sql.Conn // by shard; their writes are in no binlog
	users    []storage.UserID
	others   []storage.UserID // users who are not in the file
}

// firstOther is above every id of the files.
const firstOther = 10_000_000

// loadGraph imports a graph.
func loadGraph(t testing.TB, servers testenv.Servers, data testgraph.Graph) *graph {
	t.Helper()
	g := &graph{dsns: servers.FreshDatabases(t, 2)}
	g.shardMap = storage.NewShardMap(len(g.dsns))
	var err error
	g.Store, err = sqlstore.Open(t.Context(), sqlstore.Config{Location: g.location()})
	must.OK(t, err)
	t.Cleanup(func() { g.Store.Close() })
	report, err := importer.Run(t.Context(), g.Store, importer.Config{Files: []string{data.File}, Strict: true})
	must.OK(t, err)
	t.Logf("%d edges in %.1f s", report.Handled(), report.Elapsed.Seconds())
	for _, dsn := range g.dsns {
		g.past = append(g.past, pastTheBinlog(t, dsn))
	}
	g.users = g.ids(t, "SELECT user_id FROM users")
	var others []storage.User
	for i := range 1000 {
		id := storage.UserID(firstOther + i)
		g.others = append(g.others, id)
		others = append(others, storage.User{ID: id, Handle: "u" + id.String(), Name: "User " + id.String(), CreatedAt: 1, UpdatedAt: 1})
	}
	must.All(t, g.CreateUsers(t.Context(), others))
	return g
}

func (g *graph) location() string { return "mysql:" + strings.Join(g.dsns, ";") }

// pastTheBinlog is a connection whose writes are in no binlog.
func pastTheBinlog(t testing.TB, dsn string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("mysql", dsn+"?interpolateParams=true")
	must.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	c, err := db.Conn(t.Context())
	must.OK(t, err)
	if !testenv.HasBinlog() {
		return c
	}
	_, err = c.ExecContext(t.Context(), "SET SESSION sql_log_bin = 0")
	must.OK(t, err)
	return c
}

func (g *graph) ids(t testing.TB, query string) (ids []storage.UserID) {
	t.Helper()
	for _, c := range g.past {
		each(t, c, query, func(rows *sql.Rows) error {
			var id storage.UserID
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	}
	slices.Sort(ids)
	return ids
}

func each(t testing.TB, c *sql.Conn, query string, row func(*sql.Rows) error) {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), query)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		must.OK(t, row(rows))
	}
	must.OK(t, rows.Err())
}

// rows reads all rows of a side in the order of their shards' keys, bypassing the store. Tombstones
// at time 0, which mean the same as no row, are left out.
func (g *graph) rows(t testing.TB, side storage.Side) (all []storage.Edge) {
	t.Helper()
	for _, c := range g.past {
		each(t, c, "SELECT from_user_id, to_user_id, type, update_time FROM "+side.String(), func(rows *sql.Rows) error {
			var e storage.Edge
			err := rows.Scan(&e.From, &e.To, &e.Type, &e.UpdateTime)
			if e.Type != storage.None || e.UpdateTime != 0 {
				all = append(all, e)
			}
			return err
		})
	}
	slices.SortFunc(all, func(a, b storage.Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return all
}

// ofData returns the rows whose edges are in the file.
func ofData(rows []storage.Edge) []storage.Edge {
	return slices.DeleteFunc(slices.Clone(rows), func(e storage.Edge) bool { return e.From >= firstOther })
}

// whole fails the test unless both sides are equal, row for row, and every count is
// the number of rows.
func (g *graph) whole(t testing.TB) {
	t.Helper()
	forward, inverse := g.rows(t, storage.Forward), g.rows(t, storage.Inverse)
	check.That(t, slices.Equal(forward, inverse), "the sides differ: %d rows of following, %d of follower", len(forward), len(inverse))
	for shard, c := range g.past {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			owner := "from_user_id"
			if side == storage.Inverse {
				owner = "to_user_id"
			}
			each(t, c, fmt.Sprintf(`SELECT u.user_id, COALESCE(c.%[1]s_count, -1), COALESCE(e.n, 0)
				FROM users u
				LEFT JOIN user_counts c ON c.user_id = u.user_id
				LEFT JOIN (SELECT %[2]s AS owner, COUNT(*) AS n FROM %[1]s WHERE type = 1 GROUP BY %[2]s) e ON e.owner = u.user_id
				WHERE COALESCE(c.%[1]s_count, -1) <> COALESCE(e.n, 0)`, side, owner), func(rows *sql.Rows) error {
				var user, have, are int64
				err := rows.Scan(&user, &have, &are)
				t.Errorf("shard %d, user %d: %s_count is %d, there are %d", shard, user, side, have, are)
				return err
			})
		}
		wrong, err := g.WrongFriends(t.Context(), shard, sides.OwnerRange{UpTo: math.MaxInt64})
		check.That(t, err == nil && len(wrong) == 0, "shard %d, counts of friends: %v, %v", shard, wrong, err)
	}
}

// exec writes on the shard of a user, bypassing the store and the binlog.
func (g *graph) exec(t testing.TB, owner storage.UserID, text string, args ...any) {
	t.Helper()
	_, err := g.past[g.shardMap.Of(owner)].ExecContext(t.Context(), text, args...)
	must.OK(t, err)
}

// put writes the row of an edge. A row of type None at time 0 is removed instead.
func (g *graph) put(t testing.TB, side storage.Side, e storage.Edge) {
	t.Helper()
	owner := side.Owner(e.Pair())
	if e.Type == storage.None && e.UpdateTime == 0 {
		g.exec(t, owner, "DELETE FROM "+side.String()+" WHERE from_user_id = ? AND to_user_id = ?", int64(e.From), int64(e.To))
		return
	}
	g.exec(t, owner, "REPLACE INTO "+side.String()+" (from_user_id, to_user_id, type, update_time) VALUES (?, ?, ?, ?)",
		int64(e.From), int64(e.To), int64(e.Type), int64(e.UpdateTime))
}
