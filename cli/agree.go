package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/alecthomas/kong"

	"kith/cluster"
	"kith/storage/sqlstore"
)

// AgreeCmd is `kith agree`.
type AgreeCmd struct {
	followRules
}

// Run records the settings.
func (c *AgreeCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	own, err := settings.beside(ctx, settings.agreedRules(c.followRules))
	if err != nil {
		return err
	}
	still := maps.Clone(own) // the others need all processes to stop, not only to start again one by one
	for _, rule := range []string{"friend-request-ttl", "friend-request-pause", "max-following"} {
		delete(still, rule)
	}
	if err := agree(ctx, still, store, true); err != nil {
		return err
	}
	if err := own.Record(ctx, store); err != nil {
		return Misset("store", err)
	}
	fmt.Fprintln(k.Stdout, "recorded: restart all gateways with these settings, one by one; those that still have others say so")
	return nil
}

// agree compares settings with those of the processes on the store.
func agree(ctx context.Context, own cluster.Agreed, store *sqlstore.Store, onlyAsk bool) error {
	err := own.Agree(ctx, store, onlyAsk)
	if err != nil && !errors.Is(err, cluster.ErrDisagrees) {
		err = Misset("store", err)
	}
	return err
}

// agreed are those settings of all commands in which all processes on a store have to agree.
func (s *Settings) agreed() cluster.Agreed {
	all := cluster.Agreed{"redundancy": s.Redundancy, "friend-request-ttl": s.FriendRequestTTL.String(), "redis-cache": strconv.FormatBool(s.Redis != "" && s.RedisCache)}
	if s.modeLeftOpen {
		all["redundancy"] += cluster.ByStore
	}
	return all
}

// beside adds to settings which Redis the command has.
func (s *Settings) beside(ctx context.Context, own cluster.Agreed) (cluster.Agreed, error) {
	redis, _, err := s.cluster().JoinRedis(ctx)
	if err != nil {
		return own, Misset("redis", err)
	}
	defer redis.Close()
	return own.WithRedis(ctx, redis), nil
}

// agreedRules are all settings in which gateways have to agree.
func (s *Settings) agreedRules(follow followRules) cluster.Agreed {
	all := s.agreed()
	all["max-following"] = strconv.FormatInt(follow.MaxFollowing, 10)
	all["friend-request-pause"] = follow.RequestPause.String()
	return all
}
