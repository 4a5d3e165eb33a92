package hostile

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// A Socket is a way to attack a gateway over WebSockets. Run continues until its context is done;
// url is that of /graphql, with ws://, and token is a user's, "" for nobody.
type Socket struct {
	Name string
	Run  func(ctx context.Context, url, token string)
}

// Sockets are the known attacks. Each runs into a bound.
var Sockets = []Socket{
	{"extensions", onSockets(func(a *attacker) {
		for i := range 100 {
			a.subscribe(i, `"query":"subscription { followerAdded { edge { cursor } } }","extensions":{"a":[`+strings.Repeat(`{"a":[]},`, 13_000)+`0]}`)
		}
	})},
	{"extensions as large as a body", onSockets(func(a *attacker) {
		a.subscribe(1, `"query":"subscription { followerAdded { edge { cursor } } }","extensions":{"a":[`+strings.Repeat(`{"a":[]},`, 100_000)+`0]}`)
	})},
	{"long ids", onSockets(func(a *attacker) {
		for i := range 100 {
			a.send(fmt.Sprintf(`{"type":"subscribe","id":"%d%s","payload":{"query":"{ __typename }"}}`, i, strings.Repeat("x", 100_000)))
		}
	})},
	{"one id again and again", onSockets(func(a *attacker) {
		for range 100 {
			a.subscribe(1, `"query":"subscription { followerAdded { edge { cursor } } }"`)
		}
	})},
	{"pings with payloads", onSockets(func(a *attacker) {
		for range 1000 {
			a.send(`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 1000) + `"}}`)
		}
		a.send(`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 100_000) + `"}}`)
	})},
	{"many subscriptions", onSockets(func(a *attacker) {
		fields := strings.Repeat(" ", 1)
		for i := range 40 {
			fields += fmt.Sprintf("a%d: followings(first: 10) { nodes { id } } ", i)
		}
		for i := range 100 {
			a.subscribe(i, `"query":"subscription { followerAdded { edge { node {`+fields+`} } } }"`)
		}
		a.listen(time.Second)
	})},
	{"costly subscriptions", onSockets(func(a *attacker) {
		for i := range 100 {
			a.subscribe(i, `"query":"subscription { followerAdded { edge { node { followings(first: 100) { nodes { followings(first: 100) { nodes { id handle name } } } } } } } }"`)
		}
		a.listen(time.Second)
	})},
	{"many ids to watch", onSockets(func(a *attacker) {
		ids := strings.TrimSuffix(strings.Repeat(`"9000000000000000000",`, 500), ",")
		for i := range 100 {
			a.subscribe(i, `"query":"subscription ($ids: [ID!]!) { relationshipChanged(userIds: $ids) { relationship { id } } }","variables":{"ids":[`+ids+`]}`)
		}
		a.listen(time.Second)
	})},
	{"idle sockets", func(ctx context.Context, url, token string) {
		var all sync.WaitGroup
		for range 2000 {
			all.Go(func() {
				if a := openAttack(ctx, url, token); a != nil {
					defer a.conn.CloseNow()
					_, _, _ = a.conn.Read(ctx)
				}
			})
		}
		all.Wait()
		<-ctx.Done()
	}},
	{"no connection_init", func(ctx context.Context, url, _ string) {
		repeatedly(ctx, func() {
			if conn := dialAttack(ctx, url, nil); conn != nil {
				_, _, _ = conn.Read(ctx) // until it is closed
				_ = conn.CloseNow()
			}
		})
	}},
	{"a huge connection_init", func(ctx context.Context, url, _ string) {
		repeatedly(ctx, func() {
			if conn := dialAttack(ctx, url, nil); conn != nil {
				a := &attacker{ctx, conn}
				a.send(`{"type":"connection_init","payload":{"a":[` + strings.Repeat(`{"a":[]},`, 13_000) + `0]}}`)
				a.listen(time.Second)
				_ = conn.CloseNow()
			}
		})
	}},
	{"huge headers", func(ctx context.Context, url, _ string) {
		repeatedly(ctx, func() {
			if conn := dialAttack(ctx, url, http.Header{"Cookie": {strings.Repeat("x", 60_000)}}); conn != nil {
				_, _, _ = conn.Read(ctx)
				_ = conn.CloseNow()
			}
		})
	}},
	{"subscribe and complete", onSockets(func(a *attacker) {
		for i := range 500 {
			a.subscribe(i, `"query":"subscription { followerAdded { edge { cursor } } }"`)
			a.send(fmt.Sprintf(`{"type":"complete","id":"%d"}`, i))
		}
	})},
	{"a slow reader", func(ctx context.Context, url, token string) {
		repeatedly(ctx, func() { readSlowly(ctx, url, token) })
	}},
	{"no UTF-8", onSockets(func(a *attacker) {
		a.send("{\"type\":\"subscribe\",\"id\":\"\xff\xfe\",\"payload\":{\"query\":\"{ \xc3\x28 }\"}}")
		a.listen(time.Second)
	})},
	{"binary messages", onSockets(func(a *attacker) {
		_ = a.conn.Write(a.ctx, websocket.MessageBinary, []byte(strings.Repeat("\x00\xff", 60_000)))
		a.listen(time.Second)
	})},
	{"operations beyond the bound", onSockets(func(a *attacker) {
		for i := range 300 {
			a.subscribe(i, `"query":"{ viewer { user { followings(first: 100) { nodes { id } } } } }"`)
		}
		a.listen(time.Second)
	})},
	{"costly queries", onSockets(func(a *attacker) {
		for i := range 20 {
			a.subscribe(i, `"query":"{ viewer { user { followings(first: 100) { nodes { followers(first: 100) { nodes { id handle name } } } } } } }"`)
		}
		a.listen(time.Second)
	})},
	{"deep variables", onSockets(func(a *attacker) {
		for i := range 100 {
			a.subscribe(i, `"query":"query ($a: ID!) { user(by: {id: $a}) { id } }","variables":{"a":`+strings.Repeat(`[`, 9_000)+strings.Repeat(`]`, 9_000)+`,"b":[`+strings.Repeat(`{},`, 30_000)+`0]}`)
		}
	})},
	{"long texts, each another", onSockets(func(a *attacker) {
		for i := range 100 {
			a.subscribe(i, fmt.Sprintf(`"query":"subscription { followerAdded { edge {  cursor %s  } } } #%d"`, strings.Repeat("cursor ", 3_000), i))
		}
	})},
}

// attacker is the far end of one connection.
type attacker struct {
	ctx  context.Context
	conn *websocket.Conn
}

// send ignores errors: the connection may be closed, as it should be.
func (a *attacker) send(text string) {
	_ = a.conn.Write(a.ctx, websocket.MessageText, []byte(text))
}

func (a *attacker) subscribe(id int, payload string) {
	a.send(fmt.Sprintf(`{"type":"subscribe","id":"%d","payload":{%s}}`, id, payload))
}

// listen takes answers for a while.
func (a *attacker) listen(d time.Duration) {
	ctx, cancel := context.WithTimeout(a.ctx, d)
	defer cancel()
	for {
		if _, _, err := a.conn.Read(ctx); err != nil {
			return
		}
	}
}

// repeatedly does something again and again, a hundred times a second at most.
func repeatedly(ctx context.Context, attack func()) {
	for ctx.Err() == nil {
		attack()
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// onSockets opens one connection after another, initialises it, and does something on it.
func onSockets(attack func(*attacker)) func(ctx context.Context, url, token string) {
	return func(ctx context.Context, url, token string) {
		repeatedly(ctx, func() {
			if a := openAttack(ctx, url, token); a != nil {
				attack(a)
				_ = a.conn.CloseNow()
			}
		})
	}
}

// openAttack returns a connection that is initialised, or nil.
func openAttack(ctx context.Context, url, token string) *attacker {
	conn := dialAttack(ctx, url, nil)
	if conn == nil {
		return nil
	}
	a := &attacker{ctx, conn}
	payload := "null"
	if token != "" {
		payload = fmt.Sprintf(`{"Authorization":"Bearer %s"}`, token)
	}
	a.send(`{"type":"connection_init","payload":` + payload + `}`)
	return a
}

func dialAttack(ctx context.Context, url string, header http.Header) *websocket.Conn {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: header})
	if err != nil {
		return nil
	}
	return conn
}

// readSlowly asks for a long answer and reads a byte of it ten times a second.
func readSlowly(ctx context.Context, url, token string) {
	var raw net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		raw = conn
		return conn, err
	}}}
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: client})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	a := &attacker{ctx, conn}
	a.send(fmt.Sprintf(`{"type":"connection_init","payload":{"Authorization":"Bearer %s"}}`, token))
	for i := range 100 {
		a.subscribe(i, `"query":"{ viewer { user { followings(first: 100) { nodes { id handle name bio } } } } __schema { types { name description fields { name description } } } }"`)
	}
	for ctx.Err() == nil {
		_ = raw.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := raw.Read(make([]byte, 1)); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}
