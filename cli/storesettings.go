package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"kith/cluster"
	"kith/social"
	"kith/storage"
	"kith/storage/feed/inbox"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// StoreSettings have to agree among the processes on a store, so they lie in the store: `kith settings` reads and sets them.
// As flags and variables they are understood, so that a process that was told another value does not start.
type StoreSettings struct {
	Redundancy       string        `hidden:"" restart:"all" default:"auto" enum:"auto,sync,stream,binlog" env:"KITH_REDUNDANCY" placeholder:"MODE" help:"How follower is kept equal to following: sync, stream (needs Redis) or binlog (needs MySQL or MariaDB); auto: binlog on several shards of MySQL or MariaDB, else sync."`
	RedisCache       bool          `hidden:"" restart:"all" env:"KITH_REDIS_CACHE" help:"Also cache users and lists in Redis, for many gateways with little memory."`
	FriendRequestTTL time.Duration `hidden:"" bound:"positive" name:"friend-request-ttl" default:"2160h" env:"KITH_FRIEND_REQUEST_TTL" help:"How long a friend request can be accepted."`
	RequestPause     time.Duration `hidden:"" bound:"positive" name:"friend-request-pause" default:"168h" env:"KITH_FRIEND_REQUEST_PAUSE" help:"How long to wait after a decline before asking again."`
	MaxFollowing     int64         `hidden:"" bound:"natural" default:"5000" env:"KITH_MAX_FOLLOWING" placeholder:"N" help:"How many users one may follow, and how many one may block; 0: no limit."`
	Suggest          []int64       `hidden:"" env:"KITH_SUGGEST" placeholder:"ID" help:"Users suggested first, in this order, to those who follow nobody."`
	Feed             string        `hidden:"" restart:"each" default:"pull" enum:"pull,push,hybrid" env:"KITH_FEED" placeholder:"MODE" help:"How home feeds are built: pull, or (needs Redis) push or hybrid, which copy posts for active users."`
	FeedHot          int64         `hidden:"" bound:"positive" name:"feed-hot-followers" default:"10000" env:"KITH_FEED_HOT_FOLLOWERS" placeholder:"N" help:"With feed=hybrid: authors with this many followers have no posts copied."`
	FeedActiveDays   int           `hidden:"" bound:"positive" default:"7" env:"KITH_FEED_ACTIVE_DAYS" placeholder:"DAYS" help:"With feed=push or hybrid: days after a user's last feed read that posts are still copied, at most 365."`
}

// Which processes take a setting over only when they start, as its tag "restart" says.
const forAll, forGateways = "all", "each"

// auto is the redundancy mode that follows from the store.
const auto = "auto"

// check refuses values that cannot be right, and names the setting. The Redis is that of the process.
func (s *StoreSettings) check(location, redis string) (name string, err error) {
	const mostDays = 365
	switch {
	case s.Redundancy == cluster.Stream && redis == "":
		return "redundancy", errors.New("stream needs a Redis (--redis)")
	case s.Redundancy == cluster.Binlog && strings.HasPrefix(location, "sqlite:"):
		return "redundancy", errors.New("SQLite has no binlog: use sync")
	case len(s.Suggest) > social.MaxPinned:
		return "suggest", fmt.Errorf("at most %d users can be pinned", social.MaxPinned)
	case slices.ContainsFunc(s.Suggest, func(id int64) bool { return id < 1 }):
		return "suggest", errors.New("a user's id is greater than 0")
	case s.FeedActiveDays > mostDays:
		return "feed-active-days", fmt.Errorf("it must be at most %d", mostDays)
	case s.Feed != inbox.Pull && redis == "":
		return "feed", fmt.Errorf("%s needs a Redis (--redis)", s.Feed)
	}
	return "", nil
}

// modeOn is the redundancy mode on a store.
func (s *StoreSettings) modeOn(store *sqlstore.Store) (string, error) {
	switch {
	case s.Redundancy == cluster.Binlog && !store.HasBinlog():
		return "", errors.New("TiDB has no binlog: use sync or stream")
	case s.Redundancy != auto:
		return s.Redundancy, nil
	case store.Shards() > 1 && store.HasBinlog():
		return cluster.Binlog, nil
	}
	return cluster.Sync, nil
}

// apply lets settings hold from now on.
func (s *Settings) apply(of *StoreSettings) {
	s.now.Store(of)
	s.rules.Store(&social.Rules{MaxFollowing: of.MaxFollowing, RequestTTL: of.FriendRequestTTL, RequestPause: of.RequestPause})
	s.requestTTL.Store(int64(of.FriendRequestTTL))
}

// pinnedNow are the users who are suggested first, each once.
func (s *Settings) pinnedNow() (ids []storage.UserID) {
	for _, id := range s.now.Load().Suggest {
		if !slices.Contains(ids, storage.UserID(id)) {
			ids = append(ids, storage.UserID(id))
		}
	}
	return ids
}

// storeFlags are the settings of a store by name, with the values of s. Variables do not set them.
func (s *StoreSettings) storeFlags() (*kong.Kong, map[string]*kong.Flag) {
	parser := kong.Must(s, kong.NoDefaultHelp(), bounded, days)
	flags := map[string]*kong.Flag{}
	for _, f := range parser.Model.Flags {
		f.Envs, f.Tag.Envs = nil, nil
		flags[f.Name] = f
	}
	return parser, flags
}

// readStoreSettings makes settings of what has been set. It passes over names that only a newer program knows.
func readStoreSettings(set map[string]string) (*StoreSettings, error) {
	s := new(StoreSettings)
	parser, flags := s.storeFlags()
	var args []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if flags[name] != nil {
			args = append(args, "--"+name+"="+set[name])
		}
	}
	_, err := parser.Parse(args)
	return s, err
}

// written is a flag's value as it is set.
func written(f *kong.Flag) string {
	if ids, ok := f.Target.Interface().([]int64); ok {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	}
	text := fmt.Sprint(f.Target.Interface())
	if hours, ok := strings.CutSuffix(text, "h0m0s"); ok {
		return hours + "h"
	} else if minutes, ok := strings.CutSuffix(text, "m0s"); ok {
		return minutes + "m"
	}
	return text
}

// noteTold notes which settings of the store a command was told, by flag, variable or file.
func (s *Settings) noteTold(k *kong.Context) {
	_, of := new(StoreSettings).storeFlags()
	s.told = map[string]string{}
	for _, f := range k.Flags() {
		if of[f.Name] != nil && (isTold(f.Name) || slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag == f })) && written(f) != auto {
			s.told[f.Name] = written(f)
		}
	}
}

// join takes over the settings of the store. If nobody has set a setting and nothing else runs on the store, the value that the
// process was given is recorded. Otherwise it has to be the same.
func (s *Settings) join(ctx context.Context, store *sqlstore.Store) error {
	set, err := cluster.LoadSettings(ctx, store)
	if err != nil {
		return Misset("store", err)
	}
	has, err := valuesOf(set, store)
	if err != nil {
		return Misset("store", err)
	}
	differs := differing(s.told, has)
	othersRun := sync.OnceValue(func() bool { return cluster.OthersRun(ctx, store) })
	for _, name := range differs {
		if _, isSet := set[name]; isSet || othersRun() {
			if err := ctx.Err(); err != nil {
				return err // the look for others was cut off, and says that some run
			}
			return unusable{toldOtherwise(name, s.told[name], has[name])}
		}
	}
	before := len(set)
	maps.Copy(set, s.told) // also what is as the store would have it: that may change as it grows
	of, err := readStoreSettings(set)
	if err != nil {
		return Misset("store", err)
	}
	if name, err := of.check(s.Store, s.Redis); err != nil {
		return unusable{Misset(name, err)}
	}
	if of.Redundancy, err = of.modeOn(store); err != nil {
		return unusable{Misset("redundancy", err)}
	}
	if len(set) > before {
		if err := cluster.SaveSettings(ctx, store, set); err != nil && len(differs) > 0 {
			return Misset("store", err)
		}
	}
	s.StoreSettings, s.set, s.shards = *of, set, store.Shards()
	s.apply(of)
	return nil
}

// toldOtherwise is the error of a process that was told another value than the store has.
func toldOtherwise(name, told, has string) error {
	return fmt.Errorf("--%s %s: this store says %s; to change it: kith settings set %[1]s=%[2]s", name, told, has)
}

// valuesOf are the values of all settings, as they are written, that hold on a store in which some have been set. The store is
// nil if it has not been opened.
func valuesOf(set map[string]string, store *sqlstore.Store) (map[string]string, error) {
	of, err := readStoreSettings(set)
	if err != nil {
		return nil, err
	}
	if store != nil {
		if mode, err := of.modeOn(store); err == nil {
			of.Redundancy = mode
		}
	}
	_, flags := of.storeFlags()
	values := map[string]string{}
	for name, f := range flags {
		values[name] = written(f)
	}
	return values, nil
}

// differing are the names of values that others have otherwise, in order.
func differing(values, others map[string]string) (names []string) {
	for name, value := range values {
		if others[name] != value {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// watch takes over what is set in the store, until the context is done. It logs once what a running process cannot take over,
// another Redis than that of the store, and what Redis refuses. restarts are the processes that this one is one of.
func (s *Settings) watch(ctx context.Context, store *sqlstore.Store, redis *cluster.Redis, logger *slog.Logger, restarts ...string) {
	sameRedis, last, said, tell := redis.Watch(store), s.set, "", redis.Telling(logger)
	for tell(ctx); sleep.For(ctx, cluster.WatchEvery) == nil; tell(ctx) {
		err := sameRedis(ctx)
		set, failed := cluster.LoadSettings(ctx, store)
		if failed == nil && !maps.Equal(set, last) {
			if of, unread := readStoreSettings(set); unread == nil { // otherwise the former ones hold, and stale says so
				s.apply(of)
				logger.InfoContext(ctx, "the settings of the store have changed", "set", set)
			}
			last = set
		}
		if err = errors.Join(err, s.stale(set, store, restarts...)); err != nil && failed == nil && err.Error() != said {
			said = err.Error()
			logger.ErrorContext(ctx, "a setting is not that of the store", "error", err)
		}
	}
}

// stale is an error that names a setting with which the process started and which is another in the store since.
func (s *Settings) stale(set map[string]string, store *sqlstore.Store, restarts ...string) error {
	if maps.Equal(set, s.set) && store.Shards() == s.shards { // most often: to read them takes a millisecond
		return nil
	}
	was, err := valuesOf(s.set, store)
	if err != nil {
		return err
	}
	was["redundancy"] = s.Redundancy // with more shards, auto may be another by now
	is, err := valuesOf(set, store)
	if err != nil {
		return fmt.Errorf("the settings in the store cannot be read, the former ones hold: %w", err)
	}
	_, flags := new(StoreSettings).storeFlags()
	for _, name := range differing(was, is) {
		if slices.Contains(restarts, flags[name].Tag.Get("restart")) {
			return fmt.Errorf("%s: this process has to be started again: it is %q in the store, and was %q", name, is[name], was[name])
		}
	}
	return nil
}

// agrees is what /readyz asks: whether the process runs with the settings and the Redis of the store.
func (s *Settings) agrees(ctx context.Context, store *sqlstore.Store, redis *cluster.Redis) error {
	set, err := cluster.LoadSettings(ctx, store)
	if err != nil {
		return err
	}
	return errors.Join(s.stale(set, store, forAll, forGateways), redis.Agrees(ctx, store))
}
