package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// tiDBEngine is one process of TiDB with a store in its own memory and files (unistore), without
// TiKV. It makes its first data in a second, so no template is copied.
//
// All tables are in one region and batches are large, for [MariaDBServer.CommitInOneStep].
func tiDBEngine(bin string) *engine {
	return &engine{
		name: "tidb",
		bin:  bin,
		args: func(s *Server) []string {
			return []string{
				"-store", "unistore",
				"-path", dataDir(s.dir),
				"-temp-dir", tmpDir(s.dir),
				"-host", "127.0.0.1",
				"-P", strconv.Itoa(s.port),
				"-socket", s.Socket(),
				"-report-status=false",
				"-L", "warn",
				"-log-slow-query", filepath.Join(s.dir, "slow"), // not in the folder of the test
				"-initialize-sql-file", filepath.Join(s.dir, "init.sql"),
				"-config", filepath.Join(s.dir, "config.toml"),
			}
		},
		data: func(serverDir string) error {
			batches := "SET GLOBAL tidb_txn_commit_batch_size = 16777216;\n"
			return errors.Join(
				os.WriteFile(filepath.Join(serverDir, "init.sql"), []byte(appUser+batches), 0o600),
				os.WriteFile(filepath.Join(serverDir, "config.toml"), []byte("split-table = false\n"), 0o600))
		},
	}
}

// CommitInOneStep prepares the server for being killed; only TiDB needs that. Its store for tests
// forgets the locks of transactions when it ends, properly or not: it writes them to a file that it
// never reads. If it commits a transaction in two steps, first one row and then the others, only a
// part of the rows may exist after that. Rows in one region and one batch can be committed in one
// step. Other tests do not use this: simultaneous inserts of the same row may then fail with error
// 8141, which they do not in two steps.
func (m *MariaDBServer) CommitInOneStep(t testing.TB) {
	t.Helper()
	if Engine() == "tidb" {
		m.Exec(t, "SET GLOBAL tidb_enable_1pc = ON")
	}
}
