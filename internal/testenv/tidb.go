package testenv

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// tiDBEngine is one process of TiDB with a store in its own memory and files (unistore), without
// TiKV. It makes its first data in a second, so that there is nothing to copy.
//
// The store forgets the locks of transactions when it ends, in order or not: it writes them to a file
// that it never reads. The rows of a transaction that it commits in two steps, the first of them and
// then the others, may then be there in part. Those of one region that fit one batch are committed
// in one step. So all tables are in one region, and batches are large.
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
			inOneStep := "SET GLOBAL tidb_enable_1pc = ON;\nSET GLOBAL tidb_txn_commit_batch_size = 16777216;\n"
			return errors.Join(
				os.WriteFile(filepath.Join(serverDir, "init.sql"), []byte(appUser+inOneStep), 0o600),
				os.WriteFile(filepath.Join(serverDir, "config.toml"), []byte("split-table = false\n"), 0o600))
		},
	}
}
