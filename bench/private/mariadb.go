package private

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is a server.
type MariaDB struct {
	*Process
	address string
}

// account may do everything on the server, which only this machine reaches.
const account = `FLUSH PRIVILEGES;
CREATE USER 'kith'@'127.0.0.1' IDENTIFIED BY 'kith';
GRANT ALL ON *.* TO 'kith'@'127.0.0.1' WITH GRANT OPTION;
`

// StartMariaDB makes a server with its data in a folder that does not exist yet. It writes a binlog as production does, and waits for the
// disk as little as the other servers that the six questions are put to: each commit reaches the operating system, not the disk.
func StartMariaDB(ctx context.Context, folder string) (*MariaDB, error) {
	mariadbd, err := Find("mariadbd")
	if err != nil {
		return nil, err
	}
	installDB, err := Find("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	tmp := filepath.Join(folder, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	common := []string{"--no-defaults", "--datadir=" + filepath.Join(folder, "data"), "--tmpdir=" + tmp, "--innodb-log-file-size=512M"}
	if os.Getuid() == 0 {
		common = append(common, "--user=root") // mariadbd refuses root without it
	}
	install := exec.CommandContext(ctx, installDB, append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	bootstrap := exec.CommandContext(ctx, mariadbd, append(common, "--bootstrap")...)
	bootstrap.Stdin = strings.NewReader(account)
	if out, err := bootstrap.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadbd --bootstrap: %w\n%s", err, out)
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	process, err := Start(filepath.Join(folder, "log"), nil, mariadbd, append(common,
		"--socket="+filepath.Join(folder, "sock"), "--pid-file="+filepath.Join(folder, "pid"),
		"--bind-address=127.0.0.1", "--port="+port, "--skip-name-resolve", "--max-connections=500",
		"--query-cache-type=0", "--query-cache-size=0", "--character-set-server=utf8mb4", "--performance-schema=OFF",
		"--innodb-buffer-pool-size=2G", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0",
		"--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL", "--server-id=1", "--gtid-strict-mode=ON",
	)...)
	if err != nil {
		return nil, err
	}
	m := &MariaDB{process, address}
	if err := m.Answers(ctx, func(ctx context.Context) error { return Execute(ctx, m.DSN(""), "DO 1") }); err != nil {
		_ = m.Stop()
		return nil, err
	}
	return m, nil
}

// DSN is go-sql-driver's name of a database on the server; an empty name is none.
func (m *MariaDB) DSN(database string) string {
	return fmt.Sprintf("kith:kith@tcp(%s)/%s", m.address, database)
}

// Execute runs one statement over a connection of its own.
func Execute(ctx context.Context, dsn, statement string) error {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	config.Logger = &mysql.NopLogger{} // errors are returned
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}
