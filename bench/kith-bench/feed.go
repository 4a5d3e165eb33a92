package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"kith/bench"
	"kith/bench/report"
	"kith/bench/suite"
)

// BenchFeedCmd is `kith bench feed`.
type BenchFeedCmd struct {
	Users      int   `default:"50000" placeholder:"N" help:"Users, at least 250; each follows 50 on average and has 10 posts of the last 30 days. Default: ${default}."`
	Followings []int `default:"50,1000,5000" placeholder:"N" help:"Follow counts of the readers. Default: ${default}."`
	Followers  []int `default:"10,5000,1000000" placeholder:"N" help:"Follower counts of authors; one follower of each waits until a post is seen. Default: ${default}."`
	Posts      int   `default:"200" placeholder:"N" help:"Posts of each of these authors. Default: ${default}."`
	PerSecond  int   `default:"100" placeholder:"N" help:"Posts per second that others publish meanwhile. Default: ${default}."`
	Active     int   `default:"1000" placeholder:"N" help:"Followers of each of these authors who read their feeds, at most, while writes into their inboxes are counted; 0: do not count. Default: ${default}."`
	benchFlags
}

// Validate is called by kong.
func (c *BenchFeedCmd) Validate() error {
	const mostFollowings, mostFollowers, mostPosts, mostPerSecond, mostActive = 100_000, 10_000_000, 100_000, 10_000, 10_000
	for _, n := range c.Followings {
		if n < bench.FeedPageSize || n > min(c.Users, mostFollowings) {
			return fmt.Errorf("--followings: %d is not from %d to %d, and not more than there are users", n, bench.FeedPageSize, mostFollowings)
		}
	}
	for _, n := range c.Followers {
		if n < 1 || n > mostFollowers {
			return fmt.Errorf("--followers: %d is not from 1 to %d", n, mostFollowers)
		}
	}
	if c.Users < bench.Community {
		return fmt.Errorf("--users: %d is less than one community, %d", c.Users, bench.Community)
	}
	if c.Posts < 1 || c.Posts > mostPosts || c.PerSecond < 1 || c.PerSecond > mostPerSecond {
		return fmt.Errorf("--posts must be from 1 to %d, --per-second from 1 to %d", mostPosts, mostPerSecond)
	}
	if c.Active < 0 || c.Active > mostActive {
		return fmt.Errorf("--active must be from 0 to %d", mostActive)
	}
	if len(c.Engines) > 0 {
		return errors.New("--engines: home feeds are measured on MariaDB with Redis")
	}
	return nil
}

// Run measures, prints the tables and writes the figures. If there were wrong answers, it
// returns an error after that.
func (c *BenchFeedCmd) Run(ctx context.Context, k *kong.Context) error {
	return c.measure(ctx, k, report.Feed, suite.Config{Graphs: []suite.Graph{{Users: c.Users, Edges: 50 * c.Users}}},
		func(ctx context.Context, config suite.Config) ([]report.Size, report.Machine, error) {
			size, machine, err := suite.RunFeed(ctx, suite.FeedConfig{
				Config: config, Followings: c.Followings, Followers: c.Followers, Posts: c.Posts, PerSecond: c.PerSecond, Active: c.Active,
			})
			return []report.Size{size}, machine, err
		})
}
