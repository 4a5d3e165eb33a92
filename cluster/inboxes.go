package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/feed/inbox"
)

// How home feeds are found.
const (
	Pull   = "pull"   // merged when a feed is read
	Push   = "push"   // copied into the inboxes of active users
	Hybrid = "hybrid" // copied, except posts of hot authors
)

// OpenInboxes makes the inboxes, which the caller runs, with what cfg does not have from these caches. It needs a Redis, and recent posts
// in memory.
func (c *Caches) OpenInboxes(cfg inbox.Config, registerer prometheus.Registerer) *inbox.Boxes {
	cfg.Clock, cfg.Counts, cfg.Recent = c.clock, c.store, c.feed.Posts
	boxes := inbox.New(cfg)
	boxes.Register(registerer)
	return boxes
}
