package report

import (
	"fmt"
	"io"
	"math"
)

// Feeds is what was measured of home feeds, except the speed of pages.
type Feeds struct {
	Posts       int    `json:"posts"`       // in the store
	Recent      int    `json:"recentPosts"` // of these, in a gateway's memory
	RecentBytes int64  `json:"recentBytes"` // which they take
	PerSecond   int    `json:"postsPerSecond"`
	Seen        []Seen `json:"seen"`       // by pull
	SeenHybrid  []Seen `json:"seenHybrid"` // of the same authors

	Inboxes    int   `json:"inboxes"`    // of the readers
	InboxBytes int64 `json:"inboxBytes"` // of each, in Redis
	FanBytes   int64 `json:"fanBytes"`   // of each reader, for the entries among the fans of the authors it follows
}

// Seen is how long it takes from sending a post to one gateway until it is in the feed that another
// one shows, and what the post writes.
type Seen struct {
	Followers int     `json:"followers"` // of the author
	Posts     int     `json:"posts"`
	P50       float64 `json:"p50Ms"`
	P99       float64 `json:"p99Ms"`
	Max       float64 `json:"maxMs"`
	Written   float64 `json:"rowsWritten"` // inserted and changed by MariaDB, for each post

	// With hybrid:
	Active int `json:"activeFollowers,omitempty"` // who have inboxes
	Copies int `json:"inboxesWritten"`            // for a post
}

func (r *Report) writeFeeds(w io.Writer) {
	for _, s := range r.Sizes {
		fmt.Fprintf(w, "\n| page of 20 posts with authors | join, req/s | p50 / p99 ms | inboxes, req/s | p50 / p99 ms | Kith, req/s | of the join | of inboxes | p50 / p99 ms | hybrid, req/s | of pull | p50 / p99 ms | wrong answers |\n")
		fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
		for _, q := range s.Questions() {
			join, inboxes, kith := s.Find(MariaDB, Baseline, q), s.Find(MariaDBRedis, Inboxes, q), s.Find(MariaDBRedis, Warm, q)
			hybrid := s.Find(MariaDBRedis, Hybrid, q)
			row := append([]string{q}, join.speed()...)
			row = append(row, inboxes.speed()...)
			speed := kith.speed()
			row = append(row, speed[0], times(kith, join), times(kith, inboxes), speed[1])
			speed = hybrid.speed()
			row = append(row, speed[0], times(hybrid, kith), speed[1], wrong(join, inboxes, kith, hybrid))
			writeRow(w, row)
		}
		if s.Feeds != nil {
			s.Feeds.write(w)
		}
	}
}

func (f *Feeds) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s posts, of which %s recent ones take %s bytes in a gateway: %s bytes each.\n",
		comma(f.Posts), comma(f.Recent), comma(int(f.RecentBytes)), short(float64(f.RecentBytes)/math.Max(1, float64(f.Recent)), 1))
	if f.Inboxes > 0 {
		fmt.Fprintf(w, "%s inboxes take %s bytes each in Redis, and as much as %s for being among the fans of authors.\n",
			comma(f.Inboxes), comma(int(f.InboxBytes)), comma(int(f.FanBytes)))
	}
	fmt.Fprintf(w, "\n| followers of the author | from one gateway to another at %d posts/s, p50 ms | p99 ms | at most, ms | rows written for a post | hybrid: p50 ms | p99 ms | rows | active followers | inboxes written |\n", f.PerSecond)
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i, s := range f.Seen {
		row := []string{comma(s.Followers), number(s.P50, 1), number(s.P99, 1), number(s.Max, 1), short(s.Written, 1)}
		if i < len(f.SeenHybrid) {
			h := f.SeenHybrid[i]
			row = append(row, number(h.P50, 1), number(h.P99, 1), short(h.Written, 1), comma(h.Active), comma(h.Copies))
		} else {
			row = append(row, "", "", "", "", "")
		}
		writeRow(w, row)
	}
}

// times is how many times as fast one cell is as another.
func times(cell, as *Cell) string {
	if cell == nil || as == nil || as.PerSecond == 0 {
		return ""
	}
	return number(cell.PerSecond/as.PerSecond, 2) + "×"
}
