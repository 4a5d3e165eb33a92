package faults_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

// A publication is a post as it is in its table.
type publication struct{ author, number, at int64 }

func (p publication) id() string { return fmt.Sprintf("post_%d_%d", p.author, p.number) }

// copyPosts makes the gateways copy posts into inboxes.
func (d *deployment) copyPosts(t testing.TB) {
	t.Helper()
	for _, n := range d.nodes() {
		n.kill(t)
	}
	must.Equal(t, "the code", d.command("settings", "set", "feed=push")(t).Wait(t).Code, 0)
	d.start(t)
}

// feedsAreRight compares the home feed of every user, as each gateway gives it, with the tables. A feed has
// the posts of the users whom its user follows, newest first, and no posts of users whom it mutes or with whom there is a
// block. A gateway that has lost an event finds the post some seconds later.
func (d *deployment) feedsAreRight(t testing.TB) {
	t.Helper()
	posts := d.publications(t)
	slices.SortFunc(posts, func(a, b publication) int {
		if a.at != b.at {
			return int(b.at - a.at)
		}
		return int(b.number - a.number)
	})
	following, muted := d.tables(t).forward, d.rows(t, "relation", func(e edge) int64 { return e.from })
	c := d.client(t)
	for viewer := int64(1); viewer <= people; viewer++ {
		var want []string
		for _, p := range posts {
			if e := (edge{viewer, p.author}); following[e].kind == 1 && muted[e].kind != 1 {
				want = append(want, p.id())
			}
		}
		for _, n := range d.gateways {
			must.OKSoon(t, func() error {
				if got := d.feed(t, c, n, viewer); !slices.Equal(got, want) {
					return fmt.Errorf("the feed of user %d on %s is %v, want %v", viewer, n.name, got, want)
				}
				return nil
			})
		}
	}
}

// publications returns the posts in the tables.
func (d *deployment) publications(t testing.TB) (posts []publication) {
	t.Helper()
	for _, db := range d.shards {
		rows, err := db.Query("SELECT author_id, post_id, created_at FROM post WHERE state = 0")
		must.OK(t, err)
		for rows.Next() {
			var p publication
			must.OK(t, rows.Scan(&p.author, &p.number, &p.at))
			posts = append(posts, p)
		}
		must.OK(t, rows.Err())
	}
	return posts
}

// feed pages through the whole home feed of a user.
func (d *deployment) feed(t testing.TB, c *client, n *node, viewer int64) (ids []string) {
	t.Helper()
	after := ""
	for {
		query := `{ viewer { feed(first: 7` + after + `) { nodes { id } complete pageInfo { hasNextPage endCursor } } } }`
		a := n.asks(t, c, viewer, query, nil)
		var shown struct {
			Feed struct {
				Nodes    []struct{ ID string }
				Complete bool
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		must.OK(t, json.Unmarshal(a.Data["viewer"], &shown))
		must.That(t, shown.Feed.Complete, "the feed of user %d is not complete", viewer)
		for _, post := range shown.Feed.Nodes {
			ids = append(ids, post.ID)
		}
		if !shown.Feed.PageInfo.HasNextPage {
			return ids
		}
		after = fmt.Sprintf(", after: %q", shown.Feed.PageInfo.EndCursor)
	}
}

// publishAnother has a user publish another post through a gateway. One in three of these posts is then
// deleted through any gateway.
func (d *deployment) publishAnother(ctx context.Context, c *client, random *rand.Rand, l *life, viewer int64) (field, outcome string, err error) {
	text := fmt.Sprintf(`mutation { m: publishPost(text: "y", clientKey: "k%d") { post { id } } }`, random.Int64())
	a, err := c.ask(ctx, l.gateway.URL, viewer, "", text, nil)
	if err != nil || a.code() != "" || random.IntN(3) > 0 {
		return "publishPost", cmp.Or(a.code(), "changed: true"), err
	}
	var published struct{ Post struct{ ID string } }
	if err := json.Unmarshal(a.Data["m"], &published); err != nil {
		return "publishPost", "", err
	}
	l = d.gateways[random.IntN(len(d.gateways))].now.Load()
	a, err = c.ask(ctx, l.gateway.URL, viewer, "", fmt.Sprintf(`mutation { m: deletePost(postId: %q) { changed } }`, published.Post.ID), nil)
	return "deletePost", cmp.Or(a.code(), "changed: true"), err
}

// publishers publish posts of users 1 … people while a schedule runs. Each post has a key. It is sent again,
// through any gateway, until it is acknowledged.
type publishers struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
}

func (d *deployment) publishers(t *testing.T, n int, seed uint64) *publishers {
	ctx, stop := context.WithCancel(t.Context())
	p := &publishers{stop: stop}
	for i := range n {
		c, random := d.client(t), rand.New(rand.NewPCG(seed, 1<<40+uint64(i)))
		p.running.Go(func() {
			for key := i; ctx.Err() == nil; key += n {
				if id := d.publishSurely(ctx, c, random, 1+int64(key%people), key); id != "" {
					p.mu.Lock()
					p.acknowledged = append(p.acknowledged, id)
					p.mu.Unlock()
				}
				time.Sleep(100 * time.Millisecond) // below the limit of what a user may write in a minute
			}
		})
	}
	return p
}

// publishSurely publishes a post and returns its id, or "" if the schedule ended before.
func (d *deployment) publishSurely(ctx context.Context, c *client, random *rand.Rand, author int64, key int) string {
	text := fmt.Sprintf(`mutation { m: publishPost(text: "y", clientKey: "k%d") { post { id } } }`, key)
	for ctx.Err() == nil {
		if l := d.gateways[random.IntN(len(d.gateways))].now.Load(); l != nil {
			a, err := c.ask(ctx, l.gateway.URL, author, "", text, nil)
			var published struct{ Post struct{ ID string } }
			if err == nil && a.code() == "" && json.Unmarshal(a.Data["m"], &published) == nil {
				return published.Post.ID
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ""
}

// end stops the publishers, and checks that every acknowledged post is in the tables.
func (p *publishers) end(t *testing.T, d *deployment) {
	t.Helper()
	p.stop()
	p.running.Wait()
	there := map[string]bool{}
	for _, post := range d.publications(t) {
		there[post.id()] = true
	}
	for _, id := range p.acknowledged {
		check.That(t, there[id], "%s was acknowledged and is not there", id)
	}
	check.Least(t, "posts", len(p.acknowledged), 1)
	t.Logf("%d posts acknowledged, %d there", len(p.acknowledged), len(there))
}
