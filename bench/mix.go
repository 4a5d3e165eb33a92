package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kith/accounts/identity"
	"kith/storage"
)

// Mix is LinkBench's mixed load, mapped to Kith's operations: two thirds reads, one third writes, on behalf of the user whom each request
// is about. It knows the graph as it was loaded, and what it has added and deleted itself, so it is for one store only, as long as nobody
// else writes there.
//
// The last fifth of the users exists only to be deleted, one after another: no other request asks about them or follows them, so that every
// other request has an answer. But one in six follows of the graph leads to one of them, so lists lose them meanwhile.
type Mix struct {
	graph  *Graph
	issuer *identity.Issuer
	lists  [][]int // whom each user follows, as numbers; [0] is nobody

	lasting  int   // users who are not deleted: the numbers 1 to lasting
	shuffled []int // these, in the order of randomly assigned ranks
	byDegree []int // the same, who follows most first

	listReads, linkWrites, nodeReads, nodeUpdates zipf

	added, deleted atomic.Int64

	written  []written              // by user
	numbers  map[storage.UserID]int // of users
	compared atomic.Int64
}

// written is what is known of a user from the mix's own writes.
type written struct {
	mu      sync.Mutex
	name    register[string]
	follows map[storage.UserID]*register[bool]
}

// Compared is how many values in answers have been compared with what was written.
func (m *Mix) Compared() int64 { return m.compared.Load() }

// NewMix makes the load for a store that holds the graph. The secret signs the tokens that writers need, as [identity.IssuerConfig.Secret].
func NewMix(g *Graph, secret []byte) (*Mix, error) {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets(secret)})
	if err != nil {
		return nil, err
	}
	m := &Mix{graph: g, issuer: issuer, lists: make([][]int, g.Users+1), written: make([]written, g.Users+1), numbers: make(map[storage.UserID]int, g.Users), lasting: g.Users - g.Users/5}
	for n := 1; n <= g.Users; n++ {
		m.lists[n], m.numbers[g.ID(n)] = g.followings(n), n
	}
	for n := range m.lasting {
		m.byDegree = append(m.byDegree, n+1)
	}
	m.shuffled = slices.Clone(m.byDegree)
	r := g.random(purposeMix, 0)
	r.Shuffle(m.lasting, func(i, j int) { m.shuffled[i], m.shuffled[j] = m.shuffled[j], m.shuffled[i] })
	slices.SortStableFunc(m.byDegree, func(a, b int) int { return len(m.lists[b]) - len(m.lists[a]) })
	m.listReads, m.linkWrites = newZipf(m.lasting, shapeOfListReads), newZipf(m.lasting, shapeOfLinkWrites)
	m.nodeReads, m.nodeUpdates = newZipf(m.lasting, shapeOfNodeReads), newZipf(m.lasting, shapeOfNodeUpdates)
	return m, nil
}

// Ask asks for n operations, one after another, and checks every answer in full. The first wrong answer is the error.
func (m *Mix) Ask(seed uint64, n int, ask func(body []byte, token string) (status int, response []byte, err error)) error {
	s := m.stream(&Load{Seed: seed}, 0)
	var body []byte
	for range n {
		var token string
		body, token, _ = s.next(body[:0])
		status, response, err := ask(body, token)
		if err == nil {
			err = s.judge(status, response, true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", body, err)
		}
	}
	return nil
}

func (m *Mix) title() string { return MixName }

// MixName is what the mix is called among the questions.
const MixName = "mixed"

func (m *Mix) stream(load *Load, connection int) stream {
	return &mixed{
		Mix: m, random: rand.New(rand.NewPCG(load.Seed, 1<<40+uint64(connection))), tokens: map[int]string{},
		from: reading{gateway: load.Gateway, late: load.Late},
	}
}

// mixed is the mix as one connection asks it.
type mixed struct {
	*Mix
	random *rand.Rand
	tokens map[int]string // of users, by their numbers
	from   reading
	asked  mixedRequest
}

// mixedRequest is what is asked, and about whom.
type mixedRequest struct {
	op       operation
	user     int // the number of the user whom it is about, or who does it
	id, with storage.UserID
	to       []storage.UserID
	name     string
	known    *written // of the user
	reading
	rename *write[string] // what it writes, if anything
	link   *write[bool]
}

// The requests of the mix. A front end asks for a list together with names, so these queries do so, too.
var mixedQueries = [operations]string{
	getList:    `query GetList($id: ID!) { user(by: {id: $id}) { followings(first: 20) { edges { followedAt node { id name } } complete } } }`,
	getNode:    `query GetNode($id: ID!) { user(by: {id: $id}) { id handle name createdAt } }`,
	addLink:    `mutation AddLink($with: ID!) { follow(userId: $with) { changed } }`,
	updateLink: `mutation UpdateLink($with: ID!, $name: String!) { setFollowMark(userId: $with, remark: $name) { changed } }`,
	updateNode: `mutation UpdateNode($name: String!) { updateProfile(name: $name) { viewer { user { id name } } } }`,
	countLinks: `query CountLinks($id: ID!) { user(by: {id: $id}) { id followingCount } }`,
	deleteLink: `mutation DeleteLink($with: ID!) { unfollow(userId: $with) { changed } }`,
	addNode:    `mutation AddNode($id: ID!, $handle: String!, $name: String!) { createUser(id: $id, handle: $handle, name: $name) { user { id name } } }`,
	deleteNode: `mutation DeleteNode { deleteAccount { complete } }`,
	getLinks:   `query GetLinks($id: ID!, $to: [ID!]!) { relationships(from: [$id], to: $to) { id following followedBy } }`,
}

// operationNames are what the operations are called, in the order of [operation].
var operationNames = [operations]string{
	getList: "followings", getNode: "user", addLink: "follow", updateLink: "setFollowMark", updateNode: "updateProfile",
	countLinks: "followingCount", deleteLink: "unfollow", addNode: "createUser", deleteNode: "deleteAccount", getLinks: "relationships",
}

// MixKinds are the kinds of the mix's requests, the most frequent first.
func MixKinds() []string { return operationNames[:] }

func (s *mixed) kind() string { return operationNames[s.asked.op] }

func (s *mixed) next(body []byte) ([]byte, string, bool) {
	s.asked = s.draw()
	token, err := s.token()
	if err != nil {
		return body, "", false // no user has such an id
	}
	return s.asked.appendBody(body), token, true
}

// draw makes up the next request.
func (s *mixed) draw() mixedRequest {
	for {
		q := mixedRequest{op: drawOperation(s.random)}
		switch q.op {
		case getList, countLinks:
			q.user = s.byRank(s.listReads, readsByDegree)
		case getNode:
			q.user = s.byRank(s.nodeReads, 0)
		case getLinks:
			q.user = s.byRank(s.listReads, readsByDegree)
			q.to = s.someOthers(q.user)
		case addLink:
			q.user = s.byRank(s.linkWrites, writesByDegree)
			q.with = s.graph.ID(s.another(q.user))
		case deleteLink:
			q.user = s.byRank(s.linkWrites, writesByDegree)
			q.with = s.graph.ID(s.oneToLeave(q.user))
		case updateLink:
			q.user = s.byRank(s.linkWrites, writesByDegree)
			for s.kept(q.user) == 0 { // it has no follow that stays
				q.user = s.shuffled[s.random.IntN(s.lasting)]
			}
			q.with = s.graph.ID(s.kept(q.user))
		case updateNode:
			q.user = s.byRank(s.nodeUpdates, 0)
		case addNode:
			last := s.graph.ID(s.graph.Users)
			q.user, q.id = 1, last+storage.UserID(s.added.Add(1))
		case deleteNode:
			q.user = s.graph.Users + 1 - int(s.deleted.Add(1))
			if q.user <= s.lasting {
				continue // all users that may be deleted have been
			}
		}
		if q.id == 0 {
			q.id = s.graph.ID(q.user)
		}
		if q.op == updateNode || q.op == updateLink || q.op == addNode {
			q.name = "name " + strconv.FormatUint(s.random.Uint64N(1e12), 36)
		}
		q.begin(&s.written[q.user], s.from)
		return q
	}
}

// byRank draws a user by how often users are accessed.
func (s *mixed) byRank(by zipf, byDegree float64) int {
	rank := by.draw(s.random)
	if byDegree > 0 && s.random.Float64() < byDegree {
		return s.byDegree[rank]
	}
	return s.shuffled[rank]
}

// another draws somebody else to follow, as the graph's follows are drawn.
func (s *mixed) another(user int) int {
	for {
		if other := s.graph.pickPopular(s.random); other != user && other <= s.lasting {
			return other
		}
	}
}

func (s *mixed) someOthers(user int) []storage.UserID {
	const room = 50
	to := make([]storage.UserID, 0, 4)
	for wanted := linksAsked(s.random, room); len(to) < wanted; {
		if other := s.graph.ID(s.another(user)); !slices.Contains(to, other) {
			to = append(to, other)
		}
	}
	return to
}

// kept is the user whom a user follows as long as the mix runs, 0 for nobody: this link is updated, but never deleted.
func (m *Mix) kept(user int) int {
	for _, other := range m.lists[user] {
		if other <= m.lasting {
			return other
		}
	}
	return 0
}

// oneToLeave draws a user whom a user follows, or has followed, or does not follow at all.
func (s *mixed) oneToLeave(user int) int {
	kept := s.kept(user)
	if list := s.lists[user]; len(list) > 1 {
		if other := list[s.random.IntN(len(list))]; other != kept && other <= s.lasting {
			return other
		}
	}
	for {
		if other := s.another(user); other != kept {
			return other
		}
	}
}

// token returns the token that the request is sent with; reads need none.
func (s *mixed) token() (string, error) {
	switch s.asked.op {
	case getList, getNode, countLinks, getLinks:
		return "", nil
	case addNode:
		return s.signed(0, s.graph.ID(1), identity.ScopeAdmin)
	}
	return s.signed(s.asked.user, s.asked.id)
}

func (s *mixed) signed(key int, id storage.UserID, scopes ...string) (string, error) {
	if token, ok := s.tokens[key]; ok {
		return token, nil
	}
	token, _, err := s.issuer.Issue(id, 0, scopes...)
	s.tokens[key] = token
	return token, err
}

func (q *mixedRequest) appendBody(body []byte) []byte {
	a := Arguments{With: q.with, To: q.to, Name: q.name}
	switch q.op {
	case addNode:
		a.ID, a.Handle = q.id, fmt.Sprintf("new%d", q.id)
	case getList, getNode, countLinks, getLinks:
		a.ID = q.id
	}
	return appendRequest(body, mixedQueries[q.op], a)
}

// begin notes what the request writes.
func (q *mixedRequest) begin(of *written, from reading) {
	of.mu.Lock()
	defer of.mu.Unlock()
	q.known, q.reading = of, from
	switch q.began = time.Now(); q.op {
	case updateNode:
		q.rename = of.name.begin(q.name, q.reading)
	case addLink, deleteLink:
		if of.follows == nil {
			of.follows = map[storage.UserID]*register[bool]{}
		}
		if of.follows[q.with] == nil {
			of.follows[q.with] = &register[bool]{}
		}
		q.link = of.follows[q.with].begin(q.op == addLink, q.reading)
	}
}

// end notes that it has been written.
func (q *mixedRequest) end() {
	q.known.mu.Lock()
	defer q.known.mu.Unlock()
	if q.rename != nil {
		q.rename.ended = time.Now()
	}
	if q.link != nil {
		q.link.ended = time.Now()
	}
}
