package changes_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"kith/files/changes"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// searchIndex is the recipe for full text search: a row for each post, and the cursor in the same transaction.
type searchIndex struct{ *sql.DB }

func newSearchIndex(t *testing.T) searchIndex {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "search.db"))
	if err == nil {
		_, err = db.Exec(`CREATE VIRTUAL TABLE posts USING fts5 (subject UNINDEXED, text); CREATE TABLE place (cursor TEXT)`)
	}
	must.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return searchIndex{db}
}

func (s searchIndex) take(e changes.Event) error {
	tx, err := s.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if e.Type == "kith.posts" {
		if _, err := tx.Exec(`DELETE FROM posts WHERE subject = ?`, e.Subject); err != nil {
			return err
		}
		if text, there := e.Data["text"]; there {
			if _, err := tx.Exec(`INSERT INTO posts VALUES (?, ?)`, e.Subject, text); err != nil {
				return err
			}
		}
	}
	if e.Cursor != "" {
		if _, err := tx.Exec(`DELETE FROM place; INSERT INTO place VALUES (?)`, e.Cursor); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// find lists the posts that have a word.
func (s searchIndex) find(t *testing.T, word string) (subjects []string) {
	t.Helper()
	rows, err := s.Query(`SELECT subject FROM posts WHERE posts MATCH ? ORDER BY subject`, word)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var subject string
		must.OK(t, rows.Scan(&subject))
		subjects = append(subjects, subject)
	}
	return subjects
}

// appendRow is the recipe for analytics: a flat object a line, as JSONEachRow of ClickHouse and read_json of DuckDB take it.
func appendRow(to io.Writer, e changes.Event) error {
	if e.Type == changes.Position {
		return nil
	}
	row := map[string]string{"source": e.Source, "event": e.ID, "type": e.Type}
	if !e.Time.IsZero() {
		row["time"] = e.Time.Format(time.RFC3339Nano)
	}
	for name, value := range e.Data {
		if _, taken := row[name]; !taken {
			row[name] = value
		}
	}
	return json.NewEncoder(to).Encode(row)
}

// cache is the recipe for a cache in front of the API.
type cache map[string]string

func (c cache) forget(e changes.Event) {
	delete(c, strings.TrimSuffix(strings.TrimPrefix(e.Type, "kith."), "s")+":"+e.Subject)
}

func TestRecipes(t *testing.T) {
	t.Parallel()
	onEachLog(t, func(t *testing.T, store *sqlstore.Store, _ []string) {
		ctx := t.Context()
		ada, ben := ofShard(store, 0, 1)[0], ofShard(store, 1, 1)[0]
		must.All(t, store.CreateUsers(ctx, []storage.User{{ID: ada, Handle: "ada", CreatedAt: 1e6}, {ID: ben, Handle: "ben", CreatedAt: 1e6}}))
		_, cursor := read(t, store, "")
		index := newSearchIndex(t)
		var file bytes.Buffer
		kept := cache{"user:" + ada.String(): "Ada", "user:" + ben.String(): "Ben", "follow:" + ada.String() + "/" + ben.String(): "none"}
		follow := func() {
			t.Helper()
			events, _ := read(t, store, cursor)
			for _, e := range events {
				must.OK(t, index.take(e))
				must.OK(t, appendRow(&file, e))
				kept.forget(e)
			}
			must.OK(t, index.QueryRow(`SELECT cursor FROM place`).Scan(&cursor))
		}
		publish := func(number int64, text string) storage.PostID {
			t.Helper()
			id := storage.PostID{Author: ada, Number: number}
			_, _, err := store.Publish(ctx, storage.PostRow{PostID: id, Key: text[:1] + "key", Text: text, At: 3e6})
			must.OK(t, err)
			return id
		}
		first, second := publish(71, "a lighthouse at night"), publish(72, "two lighthouse keepers")
		follow()
		subject := func(id storage.PostID) string { return ada.String() + "/" + storage.UserID(id.Number).String() }
		got, want := index.find(t, "lighthouse"), []string{subject(first), subject(second)}
		check.That(t, slices.Equal(got, want), "found %v, want %v", got, want)
		edited := "a harbor by day"
		_, _, err := store.EditPost(ctx, first, storage.PostChange{Text: &edited}, 4e6)
		must.OK(t, err)
		_, err = store.DeletePost(ctx, second)
		must.OK(t, err)
		must.All(t, store.ChangeEdges(ctx, storage.Forward, ada, []storage.EdgeChange{{To: ben, Type: storage.Following, At: 5e6}}, storage.ChangeOptions{}))
		follow()
		check.Equal(t, "what is found of what was edited and deleted", len(index.find(t, "lighthouse")), 0)
		check.Equal(t, "found", index.find(t, "harbor"), []string{subject(first)})
		check.That(t, len(kept) == 2 && kept["follow:"+ada.String()+"/"+ben.String()] == "", "the cache has %v, and forgets only what has changed", kept)
		types, ids := map[string]int{}, map[string]bool{}
		for _, line := range strings.Split(strings.TrimSpace(file.String()), "\n") {
			var row map[string]string // flat, and all text
			err := json.Unmarshal([]byte(line), &row)
			must.That(t, err == nil, "%s: %v", line, err)
			types[row["type"]]++
			if key := row["source"] + row["event"]; ids[key] {
				t.Errorf("%s is there twice", key)
			} else {
				ids[key] = true
			}
		}
		check.That(t, types["kith.follows"] == 1 && types["kith.posts"] >= 4, "the file has %v", types)
	})
}
