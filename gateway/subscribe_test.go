package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/graph/generated"
	"kith/graph/model"
	"kith/storage"
)

// live is the real schema. Its subscription followerAdded sends what the test publishes. A
// follower's handle says which set of loaders answered it.
type live struct {
	generated.ResolverRoot

	mu        sync.Mutex
	followers map[chan *model.FollowerAdded]bool
	began     atomic.Int64  // subscriptions so far
	ended     atomic.Int64  // subscriptions whose context is done
	attached  atomic.Int64  // sets of loaders made
	hold      chan struct{} // requests wait for it, and so do answers about follower 303
	working   atomic.Int64  // answers about follower 303 that have begun
	refuse    error
}

func newLive() *live {
	return &live{followers: make(map[chan *model.FollowerAdded]bool), hold: make(chan struct{})}
}

func (l *live) Query() generated.QueryResolver               { return liveQuery{nil, l} }
func (l *live) Subscription() generated.SubscriptionResolver { return liveSubscription{nil, l} }
func (l *live) User() generated.UserResolver                 { return liveUser{nil, l} }

type liveQuery struct {
	generated.QueryResolver
	live *live
}

type liveUser struct {
	generated.UserResolver
	live *live
}

type liveSubscription struct {
	generated.SubscriptionResolver
	*live
}

type viewerKey struct{}

type loaderKey struct{}

func (l liveSubscription) FollowerAdded(ctx context.Context) (<-chan *model.FollowerAdded, error) {
	followers := make(chan *model.FollowerAdded, 10)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return nil, l.refuse
	}
	l.followers[followers] = true
	l.began.Add(1)
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		delete(l.followers, followers)
		l.mu.Unlock()
		l.ended.Add(1)
	})
	return followers, nil
}

// refuseWith has subscriptions fail from now on.
func (l *live) refuseWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = err
}

// publish sends one follower to all subscriptions that have room.
func (l *live) publish(id storage.UserID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for followers := range l.followers {
		select {
		case followers <- &model.FollowerAdded{Edge: &model.UserEdge{Cursor: "line\nbreak", Node: &model.User{UserID: id, Row: storage.User{Name: fmt.Sprint("follower ", id)}}}}:
		default:
		}
	}
}

// tick publishes one follower after another until the test ends. None of them makes
// ViewerRelationship wait or fail, however late a client subscribes.
func (l *live) tick(t *testing.T) {
	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		for id := storage.UserID(1000); ; id++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				l.publish(id)
			}
		}
	})
	t.Cleanup(func() { close(stop); ticking.Wait() })
}

// end closes every subscription.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for followers := range l.followers {
		close(followers)
		delete(l.followers, followers)
	}
}

// ViewerRelationship fails, waits or panics for some followers.
func (l liveUser) ViewerRelationship(ctx context.Context, u *model.User) (*model.Relationship, error) {
	switch u.UserID {
	case 303:
		l.live.working.Add(1)
		select {
		case <-l.live.hold:
		case <-ctx.Done():
		}
	case 404:
		return nil, apierr.UserNotFound.Error("there is no such user")
	case 408:
		<-ctx.Done()
		return nil, fmt.Errorf("read: %w", ctx.Err())
	case 500:
		panic(secret)
	}
	return nil, nil
}

// Followings returns a cursor that holds the number of its loaders, and the viewer.
func (liveUser) Followings(ctx context.Context, _ *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.UserConnection, error) {
	set, _ := ctx.Value(loaderKey{}).(int64)
	viewer, _ := ctx.Value(viewerKey{}).(string)
	c := new(model.UserConnection)
	c.Edges = []*model.UserEdge{{Cursor: strconv.FormatInt(set, 10) + viewer}}
	return c, nil
}

// Viewer waits for hold.
func (l liveQuery) Viewer(ctx context.Context) (*model.Viewer, error) {
	l.live.began.Add(1)
	select {
	case <-l.live.hold:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &model.Viewer{User: &model.User{UserID: 1}}, nil
}

func (l *live) config(s gateway.Subscriptions) gateway.Config {
	return gateway.Config{
		Schema:         generated.NewSchema(generated.Config{Resolvers: l}),
		Subscriptions:  s,
		RequestTimeout: 200 * time.Millisecond,
		PerRequest: func(ctx context.Context) context.Context {
			return context.WithValue(ctx, loaderKey{}, l.attached.Add(1))
		},
	}
}

const followersQuery = `subscription { followerAdded { edge { cursor node { id followings { edges { cursor } } viewerRelationship { id } } } } }`

// withToken is an Init like the one of identity. Tokens are "Bearer NAME", and the token called
// expired ends soon.
func withToken(ctx context.Context, payload map[string]any) (context.Context, error) {
	switch token, _ := payload["Authorization"].(string); token {
	case "":
		return ctx, nil
	case "Bearer ann", "Bearer expired":
		return context.WithValue(ctx, viewerKey{}, token), nil
	case "Bearer broken":
		return nil, errors.New(secret)
	case "Bearer lost":
		return nil, apierr.Unreachable.Error("the user of the token cannot be looked up for now")
	}
	return nil, apierr.TokenInvalid.Error("the token is not valid")
}

func soon(ctx context.Context) time.Time {
	if ctx.Value(viewerKey{}) == "Bearer expired" {
		return time.Now().Add(100 * time.Millisecond)
	}
	return time.Time{}
}
