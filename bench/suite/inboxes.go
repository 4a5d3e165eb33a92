package suite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/accounts/identity"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sleep"
)

// inboxesBuilt has each reader look at its feed, so that it gets an inbox, and measures what the inboxes take.
func (r *feedRun) inboxesBuilt(ctx context.Context, p *program, into *report.Feeds) error {
	if err := r.loaded(ctx, p, &report.Feeds{}); err != nil {
		return err
	}
	var readers []storage.UserID
	for _, group := range r.graph.Groups {
		readers = append(readers, group.IDs...)
	}
	if err := r.activate(ctx, p, readers); err != nil {
		return err
	}
	options, err := redis.ParseURL(r.redisURL)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	var boxes, fans int64
	keys := client.Scan(ctx, 0, "kith:*:inbox:*", 1000).Iterator()
	for keys.Next(ctx) {
		bytes, err := client.MemoryUsage(ctx, keys.Val(), 0).Result()
		switch {
		case errors.Is(err, redis.Nil): // it has just expired
		case err != nil:
			return err
		case strings.Contains(keys.Val(), ":inbox:fans:"):
			fans += bytes
		case !strings.Contains(keys.Val(), "{state}"):
			boxes += bytes
		}
	}
	into.Inboxes = len(readers)
	into.InboxBytes, into.FanBytes = boxes/int64(len(readers)), fans/int64(len(readers))
	r.Log("%d inboxes take %d bytes each, and their users among the fans of authors %d", len(readers), into.InboxBytes, into.FanBytes)
	return keys.Err()
}

// activate asks for the feeds of users until each has an inbox.
func (r *feedRun) activate(ctx context.Context, p *program, users []storage.UserID) error {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(r.secret))})
	if err != nil {
		return err
	}
	before, err := metric(ctx, p.admin, "kith_feed_inbox_builds_total")
	if err != nil {
		return err
	}
	w := &watch{feedRun: r, issuer: issuer}
	for began := time.Now(); ; {
		for _, id := range users {
			var ignored any
			if err := w.ask(ctx, p.url, id, `{ viewer { feed(first: 100) { nodes { id } } } }`, &ignored); err != nil {
				return err
			}
		}
		built, err := metric(ctx, p.admin, "kith_feed_inbox_builds_total")
		if err != nil || built-before >= float64(len(users)) {
			return err
		}
		if time.Since(began) > 2*time.Minute {
			return errors.New("the gateway has not built the inboxes in two minutes")
		}
		if err := sleep.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

// countCopies counts how many inboxes a post is written to, for authors who have active followers. A post is copied more
// than a minute after it was published.
func (r *feedRun) countCopies(ctx context.Context, p *program, seen []report.Seen) error {
	if r.what.Active == 0 {
		return nil
	}
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(r.secret))})
	if err != nil {
		return err
	}
	active := []storage.UserID{r.watcher}
	for len(active) < min(r.what.Active, slices.Max(r.what.Followers)) {
		active = append(active, r.graph.ID(r.followers+len(active)))
	}
	if err := r.activate(ctx, p, active); err != nil {
		return err
	}
	const apart = 20 * time.Second                // Done rises in steps of some 5 s
	if err := sleep.For(ctx, apart); err != nil { // then Done is past the posts of others
		return err
	}
	w := &watch{feedRun: r, issuer: issuer, here: p.url, name: "copied"}
	published := make([]time.Time, len(r.authors))
	for i, a := range r.authors {
		published[i] = time.Now()
		if _, err := w.publish(ctx, a.id, "copied"); err != nil {
			return err
		}
		if err := sleep.For(ctx, apart); err != nil {
			return err
		}
	}
	before := 0.0
	for i := range r.authors {
		if before, err = r.writesUntil(ctx, p, published[i].Add(-apart/2)); err != nil {
			return err
		}
		after, err := r.writesUntil(ctx, p, published[i].Add(apart/2))
		if err != nil {
			return err
		}
		seen[i].Active, seen[i].Copies = min(r.what.Active, r.authors[i].followers), int(after-before)
		r.Log("a post of an author with %d followers, %d of them active, is written to %d inboxes", seen[i].Followers, seen[i].Active, seen[i].Copies)
	}
	return nil
}

// writesUntil is how many inboxes have been written when posts up to a time have been copied.
func (r *feedRun) writesUntil(ctx context.Context, p *program, at time.Time) (float64, error) {
	for began := time.Now(); time.Since(began) < 3*time.Minute; {
		lag, err := metric(ctx, p.admin, "kith_feed_inbox_lag_seconds")
		if err != nil {
			return 0, err
		}
		if done := time.Now().Add(-time.Duration(lag * float64(time.Second))); lag > 0 && done.After(at) {
			return metric(ctx, p.admin, "kith_feed_inbox_writes_total")
		}
		if err := sleep.For(ctx, 200*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("posts are not copied into inboxes")
}
