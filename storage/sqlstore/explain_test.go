package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// A plan is what an engine says about one table access of a statement.
type plan struct {
	index string // "" if it uses none
	scan  bool   // reads the whole table or index
	sort  bool   // sorts, or builds a temporary table
	text  string
}

// TestPlansMariaDB asks the server how it runs every statement.
func TestPlansMariaDB(t *testing.T) {
	t.Parallel()
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	checkPlans(t, "mysql:"+dsns[0], "MySQL", explainServer)
}

// TestPlansSQLite asks SQLite the same.
func TestPlansSQLite(t *testing.T) {
	t.Parallel()
	checkPlans(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "SQLite", explainSQLite)
}

// checkPlans runs every statement of the dialect's file, and compares the index that the engine uses with the
// index that the file names, see [TestStatements].
func checkPlans(t *testing.T, location, dialect string, explain func(*testing.T, *sql.DB, Statement) []plan) {
	all := readStatements(t, statementFiles[dialect])
	seen := &recorder{}
	s, err := Open(t.Context(), Config{Location: location, StatementTimeout: time.Minute, OnStatement: seen.record})
	must.OK(t, err)
	defer s.Close()
	s.packed.Close() // because runPacked packs
	fillForPlans(t, s)
	fillSideTables(t, s)
	seen.reset()
	runHotLookUps(t.Context(), s)
	runSideLookUps(t, s)
	runScans(t, s)
	runHotApplies(t, s)
	runHotWrites(t, s)
	runSideWrites(t, s)

	reported := map[string]bool{}
	explained := map[string]bool{}
	for _, st := range seen.all() {
		must.That(t, st.Err == nil, "%s: %v", st.Lookup, st.Err)
		text := strings.TrimLeft(st.Text, "(")
		if !isStatement.MatchString(text) {
			continue
		}
		of := st.Lookup + st.Text + fmt.Sprint(st.Args) // both engines look the arguments up in their statistics of an index
		if explained[of] {
			continue
		}
		explained[of] = true
		want, known := servedBy(all, ofAllBuckets(st.Text))
		check.That(t, known, "%s does not stand in %s as it is run:\n%.300s", st.Lookup, statementFiles[dialect], st.Text)
		if slices.Contains(ofShards, st.Lookup) || !beginsStatement.MatchString(text) {
			continue // an INSERT looks nothing up
		}
		for _, p := range explain(t, s.db.Shard(0).Write, st) {
			bad := p.scan || p.sort && !slices.Contains(mayTurn, st.Lookup) || p.index == "" && !p.sort
			if reported[st.Lookup+p.text] || takesTheList(st, p) {
				continue
			}
			if bad && !isScan(st) || p.index != "" && !slices.Contains(want, p.index) {
				reported[st.Lookup+p.text] = true
				t.Errorf("%s of %d keys: want %v without scan and sort, got %s\n%.300s", st.Lookup, st.Keys, want, p.text, st.Text)
			}
		}
	}
	for _, known := range all {
		name := known.name[strings.LastIndex(known.name, ".")+1:] // without the package
		if testenv.Engine() == "tidb" && slices.ContainsFunc(notOnTiDB, func(begin string) bool { return strings.HasPrefix(name, begin) }) {
			continue
		}
		check.That(t, known.explained || unexplained[name] != "" || known.indexes == nil, "%s, %s, was not explained", known.name, known.of)
	}
}

// identityOf is the identity of a user whose plans are checked.
func identityOf(id storage.UserID) storage.Identity {
	return storage.Identity{Issuer: "https://id.example.org", Subject: id.String()}
}

// ofAllBuckets is a statement of digests as it is in the file, without the text that selects buckets, or peers of one owner.
func ofAllBuckets(text string) string {
	for side, condition := range sqlOfBuckets[:db.MarkSide] {
		text = strings.Replace(text, condition, "\nGROUP BY", 1)
		text = strings.Replace(text, ofPeers[side], ofOwners[side], 1)
	}
	return text
}

// fillForPlans makes tables in which a wrong index would look cheap: 10,000 users, half of them with
// edges, some with thousands, including tombstones.
func fillForPlans(t *testing.T, s *Store) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var users []storage.User
	for id := storage.UserID(1); id <= 10_000; id++ {
		users = append(users, storage.User{ID: id, Handle: fmt.Sprintf("user_%d", id), Name: "A"})
	}
	must.All(t, s.CreateUsers(t.Context(), users))
	_, err := s.db.Shard(0).Write.ExecContext(t.Context(), `
INSERT INTO identities (digest, user_id, issuer, subject, linked_at)
SELECT handle, user_id, 'https://id.example.org', handle, 1 FROM handles`)
	must.OK(t, err)
	var edges []storage.Edge
	for from := storage.UserID(1); from <= 5000; from++ {
		degree := 4
		if from <= 4 {
			degree = 3000
		}
		for range degree {
			kind := storage.Following
			if r.IntN(10) == 0 {
				kind = storage.None
			}
			to := storage.UserID(1 + r.IntN(5000))
			if r.IntN(4) == 0 {
				to = storage.UserID(1 + r.IntN(4))
			}
			edges = append(edges, storage.Edge{From: from, To: to, Type: kind, UpdateTime: storage.Micros(r.Int64N(1e9))})
		}
	}
	for _, side := range packedSides {
		must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
	}
	for _, requests := range []string{"friend_request", "friend_request_inbox"} { // the same edges, at once
		const columns = "(from_user_id, to_user_id, type, update_time)"
		_, err := s.db.Shard(0).Write.ExecContext(t.Context(), "INSERT INTO "+requests+" "+columns+" SELECT "+strings.Trim(columns, "()")+" FROM following")
		must.OK(t, err)
	}
	_, err = s.db.Shard(0).Write.ExecContext(t.Context(), `
INSERT INTO edge_marks (from_user_id, to_user_id, special, remark)
SELECT from_user_id, to_user_id, 0, 'x' FROM following WHERE type = 1 AND to_user_id > 2500`)
	must.OK(t, err)
	analyze := []string{"ANALYZE TABLE users, handles, identities, edge_marks, following, follower, friend_request, friend_request_inbox, user_counts"}
	if s.HasLog() {
		analyze = []string{"ANALYZE"}
	}
	for _, text := range analyze {
		_, err := s.db.Shard(0).Write.ExecContext(t.Context(), text)
		must.OK(t, err)
	}
}

// runHotLookUps runs each look-up with one key, with some and with many, for short lists and for long
// lists.
func runHotLookUps(ctx context.Context, s *Store) {
	for _, n := range []int{1, 20, 899} {
		ids := make([]storage.UserID, n)
		handles := make([]string, n)
		identities := make([]storage.Identity, n)
		ofOne := make([]storage.Pair, n)
		ofMany := make([]storage.Pair, n)
		ofSecond := make([]storage.Pair, n)
		for i := range ids {
			ids[i] = storage.UserID(1 + i*5)
			handles[i] = fmt.Sprintf("user_%d", 1+i*5)
			identities[i] = identityOf(ids[i])
			ofOne[i] = storage.Pair{From: 1, To: ids[i]}
			ofMany[i] = storage.Pair{From: ids[i], To: 2}
			ofSecond[i] = storage.Pair{From: 2, To: ids[i]}
		}
		storage.UserLookups.Read(ctx, s, ids...)
		storage.ProfileLookups.Read(ctx, s, ids...)
		storage.HandleLookups.Read(ctx, s, handles...)
		storage.IdentityLookups.Read(ctx, s, identities...)
		storage.CountLookups.Read(ctx, s, ids...)
		(&creation{Store: s, users: []storage.User{{ID: 1}}, results: make([]storage.Result[bool], 1)}).firstOfEach(ctx)
		for _, side := range storage.Sides {
			storage.EdgeLookups[side].Read(ctx, s, ofOne...)
			storage.EdgeLookups[side].Read(ctx, s, ofMany...)
			storage.EdgeLookups[side].Read(ctx, s, slices.Concat(ofOne, ofSecond)...)
			storage.NeighbourLookups[side].Read(ctx, s, ids...)
			_, _ = s.neighboursOfAnybody(ctx, 0, side, ids, make(map[storage.UserID][]storage.UserID))
			_, _ = s.neighboursByRow(ctx, 0, side, ids[n-1])
			var pages []storage.PageQuery
			middle := storage.Position{UpdateTime: 5e8, Peer: 2500}
			for _, id := range ids[:min(n, 500)] {
				pages = append(pages, storage.PageQuery{Owner: id, Limit: 21})
			}
			storage.PageLookups[side].Read(ctx, s, pages...)
			for i := range pages {
				pages[i].After = middle
			}
			storage.PageLookups[side].Read(ctx, s, pages...)
			for i := range pages {
				pages[i].After, pages[i].Before, pages[i].Backward = storage.Position{}, middle, true
			}
			storage.PageLookups[side].Read(ctx, s, pages...)
			for i := range pages {
				pages[i].After = storage.Position{UpdateTime: 8e8, Peer: 1}
			}
			storage.PageLookups[side].Read(ctx, s, pages...)
		}
	}
	storage.IsEmpty(ctx, s)
}

// runHotApplies applies to each table one edge, some edges of one owner, and many edges of many owners,
// new and old ones, of each type.
func runHotApplies(t *testing.T, s *Store) {
	t.Helper()
	for _, side := range storage.Sides {
		for kind := storage.None; kind <= storage.Removed; kind++ {
			unknown := edgesFrom(side, 4020+storage.UserID(kind), 100, kind) // all of them new
			one := edgesFrom(side, 4000+storage.UserID(kind), 1, kind)
			some := edgesFrom(side, 4010+storage.UserID(kind), 30, kind)
			var many []storage.Edge
			for owner := storage.UserID(4100); owner < 4110; owner++ {
				many = append(many, edgesFrom(side, owner, 20, kind)...)
			}
			for _, edges := range [][]storage.Edge{unknown, one, some, many, many} {
				must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
			}
		}
	}
}

func edgesFrom(side storage.Side, owner storage.UserID, n int, kind storage.EdgeType) []storage.Edge {
	edges := make([]storage.Edge, n)
	for i := range edges {
		p := side.Pair(owner, storage.UserID(6000+i))
		edges[i] = storage.Edge{From: p.From, To: p.To, Type: kind, UpdateTime: storage.Micros(2e9) + storage.Micros(kind)}
	}
	return edges
}

// runHotWrites runs each kind of transaction that a request may cause.
func runHotWrites(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	var changes []storage.EdgeChange
	for id := storage.UserID(100); id < 300; id++ {
		changes = append(changes, storage.EdgeChange{To: id, Type: storage.Following, At: 2e9})
	}
	for _, inverse := range []bool{false, true} {
		for _, list := range [][]storage.EdgeChange{changes[:1], changes} {
			must.All(t, s.ChangeEdges(ctx, storage.Forward, 4001, list, storage.ChangeOptions{Inverse: inverse}))
		}
	}
	for _, kind := range []storage.EdgeType{storage.None, storage.Blocking} {
		for i := range changes {
			changes[i].Type = kind
		}
		for _, inverse := range []bool{false, true} {
			for _, list := range [][]storage.EdgeChange{changes[:1], changes[1:]} {
				must.All(t, s.ChangeEdges(ctx, storage.Forward, 4001, list, storage.ChangeOptions{Inverse: inverse, MaxBlocks: 1 << 30}))
			}
		}
	}
	for _, act := range []storage.EdgeType{storage.Pending, storage.Accepted, storage.Removed} {
		_, err := storagetest.Request(ctx, s, storage.Pair{From: 1, To: 19_000}, storage.EdgeChange{Type: act, At: 3e9},
			storage.ChangeOptions{TTL: time.Hour, MaxPending: 10_000, Inverse: true})
		must.OK(t, err)
	}
	for _, n := range []int{1, 2, 300} {
		var repairs []sides.Repair
		for id := range storage.UserID(n) {
			repairs = append(repairs, sides.Repair{Pair: storage.Pair{From: 1, To: 1000 + id}})
		}
		must.All(t, s.RepairInverse(ctx, repairs))
	}
	name := "B"
	_, _, err := s.UpdateProfile(ctx, 7, storage.ProfileChange{Name: &name}, 1)
	must.OK(t, err)
	_, err = s.SetPassword(ctx, 7, storage.PasswordChange{New: "x", At: 1, EndsTokens: true})
	must.OK(t, err)
	storage.PasswordLookups.Read(ctx, s, 7)
	must.OK(t, s.Claim(ctx, "new", 90_001, 0)) // for an id without a user
	must.OK(t, s.Register(ctx, storage.User{ID: 90_000, Handle: "new", Name: "N", CreatedAt: 2 * judge.ClaimTTL}, "x"))
	var imported []storage.User
	for id := range storage.UserID(900) {
		imported = append(imported, storage.User{ID: 91_000 + id, Handle: fmt.Sprintf("left_%d", id), Name: "N"})
	}
	must.OK(t, s.Claim(ctx, "left_7", 91_007, 0))
	must.All(t, s.CreateUsers(ctx, imported))
}

// takesTheList recognises a choice that MySQL makes: for 500 edges of one owner or more it may read the
// list if the list is as short, because the list's index holds all columns.
func takesTheList(st Statement, p plan) bool {
	return testenv.Engine() == "mysql" && strings.HasPrefix(st.Lookup, "edges.") && st.Keys >= 500 && strings.HasSuffix(p.index, "_list")
}

// explainServer asks MariaDB, MySQL or TiDB. Each of them returns a plan in different columns.
func explainServer(t *testing.T, db *sql.DB, st Statement) []plan {
	t.Helper()
	conn, err := db.Conn(t.Context())
	must.OK(t, err)
	defer conn.Close()
	explain := planMariaDB
	switch testenv.Engine() {
	case "mysql":
		_, err := conn.ExecContext(t.Context(), "SET explain_format = 'TRADITIONAL'")
		must.OK(t, err)
	case "tidb":
		explain = planTiDB
	}
	rows, err := conn.QueryContext(t.Context(), "EXPLAIN "+st.Text, st.Args...)
	must.That(t, err == nil, "explain %s: %v", st.Lookup, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must.OK(t, err)
	var plans []plan
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		must.OK(t, rows.Scan(into...))
		row := map[string]string{}
		for i, column := range columns {
			row[column] = values[i].String
		}
		if p, ok := explain(st, row); ok {
			plans = append(plans, p)
		}
	}
	return plans
}

// planMariaDB reads a row of a plan of MariaDB or MySQL. It returns false if the row is no access to a table.
func planMariaDB(st Statement, row map[string]string) (plan, bool) {
	table, access, key, extra := row["table"], row["type"], row["key"], row["Extra"]
	switch extra {
	case "Impossible WHERE noticed after reading const tables", "Select tables optimized away", "No matching min/max row", "no matching row in const table",
		"Not optimized, outer query is empty":
		return plan{}, false // such a row does not exist
	case "No tables used":
		return plan{}, false // a row of arguments
	}
	if access == "const" && key == "" || strings.HasPrefix(table, "<derived") {
		return plan{}, false // such a row does not exist, or its SELECT has a row of its own
	}
	if st.Lookup == "empty" {
		access = "" // it reads only the first row of an index
		key = "PRIMARY"
	}
	return plan{
		index: key,
		scan:  access == "ALL" || access == "index",
		sort:  strings.Contains(extra, "filesort") || strings.Contains(extra, "temporary"),
		text:  fmt.Sprintf("%s %s: %s by %s (%s)", row["select_type"], table, access, key, extra),
	}, true
}

// planTiDB reads an operator. Operators that read have an access object, such as
// "table:f, index:idx_follower_list(to_user_id, …)". For rows that an index has found, it names the index.
// A sort of a few rows in memory looks like a sort of many, so sorts are not checked.
func planTiDB(st Statement, row map[string]string) (plan, bool) {
	operator, object := strings.TrimLeft(row["id"], "│├└─ "), row["access object"]
	if object == "" || strings.HasPrefix(operator, "TableRowIDScan") || strings.HasPrefix(operator, "TableDual") {
		return plan{}, false
	}
	p := plan{index: "PRIMARY", text: operator + " " + object}
	if _, index, found := strings.Cut(object, "index:"); found {
		p.index, _, _ = strings.Cut(index, "(")
	}
	if strings.Contains(operator, "FullScan") && st.Lookup != "empty" {
		p.scan, p.index = true, operator // not allowed for a range of owners either
	}
	return p, true
}

func explainSQLite(t *testing.T, db *sql.DB, st Statement) []plan {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+st.Text, st.Args...)
	must.That(t, err == nil, "explain %s: %v", st.Lookup, err)
	defer rows.Close()
	var plans []plan
	for rows.Next() {
		var id, parent, unused int
		var text string
		must.OK(t, rows.Scan(&id, &parent, &unused, &text))
		if !strings.HasPrefix(text, "SEARCH ") && !strings.HasPrefix(text, "SCAN ") && !strings.HasPrefix(text, "USE ") {
			continue // COMPOUND QUERY, CO-ROUTINE, UNION ALL
		}
		if onlyNames := strings.Contains(text, "wanted") || strings.Contains(text, "subquery") || strings.HasSuffix(text, " counted") || strings.HasSuffix(text, " famous") || text == "SCAN sqlite_sequence" || strings.Contains(text, "CONSTANT ROW") || strings.Contains(text, "-ROW VALUES"); onlyNames {
			continue // the list of keys, or the rows of a SELECT that has a row of its own
		}
		p := plan{text: text, sort: strings.HasPrefix(text, "USE TEMP")}
		switch {
		case strings.Contains(text, "PRIMARY KEY"), strings.Contains(text, "sqlite_autoindex"), text == "SEARCH relation_log": // the first of a log
			p.index = "PRIMARY"
		case strings.Contains(text, "INDEX "):
			_, after, _ := strings.Cut(text, "INDEX ")
			p.index, _, _ = strings.Cut(after, " ")
		}
		p.scan = strings.HasPrefix(text, "SCAN ")
		if st.Lookup == "empty" || strings.Contains(st.Text, "kith_admitted") {
			p.scan, p.index = false, "PRIMARY" // it reads only the first row, or tables of one row
		}
		plans = append(plans, p)
	}
	return plans
}

// A recorder keeps every statement that a store runs.
type recorder struct {
	mu         sync.Mutex
	statements []Statement
}

func (r *recorder) record(_ context.Context, st Statement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements = append(r.statements, st)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements = nil
}

func (r *recorder) all() []Statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.statements)
}
