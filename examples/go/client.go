// Asking Kith by a client that genqlient has generated from operations.graphql.
package main

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

//go:generate go tool genqlient

// allFollowings pages through a list of any length, newest first.
func allFollowings(ctx context.Context, kith graphql.Client, handle string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := (*string)(nil); ; {
			page, err := Followings(ctx, kith, handle, after)
			if err != nil {
				yield("", err)
				return
			}
			if page.User == nil || page.User.Followings == nil {
				return // there is no such user, or the list is not open
			}
			list := page.User.Followings
			for _, node := range list.Nodes {
				if !yield(node.Handle, nil) {
					return
				}
			}
			if after = list.PageInfo.EndCursor; !list.PageInfo.HasNextPage {
				return
			}
		}
	}
}

// code is what Kith says of an error to programs, such as BAD_USER_INPUT, or "" if it says nothing.
func code(err error) string {
	var list gqlerror.List
	if refused := (*graphql.HTTPError)(nil); errors.As(err, &refused) {
		list = refused.Response.Errors
	} else {
		errors.As(err, &list)
	}
	if len(list) == 0 {
		return "" // perhaps a proxy has answered
	}
	text, _ := list[0].Extensions["code"].(string)
	return text
}

// watch calls seen with each new follower until the subscription or the connection ends: with its token, by 4403, or with the gateway.
func (s *Session) watch(ctx context.Context, url string, connected func(), seen func(handle string)) error {
	token, _ := s.state()
	line := &dialer{}
	socket := graphql.NewClientUsingWebSocket(strings.Replace(url, "http", "ws", 1), line,
		graphql.WithConnectionParams(map[string]any{"Authorization": "Bearer " + token}))
	failed, err := socket.Start(ctx)
	if err == nil {
		defer socket.Close()
		var followers chan NewFollowersWsResponse
		if followers, _, err = NewFollowers(ctx, socket); err == nil {
			connected()
			for err == nil {
				select {
				case f, more := <-followers:
					if !more {
						followers = nil
						line.conn.Close() // of which failed tells: the socket's own Close would end the subscription once more, and panic
					} else if f.Data != nil {
						seen(f.Data.FollowerAdded.Edge.Node.Handle)
					}
				case err = <-failed:
				}
			}
		}
	}
	if websocket.IsCloseError(err, 4403) {
		_, err = s.Renew(ctx, token)
	}
	return err
}

type dialer struct{ conn *websocket.Conn }

func (d *dialer) DialContext(ctx context.Context, url string, header http.Header) (_ graphql.WSConn, err error) {
	d.conn, _, err = websocket.DefaultDialer.DialContext(ctx, url, header)
	return d.conn, err
}
