package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"kith/internal/must"
)

// listener is a client with four subscriptions of a viewer at one gateway: followerAdded over a WebSocket,
// and relationshipChanged, favoriteAdded and commentAdded as server-sent events.
type listener struct {
	unheard bool           // comments are not reported, because gateways are notified of them only through Redis
	raw     chan string    // gets the answers as they are; nil: they are noted below
	running sync.WaitGroup // all connections

	mu        sync.Mutex
	followers map[int64]bool   // whom followerAdded has reported
	statuses  map[int64]string // what relationshipChanged has reported last
	favorited map[int64]bool   // whom favoriteAdded has reported
	commented map[int64]bool   // whom commentAdded has reported
	errors    []string         // errors that came instead of an answer
}

// listen connects a viewer, and subscribes to some others. The subscriptions begin some time later, see
// [subscribed.begin].
func (d *deployment) listen(t testing.TB, l *life, viewer int64, others []int64) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &listener{followers: map[int64]bool{}, statuses: map[int64]string{}, favorited: map[int64]bool{}, commented: map[int64]bool{}}
	t.Cleanup(func() { cancel(); n.running.Wait() })
	token := "Bearer " + d.token(t, viewer)
	n.overWebSocket(t, ctx, l.gateway.URL, token, `subscription { followerAdded { edge { node { id } } } }`)
	ids := make([]string, len(others))
	for i, other := range others {
		ids[i] = id(other)
	}
	n.overEvents(t, ctx, l.gateway.URL, token, `subscription($ids: [ID!]!) { relationshipChanged(userIds: $ids) { relationship { to { id } status } } }`, map[string]any{"ids": ids})
	n.overEvents(t, ctx, l.gateway.URL, token, `subscription { favoriteAdded { edge { node { id } } } }`, nil)
	n.overEvents(t, ctx, l.gateway.URL, token, `subscription { commentAdded { edge { node { author { id } } } } }`, nil)
	return n
}

// message is a message of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

func (n *listener) overWebSocket(t testing.TB, ctx context.Context, url, token, query string) {
	t.Helper()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http")+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	must.OK(t, err)
	var ack message
	for _, step := range []func() error{
		func() error {
			return wsjson.Write(ctx, conn, map[string]any{"type": "connection_init", "payload": map[string]any{"Authorization": token}})
		},
		func() error { return wsjson.Read(ctx, conn, &ack) },
		func() error {
			return wsjson.Write(ctx, conn, map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{"query": query}})
		},
	} {
		must.OK(t, step())
	}
	must.Equal(t, "the answer to connection_init", ack.Type, "connection_ack")
	n.running.Go(func() {
		defer conn.CloseNow()
		for {
			var m message
			if wsjson.Read(ctx, conn, &m) != nil {
				return
			}
			switch m.Type {
			case "next":
				n.take(m.Payload)
			case "ping":
				_ = wsjson.Write(ctx, conn, message{Type: "pong"}) // otherwise the next read fails
			default:
				n.fail(fmt.Sprintf("%s %s", m.Type, m.Payload))
			}
		}
	})
}

func (n *listener) overEvents(t testing.TB, ctx context.Context, url, token, query string, variables map[string]any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	must.OK(t, err)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", strings.NewReader(string(body)))
	must.OK(t, err)
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream", "Authorization": token} {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{}
	response, err := (&http.Client{Transport: transport}).Do(request)
	must.OK(t, err)
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("subscribe over server-sent events: status %d: %s", response.StatusCode, text)
	}
	n.running.Go(func() {
		defer transport.CloseIdleConnections()
		defer response.Body.Close()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				n.take(json.RawMessage(data))
			}
		}
	})
}

// take notes an answer of one of the subscriptions.
func (n *listener) take(text json.RawMessage) {
	if n.raw != nil {
		n.raw <- string(text)
		return
	}
	type person struct{ ID string }
	var message struct {
		Data struct {
			FollowerAdded, FavoriteAdded *struct{ Edge struct{ Node person } }
			CommentAdded                 *struct {
				Edge struct{ Node struct{ Author person } }
			}
			RelationshipChanged *struct {
				Relationship struct {
					To     person
					Status string
				}
			}
		}
	}
	err := json.Unmarshal(text, &message)
	var whose string
	switch {
	case err == nil && message.Data.FollowerAdded != nil:
		whose = message.Data.FollowerAdded.Edge.Node.ID
	case err == nil && message.Data.RelationshipChanged != nil:
		whose = message.Data.RelationshipChanged.Relationship.To.ID
	case err == nil && message.Data.FavoriteAdded != nil:
		whose = message.Data.FavoriteAdded.Edge.Node.ID
	case err == nil && message.Data.CommentAdded != nil:
		whose = message.Data.CommentAdded.Edge.Node.Author.ID
	default:
		n.fail(string(text))
		return
	}
	user, err := strconv.ParseInt(whose, 10, 64)
	if err != nil {
		n.fail(string(text))
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r := message.Data.RelationshipChanged; {
	case r != nil:
		n.statuses[user] = r.Relationship.Status
	case message.Data.FavoriteAdded != nil:
		n.favorited[user] = true
	case message.Data.CommentAdded != nil:
		n.commented[user] = true
	default:
		n.followers[user] = true
	}
}

func (n *listener) fail(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errors = append(n.errors, text)
}

// heard reports whether all subscriptions have reported a user, who follows the viewer, has favorited its
// post, and has commented on it.
func (n *listener) heard(user int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.followers[user] && n.favorited[user] && (n.commented[user] || n.unheard) && (n.statuses[user] == "FOLLOWED_BY" || n.statuses[user] == "MUTUAL")
}

// status is what relationshipChanged last reported about a user.
func (n *listener) status(user int64) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.statuses[user]
}

// reported returns all users whom followerAdded has reported, and the errors that came instead of answers.
func (n *listener) reported() (followers []int64, errors []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for user := range n.followers {
		followers = append(followers, user)
	}
	return followers, n.errors
}
