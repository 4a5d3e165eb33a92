package faults_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// TestSubscriptionsAcrossGateways subscribes at one gateway and writes at another. Both are killed in turn, the
// writing one in the middle of its writes. The client is notified of every acknowledged follow, favorite and
// comment, unless its own gateway was down. In that case it asks for them after it has subscribed again. With
// Redis that is promised in every mode. Without Redis it is promised on SQLite, where gateways read the
// relation_log, but not for comments. With Redis, it is left to internal/sim there.
func TestSubscriptionsAcrossGateways(t *testing.T) {
	t.Parallel()
	inEach(t, notSimulated(), func(t *testing.T, mode string) {
		subscribe(t, prepare(t, testenv.SharedMariaDB(t, 2), mode, listeners)).throughKills(t)
	})
	t.Run("sqlite without Redis", func(t *testing.T) {
		t.Parallel()
		subscribe(t, onFile(t)).throughKills(t)
	})
}

// TestSubscriptionsWithoutRedis: on MariaDB, gateways without a Redis do not notify one another. A client that
// asks gets what another gateway has written. If the only other gateway is killed, the remaining one notifies its
// subscriptions of what is written through it. (The mode stream refuses to start without Redis.)
func TestSubscriptionsWithoutRedis(t *testing.T) {
	t.Parallel()
	mode := "binlog"
	if !testenv.HasBinlog() {
		mode = "sync"
	}
	servers := testenv.SharedMariaDB(t, 2)
	subscribe(t, assemble(t, servers, servers.FreshDatabases(t, 2), nil, mode, listeners)).apart(t)
}

// TestSubscriptionHearsOfAKilledWriter kills a gateway that has acknowledged a follow, but has not notified the
// other gateways yet. Once its lease has ended, subscriptions read what they have missed, and report the follow.
func TestSubscriptionHearsOfAKilledWriter(t *testing.T) {
	t.Parallel()
	d := prepare(t, testenv.SharedMariaDB(t, 2), "sync", listeners)
	way := testenv.NewLink(t, d.redis.Addr())
	d.gateways = []*node{d.serving("the gateway that notifies"), d.serving("the gateway that writes", "--redis", "redis://"+way.Addr+"/0")}
	s := subscribeOn(t, d)
	s.begin(t, s.writer())
	sprung := way.SilenceAt("publish")
	last := s.follow(t, s.writer(), 1)
	<-sprung
	s.writer().kill(t)
	s.hear(t, "acknowledged by a gateway that was killed before it notified the others", last)
}

// listeners is how many users there are: the viewer, and its followers.
const listeners = 450

// onFile is a deployment on a SQLite file.
func onFile(t testing.TB) *deployment {
	t.Helper()
	d := &deployment{mode: "sync", shardMap: storage.NewShardMap(1), sqlite: filepath.Join(t.TempDir(), "kith.db")}
	d.begin(t, listeners)
	return d
}

// viewer is the user who subscribes. Everybody else follows the viewer, favorites its post and comments on it, once.
const viewer = 1

// subscribed is a viewer with subscriptions at the first of two gateways.
type subscribed struct {
	*deployment
	*listener
	client *client // for one request at a time
	post   string  // the viewer's post
	last   atomic.Int64

	mu    sync.Mutex
	acked []int64 // users whose follows, favorites and comments were acknowledged
}

// subscribe starts two gateways on a deployment, and subscribes.
func subscribe(t testing.TB, d *deployment) *subscribed {
	t.Helper()
	d.gateways = []*node{d.serving("the gateway that notifies"), d.serving("the gateway that writes")}
	return subscribeOn(t, d)
}

func subscribeOn(t testing.TB, d *deployment) *subscribed {
	t.Helper()
	s := &subscribed{deployment: d, client: d.client(t)}
	s.last.Store(viewer)
	d.start(t)
	s.publish(t)
	s.connect(t)
	return s
}

// publish writes the viewer's post.
func (s *subscribed) publish(t testing.TB) {
	t.Helper()
	a := s.notifier().asks(t, s.client, viewer, `mutation { publishPost(text: "x", clientKey: "x") { post { id } } }`, nil)
	var made struct{ Post struct{ ID string } }
	must.OK(t, json.Unmarshal(a.Data["publishPost"], &made))
	s.post = made.Post.ID
}

func (s *subscribed) notifier() *node { return s.gateways[0] }
func (s *subscribed) writer() *node   { return s.gateways[1] }

// connect subscribes, and does so again after the gateway was killed.
func (s *subscribed) connect(t testing.TB) {
	t.Helper()
	var others []int64
	for user := int64(viewer + 1); user <= listeners; user++ {
		others = append(others, user)
	}
	s.listener = s.listen(t, s.notifier().now.Load(), viewer, others)
	s.unheard = s.redis == nil
}

// next is a user who does not follow the viewer yet.
func (s *subscribed) next() int64 { return s.last.Add(1) }

// send has a user follow, favorite and comment through a gateway, and reports whether all of it was acknowledged.
// An error in an answer fails the test.
func (s *subscribed) send(t testing.TB, c *client, at *life, user int64) bool {
	t.Helper()
	if user > listeners {
		t.Error("there are not so many users")
		return false
	}
	for _, part := range []struct {
		query string
		with  map[string]any
	}{
		{mutation("follow", lean), map[string]any{"id": id(viewer)}},
		{`mutation($p: ID!) { favorite(postId: $p) { changed } }`, map[string]any{"p": s.post}},
		{`mutation($p: ID!) { addComment(postId: $p, text: "x", clientKey: "x") { comment { id } } }`, map[string]any{"p": s.post}},
	} {
		a, err := c.ask(t.Context(), at.gateway.URL, user, "", part.query, part.with)
		if err != nil {
			return false
		}
		if a.code() != "" {
			t.Errorf("user %d asks %s of %s: %+v", user, part.query, at.name, a.Errors)
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = append(s.acked, user)
	return true
}

// follow has some users follow the viewer through a gateway that is running.
func (s *subscribed) follow(t testing.TB, at *node, n int) (users []int64) {
	t.Helper()
	for range n {
		user := s.next()
		must.That(t, s.send(t, s.client, at.now.Load(), user), "%s does not answer", at.name)
		users = append(users, user)
	}
	return users
}

// begin waits until the subscriptions report what is written through a gateway. Until then nothing is promised:
// subscriptions begin with the next event, and a replicator that was killed may have to be replaced first.
func (s *subscribed) begin(t testing.TB, at *node) {
	t.Helper()
	until(t, "the subscriptions report follows at "+at.name, func() bool {
		user := s.follow(t, at, 1)[0]
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if s.heard(user) {
				return true
			}
		}
		return false
	})
}

// hear waits until all subscriptions have reported some users.
func (s *subscribed) hear(t testing.TB, what string, users []int64) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		missing := slices.DeleteFunc(slices.Clone(users), s.heard)
		if len(missing) == 0 {
			return
		}
		must.That(t, !time.Now().After(deadline), "%s: %v not reported within %s", what, missing, patience)
	}
}

// acknowledged returns the users whose follows were acknowledged, from an index on.
func (s *subscribed) acknowledged(from int) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.acked[from:])
}

// killWriting kills the writing gateway while four clients write through it. It returns the users whose follows
// that gateway has acknowledged.
func (s *subscribed) killWriting(t testing.TB) []int64 {
	t.Helper()
	const before = 20
	from := len(s.acknowledged(0))
	at := s.writer().now.Load()
	var writing sync.WaitGroup
	for range 4 {
		c := s.deployment.client(t)
		writing.Go(func() {
			for range listeners / 10 {
				if !s.send(t, c, at, s.next()) {
					return
				}
			}
			t.Error("the gateway was not killed in the middle")
		})
	}
	until(t, "writes", func() bool { return len(s.acknowledged(from)) >= before })
	s.writer().kill(t)
	writing.Wait()
	return s.acknowledged(from)
}

// killNotifier kills the gateway of the subscriptions, which ends them.
func (s *subscribed) killNotifier(t testing.TB) {
	t.Helper()
	s.nothingElse(t)
	s.notifier().kill(t)
	s.running.Wait()
}

// nothingElse checks that everything that was reported has happened, and that no errors came.
func (s *subscribed) nothingElse(t testing.TB) {
	t.Helper()
	followers, errors := s.reported()
	for _, user := range followers {
		check.That(t, user > viewer && user <= s.last.Load(), "followerAdded reports user %d, who has not followed", user)
	}
	for _, text := range errors {
		t.Errorf("a subscription gets %s", text)
	}
}

// askAll waits until all users whose follows were acknowledged are in the list of followers that a gateway shows.
func (s *subscribed) askAll(t testing.TB, at *node) {
	t.Helper()
	const query = `query($id: ID!, $after: String) { user(by: {id: $id}) { followers(first: 100, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }`
	want := s.acknowledged(0)
	until(t, "all acknowledged follows are shown by "+at.name, func() bool {
		shown := map[int64]bool{}
		for after := (any)(nil); ; {
			a := at.asks(t, s.client, viewer, query, map[string]any{"id": id(viewer), "after": after})
			var user struct {
				Followers struct {
					Nodes []struct {
						ID int64 `json:",string"`
					}
					PageInfo struct {
						HasNextPage bool
						EndCursor   string
					}
				}
			}
			must.OK(t, json.Unmarshal(a.Data["user"], &user))
			for _, n := range user.Followers.Nodes {
				shown[n.ID] = true
			}
			if !user.Followers.PageInfo.HasNextPage {
				break
			}
			after = user.Followers.PageInfo.EndCursor
		}
		return !slices.ContainsFunc(want, func(user int64) bool { return !shown[user] })
	})
}

// throughKills checks what is promised if gateways notify one another.
func (s *subscribed) throughKills(t *testing.T) {
	s.begin(t, s.writer())
	some := s.follow(t, s.writer(), 5)
	s.hear(t, "written at another gateway", some)
	s.writer().asks(t, s.client, viewer, mutation("follow", lean), map[string]any{"id": id(some[0])})
	until(t, "the viewer's own follow at another gateway is reported", func() bool { return s.status(some[0]) == "MUTUAL" })

	acked := s.killWriting(t)
	s.hear(t, "acknowledged by a gateway that was killed then", acked)
	s.writer().start(t)
	s.hear(t, "written at a gateway that is back", s.follow(t, s.writer(), 5))

	s.killNotifier(t)
	away := s.follow(t, s.writer(), 5)
	s.notifier().start(t)
	s.connect(t)
	s.begin(t, s.writer())
	s.askAll(t, s.notifier())
	s.hear(t, "written after the client has subscribed again", s.follow(t, s.writer(), 5))
	s.nothingElse(t)
	t.Logf("%d follows acknowledged, %d of them by a gateway that was killed then, %d while the other was away", len(s.acknowledged(0)), len(acked), len(away))
}

// apart checks what is promised if gateways do not notify one another.
func (s *subscribed) apart(t *testing.T) {
	s.follow(t, s.writer(), 5)
	s.askAll(t, s.notifier())

	acked := s.killWriting(t)
	s.begin(t, s.notifier())
	s.hear(t, "written at the gateway of the subscriptions, which is alone", s.follow(t, s.notifier(), 5))
	s.askAll(t, s.notifier())
	s.writer().start(t)
	s.follow(t, s.writer(), 5)
	s.askAll(t, s.notifier())

	s.killNotifier(t)
	s.follow(t, s.writer(), 5)
	s.notifier().start(t)
	s.connect(t)
	s.askAll(t, s.notifier())
	s.writer().kill(t)
	s.begin(t, s.notifier())
	s.hear(t, "written at a gateway that is back, and alone", s.follow(t, s.notifier(), 5))
	s.nothingElse(t)
	t.Logf("%d follows acknowledged, %d of them by a gateway that was killed then", len(s.acknowledged(0)), len(acked))
}
