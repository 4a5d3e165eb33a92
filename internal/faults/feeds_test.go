package faults_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A publication is a post as its table has it.
type publication struct{ author, number, at int64 }

func (p publication) id() string { return fmt.Sprintf("post_%d_%d", p.author, p.number) }

// feedsAreRight compares the home feed of every user, as each gateway gives it, with the tables: the posts of
// whom the user follows, newest first, and none of anybody with whom there is a block. A gateway that has
// lost an event finds the post some seconds later.
func (d *deployment) feedsAreRight(t testing.TB) {
	t.Helper()
	var posts []publication
	for _, db := range d.shards {
		rows, err := db.Query("SELECT author_id, post_id, created_at FROM post WHERE state = 0")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var p publication
			if err := rows.Scan(&p.author, &p.number, &p.at); err != nil {
				t.Fatal(err)
			}
			posts = append(posts, p)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(posts, func(a, b publication) int {
		if a.at != b.at {
			return int(b.at - a.at)
		}
		return int(b.number - a.number)
	})
	following := d.tables(t).forward
	c := d.client(t)
	for viewer := int64(1); viewer <= people; viewer++ {
		var want []string
		for _, p := range posts {
			if following[edge{viewer, p.author}].kind == 1 {
				want = append(want, p.id())
			}
		}
		for _, n := range d.gateways {
			var got []string
			for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				if got = d.feed(t, c, n, viewer); slices.Equal(got, want) {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the feed of user %d on %s is %v, want %v", viewer, n.name, got, want)
				}
			}
		}
	}
}

// feed pages through the whole home feed of a user.
func (d *deployment) feed(t testing.TB, c *client, n *node, viewer int64) (ids []string) {
	t.Helper()
	after := ""
	for {
		query := `{ viewer { feed(first: 7` + after + `) { nodes { id } complete pageInfo { hasNextPage endCursor } } } }`
		a, err := c.ask(t.Context(), n.now.Load().gateway.URL, viewer, "", query, nil)
		if err != nil || len(a.Errors) > 0 {
			t.Fatalf("the feed of user %d: %v %v", viewer, err, a.Errors)
		}
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
		if err := json.Unmarshal(a.Data["viewer"], &shown); err != nil || !shown.Feed.Complete {
			t.Fatalf("the feed of user %d: %s, %v", viewer, a.Data["viewer"], err)
		}
		for _, post := range shown.Feed.Nodes {
			ids = append(ids, post.ID)
		}
		if !shown.Feed.PageInfo.HasNextPage {
			return ids
		}
		after = fmt.Sprintf(", after: %q", shown.Feed.PageInfo.EndCursor)
	}
}

// publishAnother has a user publish another post through a gateway, and delete a third of them through
// any one.
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
	a, err = c.ask(ctx, l.gateway.URL, viewer, "", fmt.Sprintf(`mutation { m: deletePost(id: %q) { changed } }`, published.Post.ID), nil)
	return "deletePost", cmp.Or(a.code(), "changed: true"), err
}
