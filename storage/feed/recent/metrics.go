package recent

import (
	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// Register registers the metrics of recent posts and of what keeps them right. There is one
// Follower in a process.
func (f *Follower) Register(registerer prometheus.Registerer) {
	made := metrics.In(registerer)
	made.GaugeOf("kith_feed_posts", "Recent posts in the gateway's memory.", func() float64 { return float64(f.Posts.Len()) })
	made.GaugeOf("kith_feed_bytes", "Bytes of the recent posts in the gateway's memory.", func() float64 { return float64(f.Posts.Bytes()) })
	made.GaugeOf("kith_feed_window_seconds", "How far back all posts are in memory. 0 while they are being loaded.", func() float64 {
		return max(0, f.Posts.now().Sub(f.Posts.Floor().Time()).Seconds())
	})
	made.CounterOf("kith_feed_loads_total", "Times that recent posts were read whole from the store.", func() float64 { return float64(f.loads.Load()) })
	made.CounterOf("kith_feed_polls_total", "Times that the newest posts of a shard were read.", func() float64 { return float64(f.polled.Load()) })
	made.CounterOf("kith_feed_found_posts_total", "Recent posts found by reading the shards, before their event came or without one.", func() float64 { return float64(f.found.Load()) })
	made.CounterOf("kith_feed_pages_total", "Pages of home feeds that were found in memory.", func() float64 { return float64(f.Posts.pages.Load()) })
	made.CounterOf("kith_feed_store_pages_total", "Pages of home feeds that were read from the databases, because they reach further back than memory.", func() float64 { return float64(f.Posts.beyond.Load()) })
}
