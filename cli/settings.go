package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/cluster"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
)

// Settings are the flags that every command takes, each with its variable of the
// environment.
type Settings struct {
	Store            string        `basic:"" default:"sqlite:data/kith.db" env:"KITH_STORE" placeholder:"LOCATION" help:"Shards, in order: sqlite:PATH[;…] or mysql:DSN[;…]. Default: ${default}."`
	Redis            string        `basic:"" env:"KITH_REDIS" placeholder:"URL" help:"Redis or its cluster: redis://…, rediss://… (TLS). Default: none."`
	Config           string        `basic:"" env:"KITH_CONFIG" placeholder:"FILE" help:"YAML file of settings, named like flags. Flags and variables win. Default: none."`
	StatementTimeout time.Duration `bound:"positive" default:"2s" env:"KITH_STATEMENT_TIMEOUT" help:"Time limit of one SQL look-up, also on the server. Default: ${default}."`
	ShardConns       int           `bound:"some" default:"16" env:"KITH_SHARD_CONNS" placeholder:"N" help:"Connections to each shard for look-ups. Default: ${default}."`
	LogLevel         string        `basic:"" default:"info" enum:"debug,info,warn,error" env:"KITH_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info, warn or error. Default: ${default}."`
	LogFormat        string        `basic:"" default:"text" enum:"text,json" env:"KITH_LOG_FORMAT" placeholder:"FORMAT" help:"text or json. Default: ${default}."`

	StoreSettings `group:"of the store"` // as the process was told until join, from then on those of the store

	told map[string]string // what it was told of them

	readmits bool              // the command readmits a shard, and joins once the store can be written to
	set      map[string]string // what was set in the store when the process joined it
	shards   int               // how many the store had then

	now        atomic.Pointer[StoreSettings] // as they are in the store; rules and requestTTL are those of them that writes load
	rules      atomic.Pointer[social.Rules]
	requestTTL atomic.Int64
}

// A Preparer is a command that checks its arguments before the store is opened, or made if there is
// none.
type Preparer interface {
	Prepare(settings *Settings, k *kong.Context) error
}

// Check refuses settings that cannot be right, before anything is opened.
func (s *Settings) Check() error {
	var redis error
	if s.Redis != "" {
		redis = cluster.CheckRedis(s.Redis)
	}
	name, err := s.StoreSettings.check(s.Store, s.Redis)
	return cmp.Or(Misset("store", sqlstore.Check(s.Store)), Misset("redis", redis), Misset(name, err))
}

// OpenStore opens the store, which the caller closes, and takes over its settings. cfg is what the settings do not say.
func (s *Settings) OpenStore(ctx context.Context, cfg sqlstore.Config) (*sqlstore.Store, error) {
	cfg.Location, cfg.StatementTimeout, cfg.MaxConns = s.Store, s.StatementTimeout, s.ShardConns
	cfg.RequestTTL, cfg.Readmits = &s.requestTTL, s.readmits
	store, err := sqlstore.Open(ctx, cfg)
	if strings.HasPrefix(s.Store, "mysql:") && err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrLayout) {
		err = fmt.Errorf("%w (kith doctor says what to do)", err) // the server's words do not
	}
	if err != nil {
		return nil, misfit(Misset("store", err))
	}
	if !s.readmits {
		if err := s.join(ctx, store); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return store, nil
}

// misfit is an error of opening a store. It is [unusable] if the location is wrong, and not only if a shard is away or yet to be made.
func misfit(err error) error {
	if errors.Is(err, storage.ErrLayout) && !errors.Is(err, storage.ErrUnavailable) {
		return unusable{err}
	}
	return err
}

// deployment is the configuration that all processes on the store share.
func (s *Settings) cluster() cluster.Config {
	return cluster.Config{Redis: s.Redis, RedisCache: s.RedisCache, Redundancy: s.Redundancy}
}

// joinRedis connects to the Redis, if there is one, now or when it can be reached, unless the processes on the store have another one.
// The caller closes it. there means that it answers.
func (s *Settings) joinRedis(ctx context.Context, store *sqlstore.Store, logger *slog.Logger) (redis *cluster.Redis, there bool, err error) {
	redis, away, err := s.cluster().JoinRedis(ctx)
	if err != nil {
		return nil, false, Misset("redis", err)
	}
	if away != nil {
		logger.WarnContext(ctx, "starting without Redis, which is joined when it answers", "error", away)
	}
	if err := sameRedis(ctx, redis, store, false); err != nil {
		return nil, false, errors.Join(err, redis.Close())
	}
	return redis, redis.Client() != nil && away == nil, nil
}

// askForRedis returns an error if the processes on the store have another Redis.
func (s *Settings) askForRedis(ctx context.Context, store *sqlstore.Store) error {
	redis, _, err := s.cluster().JoinRedis(ctx)
	if err != nil {
		return Misset("redis", err)
	}
	defer redis.Close()
	return sameRedis(ctx, redis, store, true)
}

// sameRedis compares the Redis with that of the processes on the store. See [cluster.Redis.Agree].
func sameRedis(ctx context.Context, redis *cluster.Redis, store *sqlstore.Store, onlyAsk bool) error {
	err := redis.Agree(ctx, store, onlyAsk)
	if errors.Is(err, cluster.ErrOtherRedis) {
		return err
	}
	return Misset("store", err)
}

// forgetAll has the gateways forget what they know: more has changed than could be reported.
func (s *Settings) forgetAll(ctx context.Context, store *sqlstore.Store) error {
	return Misset("redis", s.cluster().ForgetAll(ctx, store))
}

// Misset says which setting an error comes from, by flag and variable. Without an error it is nil.
func Misset(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s (KITH_%s): %w", flag, variable(flag), err)
}

// variable is the variable of a flag, behind KITH_.
func variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

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
