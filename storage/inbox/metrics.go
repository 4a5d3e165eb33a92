package inbox

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what inboxes do. There is one set in a process.
type metrics struct {
	pages, missed, builds, posts, written, failures prometheus.Counter
}

func newMetrics(b *Boxes) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "kith_feed_" + name, Help: help})
		if b.Registerer != nil {
			b.Registerer.MustRegister(c)
		}
		return c
	}
	gauge := func(name, help string, of func(*State) float64) {
		g := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kith_feed_" + name, Help: help}, func() float64 {
			if s := b.Current(); s != nil {
				return of(s)
			}
			return 0
		})
		if b.Registerer != nil {
			b.Registerer.MustRegister(g)
		}
	}
	gauge("inbox_lag_seconds", "How long ago the newest post was published that inboxes have for sure. 0 while they are not used.", func(s *State) float64 {
		return time.Since(s.Done.Time()).Seconds()
	})
	gauge("hot_authors", "Authors whose posts are not copied into inboxes.", func(s *State) float64 { return float64(len(s.hot)) })
	return &metrics{
		pages:    counter("inbox_pages_total", "Reads of inboxes that were right."),
		missed:   counter("inbox_missed_total", "Reads of inboxes that were not there, or for other followings: the page was pulled."),
		builds:   counter("inbox_builds_total", "Inboxes that this gateway has built."),
		posts:    counter("copied_posts_total", "Posts that this gateway has copied, those of hot authors among them."),
		written:  counter("inbox_writes_total", "Inboxes that it has written for that, once for all posts of an author in a round."),
		failures: counter("inbox_failures_total", "Times that inboxes went out of use because Redis did not answer."),
	}
}
