package faults_test

import (
	"slices"
	"strconv"
	"strings"
)

// seenUser is what onlookers ask of users.
type seenUser struct {
	Name                  string
	Followings, Followers *struct{ Nodes []*struct{ ID string } }
}

type seenRelationship struct {
	Following, FollowedBy bool
	Blocking              *bool
}

// sights returns what a look at a user shows: its name, whom it follows and who follows it, unless
// that may be hidden from the onlooker.
func (o *onlooker) sights(base sight, u int64, user seenUser) []sight {
	add := func(list []sight, r register, value int64) []sight {
		s := base
		s.register, s.value, s.inverse = r, value, r.kind == followOf && r.owner != u
		return append(list, s)
	}
	list := add(nil, register{nameOf, u, 0}, nameNumber(user.Name))
	if mayBlock(o.me, u) {
		return list
	}
	for other := range somePeople {
		if other == u || mayBlock(u, other) || mayBlock(o.me, other) {
			continue
		}
		is := func(n *struct{ ID string }) bool { return n != nil && n.ID == id(other) }
		if user.Followings != nil && u >= firstOnlooker {
			list = add(list, register{followOf, u, other}, number(slices.ContainsFunc(user.Followings.Nodes, is)))
		}
		if user.Followers != nil && other >= firstOnlooker {
			list = add(list, register{followOf, other, u}, number(slices.ContainsFunc(user.Followers.Nodes, is)))
		}
	}
	return list
}

// sightsOf returns what a relationship shows.
func (o *onlooker) sightsOf(base sight, u, v int64, is seenRelationship) (list []sight) {
	add := func(r register, value bool) {
		s := base
		s.register, s.value, s.inverse = r, number(value), r.owner != u
		list = append(list, s)
	}
	if is.Blocking != nil && mayBlock(u, v) {
		add(register{blockOf, u, v}, *is.Blocking)
	}
	if mayBlock(u, v) || mayBlock(o.me, u) || mayBlock(o.me, v) {
		return list
	}
	if u >= firstOnlooker {
		add(register{followOf, u, v}, is.Following)
	}
	if v >= firstOnlooker {
		add(register{followOf, v, u}, is.FollowedBy)
	}
	return list
}

// somePeople are the stars and the onlookers.
func somePeople(yield func(int64) bool) {
	for i := range int64(stars) {
		if !yield(1 + i) {
			return
		}
	}
	for i := range int64(onlookers) {
		if !yield(firstOnlooker + i) {
			return
		}
	}
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// nameNumber is the number in a name that rename has given, or 0 for the first name.
func nameNumber(name string) int64 {
	_, text, _ := strings.Cut(name, "#")
	n, _ := strconv.ParseInt(text, 10, 64) // "" is 0
	return n
}
