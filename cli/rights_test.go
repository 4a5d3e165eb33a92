//go:build unix

package cli

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sqlstore"
)

// What is made of a graph may be read by the account that makes it alone: a store, with its log, while it is open, a copy and an export.
func TestFilesOfAStoreArePrivate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	location := func(name string) string { return "sqlite:" + filepath.Join(folder, name, "kith.db") }
	store := opened.Store(t, sqlstore.Config{Location: location("store")})
	if results := store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "ada", Name: "Ada"}}); results[0].Err != nil {
		t.Fatal(results)
	}
	for _, command := range [][]string{{"export", filepath.Join(folder, "export")}, {"copy", location("copy")}} {
		var out, complaints bytes.Buffer
		if code := Run(t.Context(), append(command, "--store="+location("store")), &out, &complaints); code != 0 {
			t.Fatal(command, code, complaints.String())
		}
	}
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files = append(files, filepath.Base(path))
		if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if all := strings.Join(files, " "); err != nil || strings.Count(all, "kith.db") < 4 || !strings.Contains(all, "kith.db-wal") || !strings.Contains(all, "kith-export.json") {
		t.Errorf("%s, %v", all, err)
	}
}
