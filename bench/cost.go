package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"kith/accounts/identity"
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
		"handle", "name", "bio", "avatarUrl", "createdAt", "followingCount", "followerCount", "friendCount", "postCount", "favoriteCount", "totalFavorited",
		"listVisibility { followings followers }", "viewerRelationship { status }", "relationship(to: $o) { status }",
		"followings(first: 20) { nodes { id } }", "followers(first: 20) { nodes { id } }", "friends(first: 20) { nodes { id } }",
		"notFollowingBack(first: 20) { nodes { id } }", "notFollowedBack(first: 20) { nodes { id } }",
		"commonFollowings(with: $o, first: 20) { nodes { id } }", "commonFollowers(with: $o, first: 20) { nodes { id } }",
		"followersYouKnow(first: 20) { nodes { id } }", "followSuggestions(first: 20) { nodes { id } }",
		"posts(first: 20) { nodes { id } }", "favorites(first: 20) { nodes { id } }",
	},
	"Relationship": {"status", "following", "followedBy", "followedAt", "followedByAt", "blocking", "blockedBy", "special", "remark",
		"sentRequest { id }", "receivedRequest { id }", "from { id }", "to { name }"},
	"Post":             {"text", "media { url }", "createdAt", "editedAt", "commentCount", "favoriteCount", "viewerHasFavorited", "author { name }", "comments(first: 5) { nodes { id } }", "favoritedBy(first: 5) { nodes { id } }"},
	"FollowConnection": {"totalCount", "complete", "nodes { id }", "edges { cursor }", "edges { followedAt }", "pageInfo { hasNextPage endCursor }"},
}

// costRoots are root fields. $m stands for the ids of many users, $h for the beginning of a handle.
var costRoots = []string{
	"viewer { feed(first: 20) { nodes { id } } }", "viewer { blockedUsers(first: 20) { totalCount nodes { id } } }",
	"viewer { friendRequests(direction: RECEIVED, first: 20) { totalCount nodes { id } } }",
	"searchUsers(text: \"$h\", first: 20) { nodes { id } }", "latestPosts(first: 20) { nodes { id } }", "edgesAmong(ids: $m) { followings complete }",
	"people(where: {followedBy: $o}, first: 20) { nodes { id } }", "nodes(ids: $m) { id }", "_service { sdl }",
}

// objectsAtOnce is how many objects a probe asks for whose name ends in ×100.
const objectsAtOnce = 100

// NewCostProbes makes the probes: each field alone, and of 100 objects, for a store that holds the graph. The secret signs the viewers'
// tokens.
func NewCostProbes(g *Graph, seed uint64, secret []byte) (probes []CostProbe, err error) {
	d, err := newCostDraw(g, seed, secret)
	add := func(name, query string) {
		p := CostProbe{Name: name}
		for range 8 {
			p.Requests = append(p.Requests, d.request(query))
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

// RandomCostProbes draws legal queries: fields of users in lists of lists, under several aliases, of any cost.
func RandomCostProbes(g *Graph, seed uint64, secret []byte, n int) (probes []CostProbe, err error) {
	d, err := newCostDraw(g, seed, secret)
	for i := range n {
		probes = append(probes, CostProbe{Name: fmt.Sprint("random ", i), Requests: []AppRequest{d.request(d.query())}})
	}
	return probes, err
}

// costDraw draws users and queries.
type costDraw struct {
	graph  *Graph
	random *rand.Rand
	issuer *identity.Issuer
}

func newCostDraw(g *Graph, seed uint64, secret []byte) (*costDraw, error) {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets(secret)})
	return &costDraw{g, rand.New(rand.NewPCG(seed, 0)), issuer}, err
}

func (d *costDraw) ids(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = `"` + d.graph.ID(d.graph.anyone(d.random)).String() + `"`
	}
	return "[" + strings.Join(list, ",") + "]"
}

// request puts users into a query.
func (d *costDraw) request(query string) AppRequest {
	viewer := d.graph.ID(d.graph.anyone(d.random))
	one := func() string { return strings.Trim(d.ids(1), "[]") }
	query = strings.NewReplacer("$v", `"`+viewer.String()+`"`, "$h", "u"+fmt.Sprint(d.random.IntN(10)), "$m", d.ids(objectsAtOnce), "$t", d.ids(10)).Replace(query)
	for strings.Contains(query, "$o") {
		query = strings.Replace(query, "$o", one(), 1)
	}
	body, _ := json.Marshal(map[string]string{"query": query})
	token, _, _ := d.issuer.Issue(viewer, 0)
	return AppRequest{Operation: query, Viewer: viewer, Body: body, Token: token}
}

// query draws a query on some users, with up to three levels of lists.
func (d *costDraw) query() string {
	return "{ users(by: {ids: " + d.ids(1+d.random.IntN(1+d.random.IntN(500))) + "}) " + d.selection(1+d.random.IntN(3)) + " }"
}

func (d *costDraw) selection(levels int) string {
	var b strings.Builder
	b.WriteString("{ id")
	names := costFields["User"]
	for i := range 1 + d.random.IntN(6) {
		field := names[d.random.IntN(len(names))]
		if levels > 1 && strings.Contains(field, "nodes { id }") && !strings.HasPrefix(field, "posts") && !strings.HasPrefix(field, "favorites") {
			field = strings.Replace(field, "{ id }", d.selection(levels-1), 1)
			field = strings.Replace(field, "first: 20", fmt.Sprint("first: ", 1+d.random.IntN(100)), 1)
		}
		fmt.Fprintf(&b, " a%d: %s", i, field)
	}
	b.WriteString(" }")
	return b.String()
}
