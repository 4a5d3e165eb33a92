package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
)

// Free room on a disk, below which there is a warning, and below which nothing can be relied on.
const (
	littleRoom = 1 << 30
	noRoom     = 64 << 20
)

// examineFile examines a shard on SQLite. A file that is not there is not made.
func (d *DB) examineFile(ctx context.Context, s *examined, path string) {
	s.name = path
	s.of += " (" + path + ")"
	folder := filepath.Dir(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.OK("file", s.of, "there is none yet: the first start creates it")
		for _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder); _, err = os.Stat(folder) {
			folder = filepath.Dir(folder)
		}
	case err != nil:
		s.Fail("file", s.of, err.Error(), "correct KITH_STORE, or the rights of the folder")
		return
	default:
		s.openFile(ctx, path, info)
	}
	s.examineDisk(folder)
}

func (s *examined) openFile(ctx context.Context, path string, info fs.FileInfo) {
	pool, err := sqlitePool(path, 1, "query_only(1)")
	if err != nil {
		s.Fail("file", s.of, err.Error(), "")
		return
	}
	var mode, version string
	// Served by no index: a PRAGMA has one row.
	if err := pool.QueryRowContext(ctx, `SELECT sqlite_version(), journal_mode FROM pragma_journal_mode`).Scan(&version, &mode); err != nil {
		s.Fail("file", s.of, err.Error(), "is it a database of SQLite, and readable?")
		_ = pool.Close()
		return
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		s.Fail("file", s.of, err.Error(), "let this user write it")
	} else {
		_ = file.Close()
		s.OK("file", s.of, "%s, SQLite %s, journal mode %s", humanize.Bytes(uint64(info.Size())), version, mode)
	}
	s.shard = &Shard{Name: path, Read: pool, Write: pool, migrations: pool, dialect: sqliteDialect}
}

func (s *examined) examineDisk(folder string) {
	free, err := freeBytes(folder)
	says := fmt.Sprintf("%s free in %s", humanize.Bytes(free), folder)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		s.Fail("disk", s.of, fmt.Sprintf("%s: %v", folder, err), "correct KITH_STORE, or the rights of the folder")
	case free < noRoom:
		s.Fail("disk", s.of, says, "make room")
	case free < littleRoom:
		s.Warn("disk", s.of, says, "free some space: a write-ahead log alone may take hundreds of MB")
	default:
		s.OK("disk", s.of, "%s", says)
	}
}
