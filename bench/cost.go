package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"kith/accounts/identity"
	"kith/graph/cursor"
	"kith/storage"
)

// A CostProbe asks for one field of the schema, alone or of many objects, or for a legal query that is drawn at random.
type CostProbe struct {
	Name     string
	Requests []AppRequest // asked one after another, again and again
}

// costFields are the fields of each type, with arguments and a selection, for [NewCostProbes]: $o stands for the id of another user. Fields of
// requests, comments and favorites are left out, of which the graph has none, and so are mutations.
var costFields = map[string][]string{
	"User": {
		"handle", "name", "bio", "avatarUrl", "createdAt", "followingCount", "followerCount", "friendCount", "postCount", "favoritesGivenCount", "favoritesReceivedCount",
		"listVisibility { followings followers }", "viewerRelationship { status }", "relationship(to: $o) { status }",
		"followings(first: 20) { nodes { id } }", "followers(first: 20) { nodes { id } }", "friends(first: 20) { nodes { id } }",
		"notFollowingBack(first: 20) { nodes { id } }", "notFollowedBack(first: 20) { nodes { id } }",
		"commonFollowings(with: $o, first: 20) { nodes { id } }", "commonFollowers(with: $o, first: 20) { nodes { id } }",
		"followersYouKnow(first: 20) { nodes { id } }", "followSuggestions(first: 20) { nodes { id } }",
		"posts(first: 20) { nodes { id } }", "favorites(first: 20) { nodes { id } }",
	},
	"Relationship": {"status", "following", "followedBy", "followedAt", "followedByAt", "blocking", "blockedBy", "special", "remark",
		"sentRequest { id }", "receivedRequest { id }", "from { id }", "to { name }"},
	"Post":             {"text", "media { url }", "createdAt", "editedAt", "commentCount", "favoritesReceivedCount", "viewerHasFavorited", "author { name }", "comments(first: 5) { nodes { id } }", "favoritedBy(first: 5) { nodes { id } }"},
	"FollowConnection": {"totalCount", "complete", "nodes { id }", "edges { cursor }", "edges { followedAt }", "pageInfo { hasNextPage endCursor }"},
}

// costRoots are root fields. $m stands for the ids of many users, $h for the beginning of a handle.
var costRoots = []string{
	"viewer { feed(first: 20) { nodes { id } } }", "viewer { blockedUsers(first: 20) { totalCount nodes { id } } }",
	"viewer { requests(kind: FRIEND, direction: RECEIVED, first: 20) { totalCount nodes { id } } }",
	"searchUsers(text: \"$w\", first: 20) { nodes { id } }", "latestPosts(first: 20) { nodes { id } }", "edgesAmong(ids: $m) { followings complete }",
	"people(where: {followedBy: $o}, first: 20) { nodes { id } }", "nodes(ids: $m) { id }", "_service { sdl }",
}

// DearFields are the fields with arguments, by their type, each with arguments that make it dear. In each alias $i is another number, $w
// are other words that many have, $p is another old position in a feed, and $e another one of the hundred users to whom many edges lead. $o is another user, $t ten, $m a hundred, $f ten whom many
// follow; $c is a celebrity, and $l a list of the user who follows many.
var DearFields = map[string][]string{
	"Query": {
		"users(by: {ids: $m}) { followings(first: 100) { nodes { " + PlainValues + " } } }",
		`searchUsers(text: "$w", first: 1) { nodes { id } }`, `latestPosts(first: 1, after: "$n") { nodes { id } }`, "edgesAmong(ids: $m) { followings complete }",
		"people(where: {and: [{followersOf: $c}, {followedBy: $h}]}, first: $i) { totalCount nodes { id } }",
		"people(where: {or: [{followersOf: $c}, {followersOf: $o}, {followedBy: $o}, {followedBy: $h}]}, first: $i) { totalCount nodes { id } }",
		"node(id: $o) { id ... on User { followings(first: 1) { totalCount } } }", "nodes(ids: $m) { id ... on User { followings(first: 1) { totalCount } } }",
		"user(by: {id: $o}) { followers(first: 1) { totalCount } }", "users(by: {ids: $m}) { followings(first: 1) { totalCount } }",
		"users(by: {ids: $t}) { followings(first: 20) { nodes { followings(first: 20) { nodes { id } } } } }",
		"relationship(from: $h, to: $o) { status muted remark from { followers(first: 1) { totalCount } } }",
		"relationships(from: [$h], to: $m) { status muted remark to { followings(first: 1) { totalCount } } }",
		"relationships(from: $t, to: $t) { status from { followings(first: 20) { nodes { id } } } to { followers(first: 20) { nodes { id } } } }",
		`_entities(representations: [{__typename: "User", id: $o}]) { ... on User { followings(first: 1) { totalCount } } }`,
		"edgesTo(kind: ADMIRES, id: $c, first: $i) { totalCount edges { since node { id } } }", "edgesTo(kind: ADMIRES, id: $e, first: 1) { totalCount }", "edgesTo(kind: ADMIRES, id: $e, first: 100) { nodes { id } }",
		"moderationLog(first: $i) { nodes { userId } }", "moderationLog(userId: $o, first: 100) { nodes { userId } }",
	},
	"Viewer": {
		`feed(first: 1, after: "$p") { nodes { id } }`, `feed(first: 1, newerThan: "$p") { nodes { id } newerThan { count } }`, `feed(first: 1, only: {special: true}, after: "$p") { nodes { id } }`,
		"blockedUsers(first: $i) { totalCount nodes { id } }", "mutedUsers(first: $i) { totalCount nodes { id } }", "dismissedUsers(first: $i) { totalCount nodes { id } }",
		"requests(kind: FRIEND, direction: RECEIVED, first: $i) { totalCount nodes { id } }", "requests(kind: FOLLOW, first: $i) { totalCount nodes { id } }",
		"edge(kind: ADMIRES, id: $o) { since node { id } }", `accountsFile(kind: FOLLOWS, after: "$i.") { text endCursor }`, `accountsFile(kind: LISTS, after: "$i.") { text }`, "lists(with: $o) { name }", "accountsImports { id refused(afterLine: 0) { line } }",
		"activity(first: $i) { unseen { count } nodes { kind actors { id } post { id } } }", "activity(first: $i, kinds: [FOLLOW]) { unseen { count } nodes { kind } }",
	},
	"User": {
		"followings(first: 100) { nodes { " + PlainValues + " } }",
		`followings(first: 1, filter: {match: "$w"}) { totalCount nodes { id } }`, `followers(first: 1, filter: {match: "$w"}) { totalCount nodes { id } }`,
		`friends(first: 1, filter: {match: "$w"}) { totalCount nodes { id } }`, "followers(first: $i, orderBy: MOST_FOLLOWED) { nodes { id } }", "followings(first: $i, orderBy: CLOSEST) { nodes { id } }",
		`followings(first: 1, filter: {mutual: false, match: "$w"}) { nodes { id } }`, `followings(first: 1, filter: {special: false, match: "$w"}) { nodes { id } }`,
		"followings(first: $i) { totalCount nodes { id } }", "followers(first: $i) { totalCount nodes { id } }", "friends(first: $i) { totalCount nodes { id } }",
		"notFollowingBack(first: $i) { totalCount nodes { id } }", "notFollowedBack(first: $i) { totalCount nodes { id } }", "relationship(to: $o) { status }",
		"commonFollowings(with: $o, first: $i, orderBy: RECENT) { totalCount nodes { id } }", "commonFollowers(with: $c, first: $i, orderBy: RECENT) { totalCount nodes { id } }",
		"followersYouKnow(first: $i) { totalCount nodes { id } }", "followSuggestions(first: $i) { nodes { id } edges { via(first: 3) { id } } }", "followSuggestions(first: $i, orderBy: BEST) { nodes { id } }",
		"similarUsers(first: $i) { nodes { id } }", "posts(first: $i) { nodes { text } }", "favorites(first: $i) { nodes { id } }", "lists(first: $i) { nodes { id name } }",
		"edges(kind: ADMIRES, first: $i) { totalCount edges { since node { id } } }",
	},
	"List": {"members(first: $i) { totalCount nodes { id } }", "has(userId: $o)"},
	"Post": {"comments(first: $i) { nodes { id } }", "favoritedBy(first: $i) { nodes { id } }"},
}

// PlainValues are the plain values of users: what they take is the yardstick for all others.
const PlainValues = "id handle name createdAt followerCount followingCount"

// dearIn are the places in which the fields of a type are asked, with an example.
var dearIn = map[string][]string{
	"Query":  {"%s"},
	"Viewer": {"viewer { %s }"},
	"User":   {"viewer { user { %s } }", "user(by: {id: $c}) { %s }", "users(by: {ids: $t}) { %s }"},
	"Post":   {"latestPosts(first: 20) { nodes { %s } }"},
	"List":   {`node(id: "$l") { ... on List { %s } }`},
}

// A DearProbe asks for a field under many aliases, as a user who follows many.
type DearProbe struct {
	Name    string
	Request func(aliases int) AppRequest // other arguments in each call
	Most    int                          // aliases that fit into a query
	New     bool                         // each request has a text that was not sent before
}

// NewTexts asks for one field under many aliases that nobody has used before.
func NewTexts(g *Graph, seed uint64, secret []byte) (DearProbe, error) {
	d, err := newCostDraw(g, seed, secret)
	return DearProbe{Name: "{ viewer { user { id } } }, a new text each time", Most: 1, New: true, Request: func(int) AppRequest {
		var all strings.Builder
		for d.next++; all.Len() < 3600; {
			fmt.Fprintf(&all, "a%d_%d: id ", d.next, all.Len())
		}
		return d.request("{ viewer { user { "+all.String()+"} } }", false)
	}}, err
}

// DearProbes makes the probes for a store that holds the graph, the viewer and the graph's words.
func DearProbes(g *Graph, viewer storage.UserID, seed uint64, secret []byte) (probes []DearProbe, err error) {
	d, err := newCostDraw(g, seed, secret)
	d.heavy = viewer
	for _, of := range slices.Sorted(maps.Keys(DearFields)) {
		for _, field := range DearFields[of] {
			type place struct{ in, field string }
			var places []place
			for _, in := range dearIn[of] {
				places = append(places, place{in, field})
			}
			if of == "User" { // of other users in each alias
				places = append(places, place{"%s", "users(by: {ids: $f}) { " + field + " }"})
			}
			for _, p := range places {
				in, field := p.in, p.field
				one := d.request(fmt.Sprintf(in, field), true).Operation
				probes = append(probes, DearProbe{
					Name: fmt.Sprintf("{ "+in+" }", field),
					Most: min(60_000/len(one), 3900/(3+len(regexp.MustCompile(`\w+|[^\w\s,]`).FindAllString(one, -1)))),
					Request: func(aliases int) AppRequest {
						var all strings.Builder
						for i := range aliases {
							fmt.Fprintf(&all, "a%d: %s ", i, d.numbered(field))
						}
						return d.request("{ "+fmt.Sprintf(in, all.String())+" }", true)
					},
				})
			}
		}
	}
	return probes, err
}

// numbered gives a field arguments that no other one has.
func (d *costDraw) numbered(field string) string {
	n := d.next
	d.next++
	words := WordsOfNames[n%len(WordsOfNames)] + " " + WordsOfNames[n/len(WordsOfNames)%len(WordsOfNames)]
	old := (*cursor.Sealer)(nil)
	at := int64(1_500_000_000_000_000 + n)
	return strings.NewReplacer("$i", fmt.Sprint(1+n%100), "$w", words, "$e", `"`+d.graph.ID(1+n%EdgesTo).String()+`"`, "$p", old.Encode(cursor.Feed, at, at), "$n", old.Encode(cursor.LatestPosts, at, at)).Replace(field)
}

// EdgesTo is to how many users, from the first one on, edges of the declared kind lead.
const EdgesTo = 100

// NewCostProbes makes the probes: each field alone, and of 100 objects, for a store that holds the graph. The secret signs the viewers'
// tokens.
func NewCostProbes(g *Graph, seed uint64, secret []byte) (probes []CostProbe, err error) {
	d, err := newCostDraw(g, seed, secret)
	add := func(name, query string) {
		p := CostProbe{Name: name}
		for range 8 {
			p.Requests = append(p.Requests, d.request(query, false))
		}
		probes = append(probes, p)
	}
	for _, field := range costRoots {
		add(strings.Split(strings.TrimPrefix(field, "viewer { "), "(")[0], "{ "+field+" }")
	}
	in := map[string][2]string{
		"User":             {"user(by: {id: $o}) { id %s }", "users(by: {ids: $m}) { id %s }"},
		"Relationship":     {"relationship(from: $v, to: $o) { id %s }", "relationships(from: [$v], to: $m) { id %s }"},
		"Post":             {"user(by: {id: $o}) { posts(first: 1) { nodes { id %s } } }", "users(by: {ids: $t}) { posts(first: 10) { nodes { id %s } } }"},
		"FollowConnection": {"user(by: {id: $o}) { followings(first: 20) { %s } }", "users(by: {ids: $m}) { followings(first: 20) { %s } }"},
	}
	for _, of := range []string{"User", "Relationship", "Post", "FollowConnection"} {
		for _, field := range append([]string{"__typename"}, costFields[of]...) {
			name := of + "." + strings.SplitN(strings.SplitN(field, "(", 2)[0], " {", 2)[0]
			if strings.HasPrefix(field, "edges { followedAt") {
				name += ".followedAt"
			}
			add(name, "{ "+fmt.Sprintf(in[of][0], field)+" }")
			add(name+" ×100", "{ "+fmt.Sprintf(in[of][1], field)+" }")
		}
	}
	return probes, err
}

// RandomCostProbes draws legal queries: fields of users in lists of lists, under several aliases, of any cost. Half of them are of the
// user who follows many.
func RandomCostProbes(g *Graph, viewer storage.UserID, seed uint64, secret []byte, n int) (probes []CostProbe, err error) {
	d, err := newCostDraw(g, seed, secret)
	d.heavy = viewer
	for i := range n {
		probes = append(probes, CostProbe{Name: fmt.Sprint("random ", i), Requests: []AppRequest{d.request(d.query(), i%2 == 0)}})
	}
	return probes, err
}

// costDraw draws users and queries.
type costDraw struct {
	graph  *Graph
	random *rand.Rand
	issuer *identity.Issuer
	heavy  storage.UserID // follows many
	next   int            // see numbered
}

func newCostDraw(g *Graph, seed uint64, secret []byte) (*costDraw, error) {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets(secret)})
	return &costDraw{graph: g, random: rand.New(rand.NewPCG(seed, 0)), issuer: issuer}, err
}

// users are the ids of some, as draw draws them.
func (d *costDraw) users(n int, draw func(*rand.Rand) int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = `"` + d.graph.ID(draw(d.random)).String() + `"`
	}
	return strings.Join(list, ",")
}

// request puts users into a query, which the user asks who follows many, or anybody.
func (d *costDraw) request(query string, heavy bool) AppRequest {
	viewer := d.graph.ID(d.graph.anyone(d.random))
	if heavy {
		viewer = d.heavy
	}
	query = d.numbered(query)
	for _, some := range []struct {
		name string
		ids  func() string
	}{
		{"$m", func() string { return "[" + d.users(100, d.graph.anyone) + "]" }}, {"$t", func() string { return "[" + d.users(10, d.graph.anyone) + "]" }},
		{"$f", func() string { return "[" + d.users(10, d.graph.pickPopular) + "]" }}, {"$o", func() string { return d.users(1, d.graph.anyone) }},
	} {
		for strings.Contains(query, some.name) {
			query = strings.Replace(query, some.name, some.ids(), 1)
		}
	}
	query = strings.NewReplacer("$v", `"`+viewer.String()+`"`, "$h", `"`+cmp.Or(d.heavy, viewer).String()+`"`, "$l", fmt.Sprintf("list_%s_1", viewer), "$c", `"`+d.graph.ID(1+d.random.IntN(Celebrities)).String()+`"`).Replace(query)
	body, _ := json.Marshal(map[string]string{"query": query})
	var scopes []string
	if strings.Contains(query, "moderationLog") {
		scopes = []string{"admin"}
	}
	token, _, _ := d.issuer.Issue(viewer, 0, scopes...)
	return AppRequest{Operation: query, Viewer: viewer, Body: body, Token: token}
}

// query draws a query on some users, with up to three levels of lists.
func (d *costDraw) query() string {
	query := "{ users(by: {ids: [" + d.users(1+d.random.IntN(1+d.random.IntN(500)), d.graph.anyone) + "]}) " + d.selection(1+d.random.IntN(3))
	for i := range d.random.IntN(4) {
		of := []string{"Query", "Viewer", "User", "Post"}[d.random.IntN(4)]
		for k := range 1 + d.random.IntN(1+d.random.IntN(20)) {
			query += fmt.Sprintf(" d%d_%d: %s", i, k, fmt.Sprintf(pick(d.random, dearIn[of]), d.numbered(pick(d.random, DearFields[of]))))
		}
	}
	return query + " }"
}

func (d *costDraw) selection(levels int) string {
	var b strings.Builder
	b.WriteString("{ id")
	names := slices.Concat(costFields["User"], DearFields["User"])
	for i := range 1 + d.random.IntN(6) {
		field := names[d.random.IntN(len(names))]
		if levels > 1 && strings.Contains(field, "nodes { id }") && !strings.HasPrefix(field, "posts") && !strings.HasPrefix(field, "favorites") {
			field = strings.Replace(field, "{ id }", d.selection(levels-1), 1)
			field = strings.Replace(field, "first: 20", fmt.Sprint("first: ", 1+d.random.IntN(100)), 1)
		}
		fmt.Fprintf(&b, " a%d: %s", i, d.numbered(field))
	}
	b.WriteString(" }")
	return b.String()
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
