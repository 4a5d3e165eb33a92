package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/cluster"
	"kith/storage/sqlstore"
)

// Settings are the flags that every command takes, each with its variable of the
// environment.
type Settings struct {
	Store            string        `default:"sqlite:data/kith.db" env:"KITH_STORE" placeholder:"LOCATION" help:"Where the graph is: sqlite:PATH[;PATH…] or mysql:DSN[;DSN…], one shard each, always in the same order. Default: ${default}."`
	Redis            string        `env:"KITH_REDIS" placeholder:"URL" help:"Redis beside the store: redis://…, or host:port,host:port… of a cluster. Default: none."`
	RedisCache       bool          `default:"true" negatable:"" env:"KITH_REDIS_CACHE" help:"Keep users and lists in the Redis as well. Everything that runs on a store with a Redis has to have the same. Default: ${default}."`
	Redundancy       string        `env:"KITH_REDUNDANCY" placeholder:"MODE" help:"How follower comes to hold what following holds: sync, stream or binlog. Default: binlog on several shards of MySQL or MariaDB, else sync."`
	StatementTimeout time.Duration `bound:"positive" default:"2s" env:"KITH_STATEMENT_TIMEOUT" help:"How long one SQL look-up may take, on the server too. Default: ${default}."`
	ShardConns       int           `bound:"some" default:"16" env:"KITH_SHARD_CONNS" placeholder:"N" help:"Connections to each shard for look-ups. Default: ${default}."`
	FriendRequestTTL time.Duration `bound:"positive" name:"friend-request-ttl" default:"2160h" env:"KITH_FRIEND_REQUEST_TTL" help:"How long a request for friendship can be accepted; the same for everything that runs on a store. Default: ${default}."`
	LogLevel         string        `default:"info" enum:"debug,info,warn,error" env:"KITH_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info, warn or error. Default: ${default}."`
	LogFormat        string        `default:"text" enum:"text,json" env:"KITH_LOG_FORMAT" placeholder:"FORMAT" help:"text or json. Default: ${default}."`

	modeLeftOpen bool // Redundancy was filled in, and changes to what the servers support
}

// A Preparer is a command that checks its arguments before the store is opened, or made if there is
// none.
type Preparer interface {
	Prepare(settings *Settings, k *kong.Context) error
}

// Check refuses settings that cannot be right, before anything is opened, and fills in the
// redundancy mode if it is not set.
func (s *Settings) Check() error {
	if err := sqlstore.Check(s.Store); err != nil {
		return Misset("store", err)
	}
	if s.Redis != "" {
		if err := cluster.CheckRedis(s.Redis); err != nil {
			return Misset("redis", err)
		}
	}
	sqlite := strings.HasPrefix(s.Store, "sqlite:")
	several := strings.Contains(s.Store, ";")
	switch s.Redundancy {
	case "":
		s.Redundancy, s.modeLeftOpen = cluster.Sync, true
		if several && !sqlite {
			s.Redundancy = cluster.Binlog
		}
	case cluster.Sync:
	case cluster.Stream:
		if s.Redis == "" {
			return Misset("redundancy", errors.New("stream needs a Redis (--redis)"))
		}
	case cluster.Binlog:
		if sqlite {
			return Misset("redundancy", errors.New("SQLite has no binlog: use sync"))
		}
	default:
		return Misset("redundancy", fmt.Errorf("%q is none of sync, stream, binlog", s.Redundancy))
	}
	return nil
}

// OpenStore opens the store, which the caller closes. cfg is what the settings do not say. If the
// servers have no binlog, a mode that was not set becomes sync.
func (s *Settings) OpenStore(ctx context.Context, cfg sqlstore.Config) (*sqlstore.Store, error) {
	cfg.Location, cfg.StatementTimeout, cfg.MaxConns = s.Store, s.StatementTimeout, s.ShardConns
	cfg.RequestTTL = func() time.Duration { return s.FriendRequestTTL }
	store, err := sqlstore.Open(ctx, cfg)
	if err != nil {
		return nil, Misset("store", err)
	}
	if s.modeLeftOpen && s.Redundancy == cluster.Sync && store.Shards() > 1 && store.HasBinlog() {
		s.Redundancy = cluster.Binlog // the store has grown
	}
	if s.Redundancy == cluster.Binlog && !store.HasBinlog() {
		if !s.modeLeftOpen {
			return nil, errors.Join(Misset("redundancy", errors.New("TiDB has no binlog: use sync or stream")), store.Close())
		}
		s.Redundancy = cluster.Sync
	}
	return store, nil
}

// deployment is the configuration that all processes on the store share.
func (s *Settings) cluster() cluster.Config {
	return cluster.Config{Redis: s.Redis, RedisCache: s.RedisCache, Redundancy: s.Redundancy}
}

// joinRedis connects to the Redis, if there is one, now or when it can be reached. The caller closes it. there means that
// it answers.
func (s *Settings) joinRedis(ctx context.Context, logger *slog.Logger) (redis *cluster.Redis, there bool, err error) {
	redis, away, err := s.cluster().JoinRedis(ctx)
	if err != nil {
		return nil, false, Misset("redis", err)
	}
	if away != nil {
		logger.WarnContext(ctx, "starting without Redis, which is joined when it answers", "error", away)
	}
	return redis, redis.Client() != nil && away == nil, nil
}

// forgetAll has the gateways forget what they know: more has changed than could be reported.
func (s *Settings) forgetAll(ctx context.Context, store *sqlstore.Store) error {
	if err := s.cluster().ForgetAll(ctx, store); err != nil {
		return Misset("redis", err)
	}
	return nil
}

// Misset says which setting an error comes from, by flag and variable.
func Misset(flag string, err error) error {
	return fmt.Errorf("--%s (KITH_%s): %w", flag, strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), err)
}

// Bytes is a size: a plain number, or one with a unit, such as 256MiB.
type Bytes uint64

// UnmarshalText implements [encoding.TextUnmarshaler].
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil && !strings.ContainsAny(string(text), "-+") && strings.ContainsAny(string(text), "kKmMgGtT") {
		n, err = humanize.ParseBytes(string(text))
	}
	if err != nil {
		return fmt.Errorf("%q is not a number of bytes, such as 268435456 or 256MiB", text)
	}
	*b = Bytes(n)
	return nil
}
