package suite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"kith/bench/private"
	"kith/bench/report"
	"kith/internal/child"
)

// servers are the databases beside the gateways.
type servers struct {
	token     string // distinguishes this run's databases from others'
	mysql     *mysql.Config
	redisURL  string
	databases []string // made on a server that is not the run's own

	mariaPID, redisPID int // 0: not private, so that their CPU is not known
	private            []*child.Process
}

// openServers starts, or connects to, the servers that the engines need.
func (r *run) openServers(ctx context.Context) error {
	r.secret, r.token = rand.Text()+rand.Text(), strings.ToLower(rand.Text()[:8])
	needsRedis := slices.Contains(r.Engines, report.MariaDBRedis)
	if needsRedis || slices.Contains(r.Engines, report.MariaDB) {
		if err := r.openMariaDB(ctx); err != nil {
			return err
		}
	}
	if needsRedis {
		return r.openRedis(ctx)
	}
	return nil
}

func (r *run) openMariaDB(ctx context.Context) error {
	dsn := r.MariaDB
	if dsn == Auto {
		r.Log("starting a private MariaDB")
		server, at, err := private.MariaDB(ctx, r.path("mariadb"))
		if err != nil {
			return err
		}
		r.private = append(r.private, server)
		dsn, r.mariaPID = at, server.PID()
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("the DSN of MariaDB: %w", err)
	}
	r.mysql = config
	db, err := sql.Open("mysql", r.dsn(""))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&r.machine.MariaDB); err != nil {
		return fmt.Errorf("ask MariaDB for its version: %w", err)
	}
	return nil
}

func (r *run) openRedis(ctx context.Context) error {
	r.redisURL = r.Redis
	if r.Redis == Auto {
		r.Log("starting a private Redis")
		server, at, err := private.Redis(ctx, r.path("redis"))
		if err != nil {
			return err
		}
		r.private = append(r.private, server)
		r.redisURL, r.redisPID = at, server.PID()
	}
	options, err := redis.ParseURL(r.redisURL)
	if err != nil {
		return errors.New("the URL of Redis is not one such as redis://host:6379/0")
	}
	client := redis.NewClient(options)
	defer client.Close()
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its version: %w", err)
	}
	r.machine.Redis = info["Server"]["redis_version"]
	return nil
}

// dsn names a database; an empty name is none.
func (r *run) dsn(database string) string {
	config := r.mysql.Clone()
	config.DBName = database
	return config.FormatDSN()
}

// pidsOf lists the database processes whose CPU is counted for an engine.
func (r *run) pidsOf(engine string) []int {
	switch engine {
	case report.SQLite:
		return nil
	case report.MariaDB:
		return []int{r.mariaPID}
	}
	return []int{r.mariaPID, r.redisPID}
}

// close stops the private servers, and drops the databases that were created on other servers.
func (r *run) close() error {
	var errs []error
	if r.MariaDB != Auto {
		for _, name := range r.databases {
			errs = append(errs, private.Execute(context.Background(), r.dsn(""), "DROP DATABASE "+name))
		}
	}
	for _, p := range r.private {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}
