package cluster

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/feed/inbox"
)

// How home feeds are found.
const (
	Pull   = "pull"   // merged when a feed is read
	Push   = "push"   // copied into the inboxes of active users
	Hybrid = "hybrid" // copied, except posts of hot authors
)

// InboxConfig configures the inboxes of home feeds.
type InboxConfig struct {
	Redis      *Redis
	Bounds     func() (hot int64, active time.Duration) // see [inbox.Config]
	Lag        time.Duration                            // 0: the default
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// OpenInboxes makes the inboxes, which the caller runs. It needs a cache in Redis, whose epochs also end inboxes, and
// recent posts in memory.
func (c *Caches) OpenInboxes(cfg InboxConfig) *inbox.Boxes {
	boxes := inbox.New(inbox.Config{
		Redis: cfg.Redis.client, Prefix: "kith:" + c.store.UUID(), Cache: c.redis, Counts: c.store, Recent: c.feed.Posts,
		Bounds: cfg.Bounds, Lag: cfg.Lag, Logger: cfg.Logger,
	})
	boxes.Register(cfg.Registerer)
	return boxes
}
