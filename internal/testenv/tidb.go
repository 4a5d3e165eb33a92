package testenv

import (
	"os"
	"path/filepath"
	"strconv"
)

// tiDBEngine is one process of TiDB with a store in its own memory and files (unistore), without
// TiKV. It makes its first data in a second, so that there is nothing to copy.
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
			}
		},
		data: func(serverDir string) error {
			return os.WriteFile(filepath.Join(serverDir, "init.sql"), []byte(appUser), 0o600)
		},
	}
}
