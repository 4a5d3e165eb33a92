//go:build unix

package cli

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/must"
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
	must.All(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "ada", Name: "Ada"}}))
	for _, command := range [][]string{{"export", filepath.Join(folder, "export")}, {"copy", location("copy")}} {
		done(t, append(command, "--store="+location("store"))...)
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
