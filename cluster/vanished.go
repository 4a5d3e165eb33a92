package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// A process may be killed between a commit and its report. In the mode binlog the log reports in its place. In the other modes
// nobody knows what it has changed, only that its lease is no longer renewed: then everything is forgotten, everywhere.

// forgetEvery is how often that happens at most: a process that crashes again and again must not keep all caches empty.
const forgetEvery = time.Minute

// vanished makes all caches forget what a process that has vanished may have changed without reporting it. It returns false if
// that has to be tried again later.
func (c *Caches) vanished(ctx context.Context) bool {
	if !c.way.forgets {
		return true
	}
	first, err := c.clock.Redis.SetNX(ctx, c.clock.Prefix+":forgot", "", forgetEvery).Result()
	if isFull := redis.IsOOMError(err); !isFull && (err != nil || !first) { // a full one cannot say when that was last
		return false
	}
	_ = c.heard(ctx, storage.Change{Gap: true}) // what could not be done is done when Redis is back
	slog.WarnContext(ctx, "a process of the store died: all caches are emptied, as it may have changed what they hold")
	return true
}

// lateCommits are the times after a commit without an answer at which its users are reported: the database may still have to
// execute it.
var lateCommits = [...]time.Duration{0, 2 * time.Second, 10 * time.Second, 30 * time.Second}

// doubt reports that anything about some users may have changed, or may still change.
func (c *Caches) doubt(w storage.Change) {
	var doubted storage.Change
	for _, u := range w.Users {
		doubted.AddUser(u.User, storage.Missed)
	}
	for _, p := range w.Posts {
		doubted.AddUser(p.Author, storage.Missed)
	}
	for _, after := range lateCommits {
		c.doubts.Add(1)
		time.AfterFunc(after, func() {
			defer c.doubts.Add(-1)
			_ = c.heard(context.Background(), doubted)
		})
	}
}

// missed is a change of users of whom gateways may have old data; of all users, if none are given.
func missed(users []storage.UserID) storage.Change {
	c := storage.Change{Gap: len(users) == 0}
	for _, id := range users {
		c.AddUser(id, storage.Missed)
	}
	return c
}
