// Package private starts database servers for the benchmark alone, with their data in a folder of the run, on loopback ports that were free.
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
	"github.com/redis/go-redis/v9"

	"kith/internal/child"
)

// account may do everything on the server, which only this machine reaches.
const account = `FLUSH PRIVILEGES;
CREATE USER 'kith'@'127.0.0.1' IDENTIFIED BY 'kith';
GRANT ALL ON *.* TO 'kith'@'127.0.0.1' WITH GRANT OPTION;
`

// MariaDB makes a server with its data in a folder that does not exist yet, and returns its DSN, without a database. It writes a binlog as
// production does, and waits for the disk as little as the other servers that the six questions are put to: each commit reaches the operating
// system, not the disk.
func MariaDB(ctx context.Context, folder string) (server *child.Process, dsn string, err error) {
	mariadbd, err := child.Find("mariadbd")
	if err != nil {
		return nil, "", err
	}
	installDB, err := child.Find("mariadb-install-db")
	if err != nil {
		return nil, "", err
	}
	tmp := filepath.Join(folder, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, "", err
	}
	common := []string{"--no-defaults", "--datadir=" + filepath.Join(folder, "data"), "--tmpdir=" + tmp, "--innodb-log-file-size=512M"}
	if os.Getuid() == 0 {
		common = append(common, "--user=root") // mariadbd refuses root without it
	}
	install := exec.CommandContext(ctx, installDB, append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	bootstrap := exec.CommandContext(ctx, mariadbd, append(common, "--bootstrap")...)
	bootstrap.Stdin = strings.NewReader(account)
	for _, step := range []*exec.Cmd{install, bootstrap} {
		if out, err := step.CombinedOutput(); err != nil {
			return nil, "", fmt.Errorf("%s: %w\n%s", step.Path, err, out)
		}
	}
	return start(ctx, folder, mariadbd, func(port string) (dsn string, args []string) {
		return fmt.Sprintf("kith:kith@tcp(127.0.0.1:%s)/", port), append(common,
			"--socket="+filepath.Join(folder, "sock"), "--pid-file="+filepath.Join(folder, "pid"),
			"--bind-address=127.0.0.1", "--port="+port, "--skip-name-resolve", "--max-connections=500",
			"--query-cache-type=0", "--query-cache-size=0", "--character-set-server=utf8mb4", "--performance-schema=OFF",
			"--innodb-buffer-pool-size=2G", "--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0",
			"--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL", "--server-id=1", "--gtid-strict-mode=ON")
	}, func(ctx context.Context, dsn string) error { return Execute(ctx, dsn, "DO 1") })
}

// Redis makes a server that works in a folder and keeps nothing on disk, and returns its URL, as `--redis` takes it.
func Redis(ctx context.Context, folder string) (server *child.Process, url string, err error) {
	program, err := child.Find("redis-server")
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, "", err
	}
	return start(ctx, folder, program, func(port string) (url string, args []string) {
		return "redis://127.0.0.1:" + port + "/0", []string{"--bind", "127.0.0.1", "--port", port, "--dir", folder, "--save", "", "--appendonly", "no"}
	}, func(ctx context.Context, url string) error {
		options, err := redis.ParseURL(url)
		if err != nil {
			return err
		}
		options.MaxRetries = -1
		client := redis.NewClient(options)
		defer client.Close()
		return client.Ping(ctx).Err()
	})
}

// start runs a server on a free port until it answers.
func start(
	ctx context.Context, folder, program string, at func(port string) (address string, args []string), ask func(ctx context.Context, address string) error,
) (server *child.Process, address string, err error) {
	free, err := FreeAddress()
	if err != nil {
		return nil, "", err
	}
	_, port, _ := net.SplitHostPort(free)
	address, args := at(port)
	if server, err = child.StartLogged(filepath.Join(folder, "log"), exec.Command(program, args...)); err != nil {
		return nil, "", err
	}
	if err := server.Answers(ctx, func(ctx context.Context) error { return ask(ctx, address) }); err != nil {
		_ = server.Stop()
		return nil, "", err
	}
	return server, address, nil
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

// FreeAddress is a loopback address, host:port, that was free a moment ago.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
