package resolvers_test

import (
	"testing"

	"kith/internal/apitest"
	"kith/storage"
)

// A field that is null because of an error has one under each of its names, and there is none at a path that the answer does not have: below
// another name of the same object, other fields may be selected.

func TestErrorsOfPayloadsAreAtEveryName(t *testing.T) {
	api := apitest.New(t, broken(storeOf(t, 3), "edges.follower", storage.ErrUnavailable), apitest.Options{}).As(1)
	for mutation, at := range map[string][]string{
		`x: follow(userId: 2) { a: relationship { status } b: relationship { status } c: relationship { id } }`: {"x.a", "x.b", "x.c"},
		`followMany(userIds: ["x", 2]) { x: outcomes { a: relationship { status } } y: outcomes { b: relationship { status } changed } }`: {
			"followMany.x.1.a", "followMany.y.1.b"},
		`follow(userId: 3) { a: followingEdge { node { b: viewerRelationship { status } } } c: followingEdge { d: node { e: viewerRelationship { status } } } }`: {
			"follow.a.node.b", "follow.c.d.e"},
	} {
		api.Ask(`mutation { `+mutation+` }`, nil).FailsAt("UNAVAILABLE", at...)
	}
}

func TestErrorsBelowPagesAreWhereTheirFieldsAre(t *testing.T) {
	store := storeOf(t, 30)
	town := byShard(30)
	me, gone := town[0][0], town[deadShard][0]
	whole := apitest.New(t, store, apitest.Options{})
	post := publish(t, whole, me, "x", "1")
	comment(t, whole, gone, post, "y")
	apitest.New(t, dead(store, 4, deadShard), apitest.Options{}).Ask(`query($p: ID!) { node(id: $p) { ... on Post {
		comments { nodes { author { name } } edges { node { a: author { name } } b: node { c: author { name } } } } x: comments { nodes { y: author { name } id } } } } }`, apitest.Vars{"p": post}).
		FailsAt("UNAVAILABLE", "node.comments.nodes.0.author", "node.comments.edges.0.node.a", "node.comments.edges.0.b.c", "node.x.nodes.0.y")
}
