package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/accounts/identity"
	"kith/storage"
	"kith/storage/sleep"
)

// request is a question of a viewer.
func request(ctx context.Context, viewer storage.UserID, accept, query string) *http.Request {
	body, _ := json.Marshal(map[string]string{"query": query})
	r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	return r.WithContext(identity.With(ctx, identity.Viewer{ID: viewer}))
}

// ask reads the answer to a query into a value; false if it has errors.
func (g *gateway) ask(ctx context.Context, viewer storage.UserID, query string, into any) bool {
	answer := httptest.NewRecorder()
	g.api.ServeHTTP(answer, request(ctx, viewer, "application/json", query))
	whole := struct {
		Data   any
		Errors []any
	}{Data: into}
	return json.Unmarshal(answer.Body.Bytes(), &whole) == nil && len(whole.Errors) == 0
}

// feed reads whose posts are in a viewer's home feed; false if that was refused.
func (g *gateway) feedOf(ctx context.Context, viewer storage.UserID) (map[key]string, bool) {
	var data struct {
		Viewer struct {
			Feed struct{ Nodes []struct{ ID string } }
		}
	}
	if !g.ask(ctx, viewer, `{ viewer { feed(first: 100) { nodes { id } } } }`, &data) {
		return nil, false
	}
	texts := map[key]string{}
	for _, post := range g.history.known() {
		texts[key{feed, viewer, post.Author, post.Number}] = ""
	}
	for _, node := range data.Viewer.Feed.Nodes {
		post := postOf(node.ID)
		texts[key{feed, viewer, post.Author, post.Number}] = there
	}
	return texts, true
}

func postOf(id string) (post storage.PostID) {
	_, _ = fmt.Sscanf(id, "post_%d_%d", &post.Author, &post.Number)
	return post
}

// watcher is a client with a subscription.
type watcher struct {
	of     *gateway
	viewer storage.UserID
	what   string    // the key that it watches
	begun  time.Time // when it surely has
	stop   context.CancelFunc

	mu   sync.Mutex
	head http.Header
	rest string // of what has come
	got  []message
}

// message is what a watcher was sent.
type message struct {
	at time.Time
	key
	text string
}

// watched are what clients subscribe to.
var watched = map[string]string{
	relation:  `relationshipChanged(userIds: [1, 2, 3, 4, 5, 6]) { relationship { id to { id } following followedBy muted } }`,
	follower:  `followerAdded { edge { followedAt node { id } } }`,
	feed:      `postAdded { edge { node { id } } }`,
	requested: `requestChanged(kind: FRIEND) { request { id updatedAt } }`,
	activity:  `activityAdded { edge { node { kind at actors { id } othersCount } } }`,
}

// watch subscribes a viewer at a gateway, until that dies.
func (g *gateway) watch(viewer storage.UserID, what string) {
	ctx, stop := context.WithCancel(context.Background())
	c := &watcher{of: g, viewer: viewer, what: what}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // it could not begin while the databases were away
			c.mu.Lock()
			c.head, c.rest, c.got, c.begun = http.Header{}, "", nil, time.Now().Add(time.Second)
			c.mu.Unlock()
			g.api.ServeHTTP(c, request(ctx, viewer, "text/event-stream", "subscription { "+watched[what]+" }"))
			_ = sleep.For(ctx, time.Second+time.Duration(viewer)*time.Millisecond+time.Duration(len(what))*time.Microsecond) // none with another
		}
	}()
	c.stop = func() { stop(); <-ended }
	g.watchers = append(g.watchers, c)
}

// Header, WriteHeader, Write, Flush and SetWriteDeadline are the client's end of server-sent events.
func (c *watcher) Header() http.Header              { return c.head }
func (c *watcher) WriteHeader(int)                  {}
func (c *watcher) Flush()                           {}
func (c *watcher) SetWriteDeadline(time.Time) error { return nil }
func (c *watcher) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events := strings.Split(c.rest+string(text), "\n\n")
	c.rest = events[len(events)-1]
	for _, event := range events[:len(events)-1] {
		if data, is := strings.CutPrefix(event, "event: next\ndata: "); is {
			c.take(data)
		}
	}
	return len(text), nil
}

// take takes an answer.
func (c *watcher) take(data string) {
	type user struct {
		ID storage.UserID `json:",string"`
	}
	var a struct {
		Data struct {
			RelationshipChanged struct {
				Relationship struct {
					ID, Muted             string
					Following, FollowedBy bool
				}
			}
			FollowerAdded struct {
				Edge struct {
					FollowedAt time.Time
					Node       user
				}
			}
			PostAdded struct {
				Edge struct{ Node struct{ ID string } }
			}
			RequestChanged struct {
				Request struct {
					ID        string
					UpdatedAt time.Time
				}
			}
			ActivityAdded struct {
				Edge struct {
					Node struct {
						Kind        string
						At          time.Time
						Actors      []user
						OthersCount int
					}
				}
			}
		}
		Errors []struct{ Path []any }
	}
	err, parts := json.Unmarshal([]byte(data), &a), a.Errors
	// The id of a relationship says who it is with; of who could not be read in a group, it is known that there is somebody.
	parts = slices.DeleteFunc(parts, func(part struct{ Path []any }) bool {
		return len(part.Path) == 3 && part.Path[2] == "to" || len(part.Path) == 5 && part.Path[3] == "actors"
	})
	if err != nil || len(parts) > 0 {
		c.of.note("gateway %s, subscription of %d to %s: %s", c.of.name, c.viewer, c.what, data)
		return
	}
	m := message{at: time.Now(), key: key{what: c.what, user: c.viewer}}
	switch r := a.Data.RelationshipChanged.Relationship; c.what {
	case relation:
		_, _ = fmt.Sscanf(r.ID, "rel_%d_%d", new(int64), &m.other) // `to` is null also of who is hidden
		for part, is := range [...]bool{r.Following, r.FollowedBy, r.Muted != ""} {
			m.post, m.text = int64(part), fmt.Sprint(is)
			c.add(m)
		}
		return
	case follower:
		m.other, m.text = a.Data.FollowerAdded.Edge.Node.ID, since(storage.MicrosOf(a.Data.FollowerAdded.Edge.FollowedAt))
	case feed:
		post := postOf(a.Data.PostAdded.Edge.Node.ID)
		m.other, m.post, m.text = post.Author, post.Number, there
	case requested:
		r, to := a.Data.RequestChanged.Request, storage.UserID(0)
		if _, _ = fmt.Sscanf(r.ID, "req_%d_%d", &m.other, &to); to != c.viewer {
			return // its own
		}
		m.text = since(storage.MicrosOf(r.UpdatedAt))
	case activity: // a message for each of a group
		group := a.Data.ActivityAdded.Edge.Node
		if group.OthersCount > 0 {
			group.Actors = append(group.Actors, user{})
		}
		m.text = since(storage.MicrosOf(group.At))
		for _, actor := range group.Actors {
			m.other = actor.ID
			c.add(m)
		}
		return
	}
	c.add(m)
}

func (c *watcher) add(m message) {
	c.got = append(c.got, m)
	c.of.note("gateway %s, subscription of %d: %v %q", c.of.name, c.viewer, m.key, m.text)
}

func since(at storage.Micros) string { return fmt.Sprint("since ", at) }

// checkWatchers judges what subscriptions have been sent, when all is quiet.
func (w *world) checkWatchers() {
	for _, g := range append(w.gateways, w.dead...) {
		for _, c := range g.watchers {
			w.checkOrder(c)
			if !g.dead.Load() {
				w.checkComplete(c)
			}
		}
	}
}

// oldNews is how much older than a subscription news may be: clocks differ.
const oldNews = 100 * time.Second

// checkOrder checks that each thing was sent in its order, and nothing that has never been.
func (w *world) checkOrder(c *watcher) {
	last := map[key]int{}
	for _, m := range c.got {
		if m.what == activity || w.history.hidden(m.other, m.at.Add(-2*hides), m.at) || w.history.isUnknown(m.key) {
			continue // it is sent as if there were nothing
		}
		versions, i := w.history.all(m.key), -1
		isVersion := func(v version) bool { return v.text == m.text }
		follows := key{what: following, user: m.other, other: m.user}
		if m.what == follower && !slices.ContainsFunc(versions, isVersion) && w.history.find(follows, m.text, time.Time{}, m.at) >= 0 {
			continue // it ended before it got to this side
		}
		was := func(v version) bool { return isVersion(v) && !v.at.After(m.at) }
		if m.what == feed && !slices.ContainsFunc(versions, was) && w.history.fed(m.key, m.at.Add(-hides), m.at) {
			continue // it was followed before the post
		}
		if before, sent := last[m.key]; sent {
			i = before
			if m.what != relation { // which may change and change back before it is read
				i++
			}
		}
		for i = max(i, 0); i < len(versions) && (versions[i].text != m.text || versions[i].at.After(m.at)); i++ {
		}
		if i == len(versions) {
			w.fail(inOrder, "gateway %s sent %v %q at %s, after version %d of %v", c.of.name, m.key, m.text, m.at.Format("05.000000"), last[m.key], versions)
			return
		}
		if at, _ := w.history.published(storage.PostID{Author: m.other, Number: m.post}); m.what == feed && at.Before(c.begun.Add(-oldNews)) {
			w.fail(inOrder, "gateway %s sent %v as new at %s, which was published at %s", c.of.name, m.key, m.at.Format("05.000000"), at.Format("05.000000"))
		}
		last[m.key] = i
	}
}

// checkComplete checks that what has lasted was sent. Of activity, the groups of followers are looked at.
func (w *world) checkComplete(c *watcher) {
	what := c.what
	if what == activity {
		what = follower
	}
	for _, k := range w.history.keys(what, c.viewer) {
		versions := w.history.all(k)
		for i, v := range versions {
			end := time.Now()
			if i+1 < len(versions) {
				end = versions[i+1].at
			}
			lasts := end.Sub(v.at) > forgets+20*time.Second+w.lost
			if i == 0 || v.at.Before(c.begun) || !lasts || !w.isNews(k, v) || w.history.hidden(k.other, v.at.Add(-2*hides), end) {
				continue
			}
			mutes := key{relation, k.user, k.other, 2}
			if c.what == activity && w.history.find(mutes, "true", v.at.Add(-forgets), end) >= 0 {
				continue
			}
			after := v.at
			if w.restored { // a copy that the restore has lost comes back, and was sent before
				after = time.Time{}
			}
			tells := func(m message) bool {
				if c.what == activity { // the time is that of the last one
					return (m.other == k.other || m.other == 0) && m.text >= v.text && !m.at.Before(after)
				}
				return m.key == k && m.text == v.text && !m.at.Before(after)
			}
			if !slices.ContainsFunc(c.got, tells) {
				w.fail(noneMissing, "gateway %s has not sent %s of %v %v", c.of.name, c.what, k, v)
			}
		}
	}
}

// isNews reports whether a version is one that is sent.
func (w *world) isNews(k key, v version) bool {
	at, _ := w.history.published(storage.PostID{Author: k.other, Number: k.post})
	return !v.restored && (k.what == relation || v.text != "" && (k.what == follower || k.what == requested || at.Equal(v.at)))
}
