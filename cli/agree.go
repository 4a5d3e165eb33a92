package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/alecthomas/kong"

	"kith/deployment"
	"kith/storage/sqlstore"
)

// AgreeCmd is `kith agree`.
type AgreeCmd struct {
	followRules
}

// Prepare implements [Preparer].
func (c *AgreeCmd) Prepare(_ *Settings, _ *kong.Context) error {
	return c.followRules.check()
}

// Run records the settings.
func (c *AgreeCmd) Run(ctx context.Context, settings *Settings, store *sqlstore.Store, k *kong.Context) error {
	// These two need all processes to stop, not only to start again one by one.
	still := settings.agreed()
	delete(still, "friend-request-ttl")
	if err := agree(ctx, still, store, true); err != nil {
		return err
	}
	if err := settings.agreedRules(c.followRules).Record(ctx, store); err != nil {
		return Misset("store", err)
	}
	fmt.Fprintln(k.Stdout, "recorded: restart all gateways with these settings, one by one; those that still have others say so")
	return nil
}

// agree compares settings with those of the processes on the store.
func agree(ctx context.Context, own deployment.Agreed, store *sqlstore.Store, onlyAsk bool) error {
	err := own.Agree(ctx, store, onlyAsk)
	if err != nil && !errors.Is(err, deployment.ErrDisagrees) {
		err = Misset("store", err)
	}
	return err
}

// agreed are those settings of all commands in which all processes on a store have to agree.
func (s *Settings) agreed() deployment.Agreed {
	all := deployment.Agreed{"redundancy": s.Redundancy, "friend-request-ttl": s.FriendRequestTTL.String(), "redis-cache": strconv.FormatBool(s.Redis != "" && s.RedisCache)}
	if s.modeLeftOpen {
		all["redundancy"] += deployment.ByStore
	}
	return all
}

// agreedRules are all settings in which gateways have to agree.
func (s *Settings) agreedRules(follow followRules) deployment.Agreed {
	all := s.agreed()
	all["max-following"] = strconv.FormatInt(follow.MaxFollowing, 10)
	all["friend-request-pause"] = follow.RequestPause.String()
	return all
}
