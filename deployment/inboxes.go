package deployment

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/inbox"
)

// How home feeds are found.
const (
	Pull   = "pull"   // merged when somebody reads
	Push   = "push"   // copied into the inboxes of active users
	Hybrid = "hybrid" // copied, but for hot authors
)

// InboxConfig configures the inboxes of home feeds.
type InboxConfig struct {
	Redis      *Redis
	Hot        int64         // followers from which on an author's posts are not copied; 0: all are
	Active     time.Duration // how long an inbox is kept after it was last read
	Lag        time.Duration // 0: the default
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// OpenInboxes makes the inboxes, which the caller runs. There has to be a cache in Redis, whose epochs end inboxes as well,
// and recent posts in memory.
func (c *Caches) OpenInboxes(cfg InboxConfig) *inbox.Boxes {
	boxes := inbox.New(inbox.Config{
		Redis: cfg.Redis.client, Prefix: "kith:" + c.store.UUID(), Cache: c.redis, Counts: c.store, Recent: c.feed.Posts,
		Hot: cfg.Hot, Active: cfg.Active, Lag: cfg.Lag, Logger: cfg.Logger,
	})
	boxes.Register(cfg.Registerer)
	return boxes
}
