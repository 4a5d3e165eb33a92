package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// These are the users of a history of caches. Onlookers write and look. Stars are only followed.
const (
	stars          = 8
	firstOnlooker  = 101
	onlookers      = 32
	everybodyThere = firstOnlooker + onlookers + 8 // includes some users who are never touched
	probeFrom      = 60
	probeTo        = 61
)

// mayBlock says which onlookers may block each other now and then. What they see of each other
// depends on both, so it is compared only at the end.
func mayBlock(a, b int64) bool {
	return a != b && a >= firstOnlooker && b >= firstOnlooker && (a+b)%5 == 0
}

// onlooker is a user who writes its own registers, and looks at those of all users.
type onlooker struct {
	*cachedDeployment
	*client
	*journal
	me     int64
	random *rand.Rand

	names   int64
	follows map[int64]bool
	blocks  map[int64]bool
	counted map[string]int // how often it did what
}

func (d *cachedDeployment) onlooker(t testing.TB, j *journal, me int64, seed uint64) *onlooker {
	return &onlooker{
		cachedDeployment: d, client: d.client(t), journal: j, me: me, random: rand.New(rand.NewPCG(seed, uint64(me))),
		follows: map[int64]bool{}, blocks: map[int64]bool{}, counted: map[string]int{},
	}
}

// step does one thing at random on a random gateway.
func (o *onlooker) step(ctx context.Context) error {
	on := o.random.IntN(2)
	switch n := o.random.IntN(100); {
	case n < 22:
		return o.follow(ctx, on, o.somebody())
	case n < 27:
		return o.block(ctx, on)
	case n < 32:
		return o.rename(ctx, on)
	default:
		return o.look(ctx, on, o.somebody(), o.somebody())
	}
}

// somebody is mostly one of a few users, so that these are changed and looked at all the time.
func (o *onlooker) somebody() int64 {
	for {
		id := int64(1 + o.random.IntN(stars))
		switch o.random.IntN(4) {
		case 0, 1:
			id = int64(firstOnlooker + o.random.IntN(6))
		case 2:
			id = int64(firstOnlooker + o.random.IntN(onlookers))
		}
		if id != o.me {
			return id
		}
	}
}

// mutate sends a mutation of the onlooker that gives a register a value. A refusal by the rules is not a failure.
func (o *onlooker) mutate(ctx context.Context, on int, r register, value int64, query string, variables map[string]any) (w writing, payload followed, done bool, err error) {
	w = writing{value: value, sent: time.Now(), on: on}
	a, err := o.ask(ctx, o.gateways[on].now.Load().gateway.URL, o.me, "", query, variables)
	w.acked = time.Now()
	if err != nil || a.code() != "" {
		o.missed(r, w, fmt.Sprint(a.code(), err))
	}
	switch {
	case err != nil:
		return w, payload, false, err
	case a.code() == "FORBIDDEN" || a.code() == "NOT_FOUND":
		return w, payload, false, nil
	case a.code() != "":
		return w, payload, false, fmt.Errorf("%s %v: %+v", query, variables, a.Errors)
	}
	payload, err = a.followed()
	return w, payload, true, err
}

// follow follows or unfollows, and checks whether that shows.
func (o *onlooker) follow(ctx context.Context, on int, whom int64) error {
	field := "follow"
	if o.follows[whom] {
		field = "unfollow"
	}
	r := register{followOf, o.me, whom}
	w, payload, done, err := o.mutate(ctx, on, r, number(field == "follow"), mutation(field, `{ changed }`), map[string]any{"id": id(whom)})
	if err != nil || !done {
		return err
	}
	o.follows[whom] = field == "follow"
	o.counted[field]++
	if mayBlock(o.me, whom) {
		return nil
	}
	if !payload.Changed {
		return fmt.Errorf("%s of %d by %d has changed nothing", field, whom, o.me)
	}
	o.wrote(r, w)
	return o.lookAtOwn(ctx, on, r, payload.token)
}

// block blocks somebody, or ends that block. Both end follows of others, so blocks are only between
// users of whom nothing else is expected.
func (o *onlooker) block(ctx context.Context, on int) error {
	whom := int64(firstOnlooker + o.random.IntN(onlookers))
	if !mayBlock(o.me, whom) {
		return nil
	}
	field := "block"
	if o.blocks[whom] {
		field = "unblock"
	}
	r := register{blockOf, o.me, whom}
	w, payload, done, err := o.mutate(ctx, on, r, number(field == "block"), mutation(field, `{ changed }`), map[string]any{"id": id(whom)})
	if err != nil || !done {
		return err
	}
	o.blocks[whom] = field == "block"
	delete(o.follows, whom)
	o.counted[field]++
	o.wrote(r, w)
	return o.lookAtOwn(ctx, on, r, payload.token)
}

func (o *onlooker) rename(ctx context.Context, on int) error {
	o.names++
	r := register{nameOf, o.me, 0}
	w, _, _, err := o.mutate(ctx, on, r, o.names, `mutation($name: String!) { m: updateProfile(name: $name) { viewer { user { id } } } }`,
		map[string]any{"name": fmt.Sprintf("User %d #%d", o.me, o.names)})
	if err != nil {
		return err
	}
	o.counted["rename"]++
	o.wrote(r, w)
	return o.lookAtOwn(ctx, on, r, "")
}

// lookAtOwn looks at what the onlooker has just written, on the same gateway, or with a token on
// the other one.
func (o *onlooker) lookAtOwn(ctx context.Context, on int, r register, token string) error {
	promised := false
	if token != "" && o.random.IntN(2) == 0 {
		on, promised = 1-on, true
	} else {
		token = ""
	}
	other := r.other
	if other == 0 {
		other = o.somebody()
	}
	began := time.Now()
	a, err := o.ask(ctx, o.gateways[on].now.Load().gateway.URL, o.me, token,
		`query($me: ID!, $other: ID!) { viewer { user { name followings(first: 100) { nodes { id } } } } relationship(from: $me, to: $other) { following followedBy blocking } }`,
		map[string]any{"me": id(o.me), "other": id(other)})
	ended := time.Now()
	if a.busy() {
		return nil
	}
	if err != nil || a.code() != "" {
		return fmt.Errorf("look at what was written: %+v, %v", a.Errors, err)
	}
	o.counted["own"]++
	base := sight{began: began, ended: ended, by: o.me, on: on, promised: promised}
	var viewer struct{ User seenUser }
	var relationship seenRelationship
	if err := errors.Join(json.Unmarshal(a.Data["viewer"], &viewer), json.Unmarshal(a.Data["relationship"], &relationship)); err != nil {
		return fmt.Errorf("%s: %w", a.Data, err)
	}
	sights := o.sights(base, o.me, viewer.User)
	sights = append(sights, o.sightsOf(base, o.me, other, relationship)...)
	for i := range sights { // a token is only for its own edge
		sights[i].promised = promised && !a.Extensions.Stale && sights[i].register == r
	}
	o.saw(sights...)
	return nil
}

// looked asks about two others, and some of the answer is noted. The rest is compared at the end.
// Here it keeps the caches busy.
const looked = `query($u: ID!, $v: ID!) {
	user(by: {id: $u}) {
		name followingCount followerCount
		followings(first: 100) { totalCount nodes { id } }
		followers(first: 100) { totalCount nodes { id } }
		commonFollowings(with: $v, first: 50) { nodes { id name } }
		followersYouKnow(first: 50) { nodes { id } }
	}
	relationship(from: $u, to: $v) { following followedBy }
}`

func (o *onlooker) look(ctx context.Context, on int, u, v int64) error {
	if u == v {
		return nil
	}
	base := sight{began: time.Now(), by: o.me, on: on}
	a, err := o.ask(ctx, o.gateways[on].now.Load().gateway.URL, o.me, "", looked, map[string]any{"u": id(u), "v": id(v)})
	base.ended = time.Now()
	if a.busy() { // without its caches, on a machine that has other work
		return nil
	}
	if err != nil || a.code() != "" {
		return fmt.Errorf("look at %d and %d: %+v, %v", u, v, a.Errors, err)
	}
	o.counted["look"]++
	var user seenUser
	var relationship seenRelationship
	if err := errors.Join(json.Unmarshal(a.Data["user"], &user), json.Unmarshal(a.Data["relationship"], &relationship)); err != nil {
		return fmt.Errorf("%s: %w", a.Data, err)
	}
	o.saw(append(o.sights(base, u, user), o.sightsOf(base, u, v, relationship)...)...)
	return nil
}
