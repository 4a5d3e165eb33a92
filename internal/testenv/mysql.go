package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// mySQLEngine is MySQL, unpacked in a folder.
func mySQLEngine(mysqld, folder string) *engine {
	share := filepath.Join(folder, "usr/share/mysql")
	common := append([]string{
		"--no-defaults", // first, or it is not understood
		"--basedir=" + filepath.Join(folder, "usr"),
		"--lc-messages-dir=" + share,
		"--character-sets-dir=" + filepath.Join(share, "charsets"),
		"--plugin-dir=" + filepath.Join(folder, "usr/lib/mysql/plugin"),
		"--secure-file-priv=",
		"--mysqlx=OFF",
		"--innodb-redo-log-capacity=" + logFileSize,
	}, asRoot()...)
	return &engine{
		name: "mysql",
		bin:  mysqld,
		args: func(s *Server) []string {
			return slices.Concat(common, familyArgs(s), []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--performance-schema=OFF"})
		},
		data: func(serverDir string) error {
			return copyTemplate(serverDir, "mysql", mysqld, common, func(draft, scratch string) error {
				return makeMySQL(mysqld, common, draft, scratch)
			})
		},
	}
}

// makeMySQL initialises a data directory. MySQL has no bootstrap mode: the account comes from a
// file that a server runs at its start, and whose last line ends it. auto.cnf holds the server's
// identity, which copies must not share.
func makeMySQL(mysqld string, common []string, draft, scratch string) error {
	options := slices.Concat(common, []string{"--datadir=" + draft, "--tmpdir=" + scratch})
	if out, err := exec.Command(mysqld, append(options, "--initialize-insecure")...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s --initialize-insecure: %w\n%s", mysqld, err, out)
	}
	statements := filepath.Join(scratch, "init.sql")
	if err := os.WriteFile(statements, []byte(appUser+"SHUTDOWN;\n"), 0o600); err != nil {
		return err
	}
	first := exec.Command(mysqld, append(options, "--init-file="+statements, "--skip-networking",
		"--socket="+filepath.Join(scratch, "sock"), "--pid-file="+filepath.Join(scratch, "pid"))...)
	if out, err := first.CombinedOutput(); err != nil {
		return fmt.Errorf("%s --init-file: %w\n%s", mysqld, err, out)
	}
	return os.Remove(filepath.Join(draft, "auto.cnf"))
}
