package apitest

import (
	"fmt"
	"maps"
	"strings"

	"pgregory.net/rapid"

	"kith/graph/limits"
)

// NoLimits lets every query of [Query] pass.
var NoLimits = limits.Limits{
	TextBytes: 1 << 20, Tokens: 1 << 17, Depth: 50, Fields: 1 << 20, Visits: 1 << 20, Overlaps: 1 << 24, Directives: 1 << 16, Cost: 1 << 40, SubscriptionCost: 1 << 40,
}

// Query draws a valid query about the users 1 … users and some who do not exist,
// with everything that decides how it is fetched: aliases, fields asked for twice,
// fragments, directives, variables.
func Query(t *rapid.T, users int) (string, Vars) {
	w := &writer{t: t, users: users}
	for range rapid.IntRange(1, 3).Draw(t, "root fields") {
		w.root()
	}
	some := make([]any, rapid.IntRange(0, 4).Draw(t, "ids in $some"))
	for i := range some {
		some[i] = w.id()
	}
	vars := Vars{"yes": true, "no": false, "two": 2, "one": w.id(), "some": some}
	return w.document("query", vars), vars
}

// Parts draws several root fields as [Query] does, most of them on the same two users, and returns the query of all of them, and one
// for each.
func Parts(t *rapid.T, users int) (whole string, parts []string, vars Vars) {
	w := &writer{t: t, users: users}
	vars = Vars{"yes": true, "no": false, "two": 2, "one": w.id(), "some": []any{w.id(), w.id()}}
	var all strings.Builder
	for range rapid.IntRange(2, 6).Draw(t, "root fields") {
		written := w.fragments
		w.fragments = nil
		w.text.Reset()
		if w.chance("another root field", 20) {
			w.root()
		} else {
			w.field("user(by: {id: "+w.draw("user", "1", "2")+"})", func() {
				w.text.WriteString("id ")
				for range 4 {
					w.belowUser()
				}
			})
		}
		all.WriteString(w.text.String())
		parts = append(parts, w.document("query", maps.Clone(vars)))
		w.fragments = append(written, w.fragments...)
	}
	w.text.Reset()
	w.text.WriteString(all.String())
	return w.document("query", maps.Clone(vars)), parts, vars
}

// Selection draws a selection on a user, as [Query] does. write writes an operation that has it wherever around has %[1]s.
func Selection(t *rapid.T, users int) (write func(operation, around string) string, vars Vars) {
	w := &writer{t: t, users: users, depth: 1}
	w.text.WriteString("id ")
	for range 3 {
		w.belowUser()
	}
	selection := w.text.String()
	vars = Vars{"yes": true, "no": false, "two": 2, "one": w.id(), "some": []any{}}
	return func(operation, around string) string {
		w.text.Reset()
		fmt.Fprintf(&w.text, around, "{"+selection+"}")
		return w.document(operation, vars)
	}, vars
}

// document declares the variables that are used, as validation wants it.
func (w *writer) document(operation string, vars Vars) string {
	body := "{\n" + w.text.String() + "}\n" + strings.Join(w.fragments, "")
	var declared []string
	for _, v := range []string{"yes: Boolean!", "no: Boolean!", "two: Int", "one: ID!", "some: [ID!]!"} {
		name, _, _ := strings.Cut(v, ":")
		if strings.Contains(body, "$"+name) {
			declared = append(declared, "$"+v)
		} else {
			delete(vars, name)
		}
	}
	if len(declared) == 0 {
		return operation + body
	}
	return operation + "(" + strings.Join(declared, ", ") + ") " + body
}

// writer writes a query. Fields with arguments have aliases of their own, so that
// no two of them conflict.
type writer struct {
	t         *rapid.T
	users     int
	text      strings.Builder
	aliases   int
	depth     int
	fragments []string
}

const deepest = 4

func (w *writer) draw(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(w.t, what)
}

func (w *writer) chance(what string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(w.t, what) <= percent
}

func (w *writer) id() string { return fmt.Sprint(rapid.IntRange(1, w.users+2).Draw(w.t, "id")) }

// anID spells an argument of type ID in one of the ways there are.
func (w *writer) anID() string {
	switch w.draw("spelling of an id", "int", "string", "variable") {
	case "int":
		return w.id()
	case "string":
		return `"` + w.id() + `"`
	}
	return "$one"
}

func (w *writer) ids() string {
	switch w.draw("spelling of ids", "one", "list", "variable") {
	case "one": // GraphQL takes a literal for a list of one
		return w.id()
	case "variable":
		return "$some"
	}
	var list []string
	for range rapid.IntRange(0, 3).Draw(w.t, "ids") {
		list = append(list, w.anID())
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (w *writer) nodeID() string {
	switch w.draw("kind of an id", "user", "user", "relationship", "relationship", "post", "comment") {
	case "relationship":
		return `"rel_` + w.id() + "_" + w.id() + `"`
	case "post":
		id := w.id() // see Publish
		return `"post_` + id + "_" + id + `"`
	case "comment":
		n := rapid.IntRange(1, w.users+2).Draw(w.t, "id")
		return fmt.Sprintf(`"cmt_%d_%d"`, n, 1000+5*(n-1))
	}
	return w.anID()
}

// field writes a field under an alias of its own, now and then twice.
func (w *writer) field(call string, selection func()) {
	w.aliases++
	directive := w.draw("directive", "", "", "", " @include(if: $yes)", " @include(if: $no)", " @skip(if: $no)", " @skip(if: $yes)")
	times := 1
	if w.chance("field twice", 15) {
		times = 2
	}
	name := fmt.Sprintf("f%d: %s%s {", w.aliases, call, directive)
	for range times {
		w.text.WriteString(name)
		w.depth++
		selection()
		w.depth--
		w.text.WriteString("}\n")
	}
}

// on writes a selection on a type, straight, as inline fragment or as fragment.
func (w *writer) on(typ string, selection func()) {
	how := w.draw("how to select", "straight", "straight", "inline", "fragment")
	switch how {
	case "straight":
		selection()
	case "inline":
		w.text.WriteString("... on " + typ + " {")
		selection()
		w.text.WriteString("}")
	case "fragment":
		w.aliases++
		name := fmt.Sprintf("F%d", w.aliases)
		w.text.WriteString("..." + name + " ")
		outer := w.text
		w.text = strings.Builder{}
		w.text.WriteString("fragment " + name + " on " + typ + " {")
		selection()
		w.text.WriteString("}\n")
		fragment := w.text.String()
		w.text = outer
		w.fragments = append(w.fragments, fragment)
	}
}

func (w *writer) root() {
	switch w.draw("root field", "viewer", "user", "users", "user by handle", "users by handles", "node", "nodes", "relationship", "relationships", "people", "searchUsers", "latestPosts", "entities") {
	case "viewer":
		w.field("viewer", w.viewer)
	case "user":
		w.field("user(by: {id: "+w.anID()+"})", w.user)
	case "users":
		w.field("users(by: {ids: "+w.ids()+"})", w.user)
	case "user by handle":
		w.field(`user(by: {handle: "`+w.draw("letter", "u", "U")+w.id()+`"})`, w.user)
	case "users by handles":
		w.field(`users(by: {handles: ["U`+w.id()+`", "nobody", "u`+w.id()+`"]})`, w.user)
	case "entities":
		w.field(`_entities(representations: [`+w.representation()+", "+w.representation()+"])", w.entity)
	case "node":
		w.field("node(id: "+w.nodeID()+")", w.node)
	case "nodes":
		w.field("nodes(ids: ["+w.nodeID()+", "+w.nodeID()+"])", w.node)
	case "latestPosts":
		w.field("latestPosts(first: 3)", w.posts)
	case "people":
		w.field("people(where: "+w.filter(2)+", first: 3)", w.people)
	case "searchUsers":
		w.field(`searchUsers(text: "u`+w.draw("digit", "", "1", "2")+`", first: 4)`, w.found)
	case "relationship":
		w.field("relationship(from: "+w.anID()+", to: "+w.anID()+")", w.relationship)
	case "relationships":
		w.field("relationships(from: "+w.ids()+", to: "+w.ids()+")", w.relationship)
	}
}

// representation is one of what has a key.
func (w *writer) representation() string {
	if w.chance("by handle", 30) {
		return `{__typename: "User", handle: "u` + w.id() + `"}`
	}
	id, typeName := w.nodeID(), "User"
	for prefix, name := range map[string]string{`"rel_`: "Relationship", `"post_`: "Post", `"cmt_`: "Comment"} {
		if strings.HasPrefix(id, prefix) {
			typeName = name
		}
	}
	return `{__typename: "` + typeName + `", id: ` + id + "}"
}

func (w *writer) node() {
	w.text.WriteString("id ")
	w.entity()
}

func (w *writer) entity() {
	w.text.WriteString("... on User {")
	w.user()
	w.text.WriteString("} ... on Relationship {")
	w.relationship()
	w.text.WriteString("} ... on Post {")
	w.post()
	w.text.WriteString("} ... on Comment {")
	w.comment()
	w.text.WriteString("}")
}

func (w *writer) posts() {
	w.text.WriteString(w.draw("plain fields of a page of posts", "pageInfo { hasNextPage endCursor } ", "__typename "))
	switch w.draw("how to list posts", "nodes", "edges", "neither") {
	case "nodes":
		w.field("nodes", w.post)
	case "edges":
		w.field("edges", func() {
			w.text.WriteString("cursor ")
			w.field("node", w.post)
		})
	}
}

func (w *writer) post() {
	w.on("Post", func() {
		w.text.WriteString(w.draw("plain fields of a post", "id ", "text createdAt editedAt ", "commentCount ", "favoritesReceivedCount viewerHasFavorited ", "media { name url kind } "))
		if w.depth >= deepest {
			return
		}
		switch w.draw("below a post", "nothing", "author", "comments", "both", "favorites") {
		case "favorites":
			w.field("favoritedBy(first: 2)", w.favoritedBy)
		case "author":
			w.field("author", w.user)
		case "comments":
			w.field("comments(first: 2)", w.comments)
		case "both":
			w.field("author", w.user)
			w.field("comments(first: 3)", w.comments)
		}
	})
}

func (w *writer) comments() {
	w.text.WriteString("pageInfo { hasNextPage endCursor } ")
	w.field("nodes", w.comment)
	w.field("edges", func() {
		w.text.WriteString("cursor ")
		w.field("node", w.comment)
	})
}

func (w *writer) favoritedBy() {
	w.text.WriteString("pageInfo { hasNextPage endCursor } ")
	w.field("nodes", w.user)
	w.field("edges", func() {
		w.text.WriteString("cursor favoritedAt ")
		w.field("node", w.user)
	})
}

func (w *writer) comment() {
	w.on("Comment", func() {
		w.text.WriteString(w.draw("plain fields of a comment", "id ", "postId ", "text createdAt "))
		if w.depth < deepest && w.chance("author of a comment", 60) {
			w.field("author", w.user)
		}
	})
}

func (w *writer) viewer() {
	w.on("Viewer", func() {
		w.text.WriteString(w.draw("plain fields of the viewer", "__typename ", "discoverable ", "standing { state } "))
		w.field("user", w.user)
		if w.chance("blocks of the viewer", 40) {
			w.text.WriteString("blockedUsers { totalCount nodes { id } } dismissedUsers { totalCount complete nodes { handle } } ")
		}
	})
}

func (w *writer) user() {
	w.on("User", func() {
		w.text.WriteString(w.draw("plain fields of a user", "id ", "handle ", "name bio ", "followingCount ", "createdAt followerCount ", "__typename ",
			"friendCount ", "favoritesGivenCount favoritesReceivedCount ", "listVisibility { followings followers } "))
		if w.depth >= deepest {
			return
		}
		for range rapid.IntRange(0, 3).Draw(w.t, "fields below a user") {
			w.belowUser()
		}
	})
}

func (w *writer) belowUser() {
	page := "(first: " + w.draw("first", "0", "1", "3", "$two") + ")"
	switch w.draw("field of a user", "followings", "followings", "followers", "last", "relationship", "relationship",
		"friends", "commonFollowings", "commonFollowers", "followSuggestions", "similar", "viewer",
		"oneWay", "recent", "followersYouKnow", "special", "chosen", "posts", "favorites") {
	case "followings":
		w.field("followings"+page, w.follows)
	case "followers":
		w.field("followers"+page, w.follows)
	case "last":
		w.field("followings(last: 2)", w.follows)
	case "relationship":
		w.field("relationship(to: "+w.anID()+")", w.relationship)
	case "friends":
		w.field("friends"+page, w.matches)
	case "commonFollowings":
		w.field("commonFollowings(with: "+w.anID()+", first: 2)", w.people)
	case "commonFollowers":
		w.field("commonFollowers(with: "+w.anID()+", first: 2)", w.people)
	case "followSuggestions":
		order := w.draw("order of suggestions", "", ", orderBy: BEST")
		w.field("followSuggestions"+strings.TrimSuffix(page, ")")+order+")", w.suggestions)
	case "similar":
		w.field("similarUsers"+page, w.people)
	case "viewer":
		w.field("viewerRelationship", w.relationship)
	case "oneWay":
		w.field(w.draw("which way", "notFollowingBack", "notFollowedBack")+page, w.follows)
	case "recent":
		w.field("commonFollow"+w.draw("which", "ings", "ers")+"(with: "+w.anID()+", orderBy: RECENT)", w.people)
	case "followersYouKnow":
		w.field("followersYouKnow"+page, w.people)
	case "posts":
		w.field("posts"+page, w.posts)
	case "favorites":
		w.field("favorites"+page, w.posts)
	case "special":
		w.field("followings(filter: {special: true}, first: 2)", w.follows)
	case "chosen":
		w.field(w.draw("list", "followings", "followers")+`(filter: {match: "u`+w.draw("digit", "", "1", "2")+`"}, orderBy: `+w.draw("order", "RECENT", "CLOSEST", "MOST_FOLLOWED")+", "+w.draw("end", "first", "last")+": 2)", w.follows)
	}
}

func (w *writer) relationship() {
	w.on("Relationship", func() {
		w.text.WriteString(w.draw("plain fields of a relationship", "id ", "status ", "following ", "followedBy ", "followedAt followedByAt ", "blocking ", "special remark "))
		if w.chance("requests", 20) {
			w.field(w.draw("which request", "sentRequest", "receivedRequest"), w.request)
		}
		if w.depth >= deepest {
			return
		}
		switch w.draw("end of a relationship", "none", "from", "to", "both") {
		case "from":
			w.field("from", w.user)
		case "to":
			w.field("to", w.user)
		case "both":
			w.field("from", w.user)
			w.field("to", w.user)
		}
	})
}

// filter writes a filter of people.
func (w *writer) filter(levels int) string {
	kind := "followersOf"
	if levels > 0 {
		kind = w.draw("filter", "followersOf", "followedBy", "friendsOf", "and", "or", "not")
	}
	switch kind {
	case "and", "or":
		return "{" + kind + ": [" + w.filter(levels-1) + ", " + w.filter(levels-1) + "]}"
	case "not":
		return "{and: [" + w.filter(levels-1) + ", {not: " + w.filter(levels-1) + "}]}"
	}
	return "{" + kind + ": " + w.anID() + "}"
}

// found writes a selection on a search's answer.
func (w *writer) found() {
	w.text.WriteString("pageInfo { hasNextPage endCursor } ")
	w.field("nodes", w.user)
	w.field("edges", func() {
		w.text.WriteString("cursor ")
		w.field("node", w.user)
	})
}

// request writes a selection on a request for friendship.
func (w *writer) request() {
	w.text.WriteString(w.draw("plain fields of a request", "id ", "state ", "message ", "updatedAt expiresAt "))
	if w.depth < deepest {
		w.field(w.draw("end of a request", "from", "to"), w.user)
	}
}

func (w *writer) follows() { w.connection("FollowConnection", "followedAt ") }
func (w *writer) matches() { w.connection("MatchConnection", "matchedAt ") }
func (w *writer) people()  { w.connection("UserConnection", "") }

// connection writes a selection on a page whose edges have a time; "": they have none.
func (w *writer) connection(of, time string) {
	w.on(of, func() {
		w.text.WriteString(w.draw("plain fields of a connection", "complete ", "totalCount ", "pageInfo { hasNextPage endCursor } "))
		switch w.draw("how to list", "nodes", "edges", "both", "neither") {
		case "nodes":
			w.field("nodes", w.user)
		case "edges":
			w.field("edges", func() { w.edge(time) })
		case "both":
			w.field("nodes", w.user)
			w.field("edges", func() { w.edge(time) })
		}
	})
}

func (w *writer) edge(time string) {
	w.text.WriteString("cursor " + time)
	w.field("node", w.user)
}

func (w *writer) suggestions() {
	w.text.WriteString("complete ")
	w.field("nodes", w.user)
	w.field("edges", func() {
		w.text.WriteString("sharedCount score ")
		w.field("node", w.user)
		w.field("via(first: "+w.draw("first", "0", "1", "3")+")", w.user)
	})
}
