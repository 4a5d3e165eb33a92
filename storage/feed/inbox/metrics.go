package inbox

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// counters count what inboxes do.
type counters struct {
	pages, missed, builds, posts, written, failures prometheus.Counter
}

// count registers the metrics.
func (b *Boxes) count(registerer prometheus.Registerer) {
	made := metrics.In(registerer)
	b.counters = counters{
		pages:    made.Counter("kith_feed_inbox_pages_total", "Pages of home feeds that were read from a valid inbox."),
		missed:   made.Counter("kith_feed_inbox_missed_total", "Reads of inboxes that were not there, or for other followings: the page was pulled."),
		builds:   made.Counter("kith_feed_inbox_builds_total", "Inboxes that this gateway has built."),
		posts:    made.Counter("kith_feed_copied_posts_total", "Posts that this gateway copied into inboxes, those of hot authors included."),
		written:  made.Counter("kith_feed_inbox_writes_total", "Inboxes that were written while copying posts, once for all posts of an author in a round."),
		failures: made.Counter("kith_feed_inbox_failures_total", "Times that inboxes went out of use because Redis did not answer."),
	}
	made.GaugeOf("kith_feed_inbox_lag_seconds", "How long ago the newest post was published that inboxes have for sure. 0 while they are not used.", func() float64 {
		if s := b.Current(); s != nil {
			return time.Since(s.Done.Time()).Seconds()
		}
		return 0
	})
	made.GaugeOf("kith_feed_hot_authors", "Authors whose posts are not copied into inboxes.", func() (hot float64) {
		if s := b.Current(); s != nil {
			for _, n := range s.turns {
				hot += float64(n % 2)
			}
		}
		return hot
	})
}
