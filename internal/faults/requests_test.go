package faults_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/apitest"
)

// TestRequestsAreToldAtTheOtherGateway: users make and answer requests of both kinds through one gateway, and both users of each are told
// through the other, in each mode: also when they are on different shards.
func TestRequestsAreToldAtTheOtherGateway(t *testing.T) {
	t.Parallel()
	inEach(t, notSimulated(), func(t *testing.T, mode string) {
		d := deploy(t, mode, 20)
		c := d.client(t)
		act := func(by int64, field string, other int64) {
			t.Helper()
			d.gateways[1].asks(t, c, by, fmt.Sprintf("mutation { %s { changed } }", apitest.Call(field, fmt.Sprint(other))), nil)
		}
		to := d.onShard(0, 1)[0]
		d.gateways[1].asks(t, c, to, `mutation { updateProfile(locked: true) { changed } }`, nil)
		listen := func(user int64) chan string {
			ctx, cancel := context.WithCancel(context.Background())
			l := &listener{raw: make(chan string, 100)}
			t.Cleanup(func() { cancel(); l.running.Wait() })
			l.overEvents(t, ctx, d.gateways[0].now.Load().gateway.URL, "Bearer "+d.token(t, user), `subscription { requestChanged { request { id state } } }`, nil)
			return l.raw
		}
		want := func(answers chan string, from int64, prefix, state string) {
			t.Helper()
			request := fmt.Sprintf(`{"id":"%s_%d_%d","state":"%s"}`, prefix, from, to, state)
			for end := time.After(30 * time.Second); ; {
				select {
				case got := <-answers:
					if strings.Contains(got, request) {
						return
					}
				case <-end:
					t.Fatalf("%s is not told", request)
				}
			}
		}
		for shard := range d.shards {
			these := d.onShard(shard, 3)
			from, third := these[1], these[2]
			others := []chan string{listen(to), listen(from)}
			for i, user := range []int64{to, from} {
				tries := 0
				until(t, "the subscription has begun", func() bool {
					act(user, []string{"requestFriend", "withdrawRequest FRIEND"}[tries%2], third)
					tries++
					return len(others[i]) > 0
				})
			}
			for _, step := range []struct {
				by, other            int64
				field, prefix, state string
			}{
				{from, to, "requestFriend", "req", "PENDING"},
				{from, to, "withdrawRequest FRIEND", "req", "WITHDRAWN"},
				{from, to, "follow", "wait", "PENDING"},
				{to, from, "declineRequest FOLLOW", "wait", "DECLINED"},
				{from, to, "follow", "wait", "PENDING"},
				{from, to, "withdrawRequest FOLLOW", "wait", "WITHDRAWN"},
				{from, to, "follow", "wait", "PENDING"},
				{to, from, "acceptRequest FOLLOW", "wait", "ACCEPTED"},
				{from, to, "requestFriend", "req", "PENDING"},
				{to, from, "acceptRequest FRIEND", "req", "ACCEPTED"},
			} {
				act(step.by, step.field, step.other)
				for _, answers := range others {
					want(answers, from, step.prefix, step.state)
				}
			}
		}
	})
}
