package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// operation is one mutation.
type operation struct {
	field   string
	viewer  int64
	targets []int64
}

// randomOperation is a follow or an unfollow, sometimes of many users. Half of the users in
// follows, and most of those in unfollows, are from a small group. So there are follows to end, and
// edges and counts are contended. endsOnly leaves the follows out.
func randomOperation(r *rand.Rand, users int, endsOnly bool) operation {
	const few = 20
	var o operation
	ofFew := 2
	n := r.IntN(100)
	if endsOnly {
		n = 45 + r.IntN(45)
	}
	switch {
	case n < 45:
		o.field = "follow"
	case n < 70:
		o.field, ofFew = "unfollow", 8
	case n < 90:
		o.field, ofFew = "removeFollower", 8
	default:
		o.field = "followMany"
	}
	someone := func() int64 {
		if r.IntN(ofFew) > 0 {
			return 1 + r.Int64N(few)
		}
		return 1 + r.Int64N(int64(users))
	}
	o.viewer = someone()
	another := func() int64 {
		for {
			if u := someone(); u != o.viewer {
				return u
			}
		}
	}
	o.targets = []int64{another()}
	if o.field == "followMany" {
		for range r.IntN(20) {
			o.targets = append(o.targets, another())
		}
	}
	return o
}

func (o operation) String() string {
	return fmt.Sprintf("%s by %d of %v", o.field, o.viewer, o.targets)
}

// edges returns the edges that the operation may change.
func (o operation) edges() []edge {
	list := make([]edge, len(o.targets))
	for i, target := range o.targets {
		list[i] = edge{o.viewer, target}
		if o.field == "removeFollower" {
			list[i] = edge{target, o.viewer}
		}
	}
	return list
}

// result is what a caller got as the answer to an operation.
type result struct {
	operation
	by           *life
	began, ended time.Time

	err     error  // there was no answer
	code    string // the code of the first error of the answer
	message string
	done    bool // there was a payload; changes has what was written
	stale   bool
	changes []changedEdge
}

type changedEdge struct {
	edge
	version int64
}

// send asks one gateway and decodes the answer.
func (o operation) send(ctx context.Context, c *client, l *life) result {
	r := result{operation: o, by: l, began: time.Now()}
	query, variables := mutation(o.field, lean), map[string]any{"id": id(o.targets[0])}
	if o.field == "followMany" {
		ids := make([]string, len(o.targets))
		for i, target := range o.targets {
			ids[i] = id(target)
		}
		query, variables = followMany, map[string]any{"ids": ids}
	}
	var a answer
	a, r.err = c.ask(ctx, l.gateway.URL, o.viewer, "", query, variables)
	r.ended = time.Now()
	if r.err == nil {
		r.code, r.stale = a.code(), a.Extensions.Stale
		if len(a.Errors) > 0 {
			r.message = a.Errors[0].Message
		}
		r.err = r.take(a)
	}
	return r
}

// take reads the payload of a mutation.
func (r *result) take(a answer) error {
	text := a.Data["m"]
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	var payload struct {
		Changed  bool
		Outcomes []struct {
			UserID       string
			Changed      bool
			Relationship struct{ FollowedAt time.Time }
			Error        *struct{ Code, Message string }
		}
	}
	if err := json.Unmarshal(text, &payload); err != nil {
		return err
	}
	version, err := versions(a.Extensions.ConsistencyToken)
	if err != nil {
		return err
	}
	r.done = true
	if r.field != "followMany" && payload.Changed {
		e := r.edges()[0]
		r.changes = []changedEdge{{e, version[e]}}
	}
	seen := map[edge]bool{}
	for i, outcome := range payload.Outcomes {
		e := r.edges()[i]
		if outcome.UserID != id(e.to) {
			return fmt.Errorf("outcome %d is of %s, not of %d", i, outcome.UserID, e.to)
		}
		if outcome.Error != nil {
			r.code, r.message = outcome.Error.Code, outcome.Error.Message
		}
		if outcome.Changed && !seen[e] {
			seen[e] = true
			// The token of a followMany does not name its follows.
			r.changes = append(r.changes, changedEdge{e, outcome.Relationship.FollowedAt.UnixMicro()})
		}
	}
	for _, c := range r.changes {
		if c.version == 0 {
			return fmt.Errorf("%v has changed, and the token has no version of it", c.edge)
		}
	}
	return nil
}

// notSent reports whether the gateway could not be reached.
func (r result) notSent() bool { return errors.Is(r.err, errNotSent) }

// note adds the answer to the history.
func (r result) note(h *history) error {
	for _, e := range r.edges() {
		h.all[e] = append(h.all[e], r)
	}
	if r.notSent() {
		return nil
	}
	if !r.done {
		for _, e := range r.edges() {
			h.doubtful[e] = true
		}
		return nil
	}
	var errs []error
	for _, c := range r.changes {
		errs = append(errs, h.add(c.edge, c.version, change{follows: r.field == "follow" || r.field == "followMany", stale: r.stale, by: r.by}))
	}
	return errors.Join(errs...)
}
