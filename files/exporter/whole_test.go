package exporter

import (
	"database/sql"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/files/importer"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage/sqlstore"
)

// peoplesTables are the columns that an import of an export restores, for all tables that hold what users
// have done.
var peoplesTables = map[string]string{
	"users": `SELECT user_id, handle, name, bio, avatar_url, website, created_at, updated_at,
		followings_visibility, followers_visibility, undiscoverable, locked, attributes FROM users`,
	"user_words":           "SELECT user_id, word FROM user_words",
	"handles":              "SELECT handle, user_id FROM handles",
	"following":            "SELECT from_user_id, to_user_id, type, update_time, first_at FROM following",
	"follower":             "SELECT from_user_id, to_user_id, type, update_time FROM follower",
	"friend_request":       "SELECT from_user_id, to_user_id, type, update_time, message FROM friend_request",
	"friend_request_inbox": "SELECT from_user_id, to_user_id, type, update_time FROM friend_request_inbox",
	"user_counts":          "SELECT user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited FROM user_counts",
	"edge_marks":           "SELECT from_user_id, to_user_id, special, remark, attributes FROM edge_marks",
	"user_states":          "SELECT user_id, state, suspended_at FROM user_states",
	"moderation_log":       "SELECT owner_id, at, user_id, action, operator, reason, ends_at, number FROM moderation_log",
	"post":                 "SELECT author_id, post_id, client_key, text, media, created_at, edited_at, state, attributes FROM post",
	"post_counts": `SELECT c.author_id, c.post_id, c.comment_count, c.favorite_count FROM post_counts c
		JOIN post p ON p.author_id = c.author_id AND p.post_id = c.post_id WHERE p.state = 0`,
	"comment": `SELECT c.author_id, c.comment_id, c.post_id, c.user_id, c.client_key, c.text, c.created_at FROM comment c
		JOIN post p ON p.author_id = c.author_id AND p.post_id = c.post_id WHERE p.state = 0`, // nobody can see other comments
	"favorite":        "SELECT from_user_id, to_user_id, post_id, type, update_time FROM favorite",
	"identities":      "SELECT digest, user_id, issuer, subject, linked_at FROM identities",
	"user_list":       "SELECT owner, number, name, public FROM user_list",
	"relation":        "SELECT from_user_id, to_user_id, kind, type, update_time, ends_at, attributes FROM relation",
	"relation_inbox":  "SELECT from_user_id, to_user_id, kind, type, update_time FROM relation_inbox",
	"relation_counts": "SELECT owner, kind, outgoing, incoming FROM relation_counts WHERE outgoing <> 0 OR incoming <> 0",
	"favorite_inbox":  "SELECT from_user_id, to_user_id, post_id, type, update_time FROM favorite_inbox",
}

// madeAnew are tables, or beginnings of their names, that a store creates by itself, or that front ends fill again, or that last for days.
var madeAnew = []string{"packed_", "kith_", "relation_log", "sqlite_", "seen", "import_part"}

// An import of an export holds the same rows, table by table.
func TestAnImportOfAnExportHasTheSameRows(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		sameRows(t, "sqlite", "sqlite:"+filepath.Join(dir, "a.db"), "sqlite:"+filepath.Join(dir, "b.db")+";"+filepath.Join(dir, "c.db"))
	})
	t.Run(testenv.Engine(), func(t *testing.T) {
		dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 3)
		sameRows(t, "mysql", "mysql:"+dsns[0], "mysql:"+dsns[1]+";"+dsns[2])
	})
}

func sameRows(t *testing.T, driver, from, to string) {
	a, b := openStore(t, from), openStore(t, to)
	fill(t, a)
	dir := filepath.Join(t.TempDir(), "copy")
	report := mustExport(t, a, Config{Dir: dir, Page: 3})
	_, err := importer.Run(t.Context(), b, importer.Config{Files: []string{dir}, Strict: true})
	must.OK(t, err)
	for table, text := range peoplesTables {
		want, got := rowsOf(t, driver, a, text), rowsOf(t, driver, b, text)
		check.That(t, len(want) > 0 && slices.Equal(got, want), "%s:\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	again := mustExport(t, b, Config{Dir: t.TempDir()})
	check.That(t, maps.Equal(report.Totals, again.Totals), "digests %v, then %v", report.Totals, again.Totals)
	tables := "SHOW TABLES"
	if driver == "sqlite" {
		tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
	}
	for _, table := range rowsOf(t, driver, a, tables) {
		_, compared := peoplesTables[table]
		if !compared && !slices.ContainsFunc(madeAnew, func(begin string) bool { return strings.HasPrefix(table, begin) }) {
			t.Errorf("nobody has said whether %s is exported", table)
		}
	}
}

func openStore(t *testing.T, location string) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: location})
}

// rowsOf returns the rows of all shards in ascending order.
func rowsOf(t *testing.T, driver string, s *sqlstore.Store, text string) (all []string) {
	t.Helper()
	for _, address := range s.Addresses() {
		db, err := sql.Open(driver, address)
		must.OK(t, err)
		rows, err := db.QueryContext(t.Context(), text)
		must.OK(t, err)
		columns, err := rows.Columns()
		must.OK(t, err)
		for rows.Next() {
			values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			must.OK(t, rows.Scan(into...))
			var fields []string
			for _, v := range values {
				fields = append(fields, v.String)
			}
			all = append(all, strings.Join(fields, "|"))
		}
		must.OK(t, rows.Err())
		rows.Close()
		db.Close()
	}
	slices.Sort(all)
	return all
}
