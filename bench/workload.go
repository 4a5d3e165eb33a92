package bench

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"kith/storage"
)

// Arguments are what one request asks about.
type Arguments struct {
	ID   storage.UserID
	With storage.UserID   // of the questions about two users
	To   []storage.UserID // of the question about relationships

	Handle, Name string // of the mixed load's writes
}

// A Question is one of the six by which speed is measured. It is asked with new arguments every time.
type Question struct {
	Name  string // q1 … q6
	Query string // GraphQL, an operation that has the name in capitals

	draw  func(*Graph, *rand.Rand) Arguments
	check func(Arguments, *answer) error
}

// Questions are the six questions. The fifth is asked three times: of a random pair, of two among the most followed users, and of two
// celebrities, whose followers are tens of thousands.
var Questions = []*Question{
	{
		Name:  "q1",
		Query: `query Q1($id: ID!) { user(by: {id: $id}) { id name followingCount followerCount } }`,
		draw:  drawUser,
		check: checkUser,
	},
	{
		Name:  "q2",
		Query: `query Q2($id: ID!) { user(by: {id: $id}) { followings(first: 20) { edges { followedAt node { id name } } complete } } }`,
		draw:  drawUser,
		check: checkFollowings,
	},
	{
		Name:  "q3",
		Query: `query Q3($id: ID!, $to: [ID!]!) { relationships(from: [$id], to: $to) { id following followedBy } }`,
		draw:  drawRelations,
		check: func(a Arguments, got *answer) error { return checkRelationsTo(a.ID, a.To, got.Data.Relationships) },
	},
	{
		Name:  "q4",
		Query: `query Q4($id: ID!, $with: ID!) { user(by: {id: $id}) { commonFollowings(with: $with, first: 20) { totalCount nodes { id name } complete } } }`,
		draw:  drawPair,
		check: checkCommon,
	},
	commonFollowers("q5r", drawPair),
	commonFollowers("q5c", drawFamous),
	commonFollowers("q5t", drawCelebrities),
	{
		Name:  "q6",
		Query: `query Q6($id: ID!) { user(by: {id: $id}) { followSuggestions(first: 20) { edges { sharedCount: score node { id name } } complete } } }`,
		draw:  drawUser,
		check: checkSuggestions,
	},
}

func commonFollowers(name string, draw func(*Graph, *rand.Rand) Arguments) *Question {
	query := `query Q` + name[1:] + `($id: ID!, $with: ID!) { user(by: {id: $id}) { commonFollowers(with: $with, first: 20) { totalCount nodes { id name } complete } } }`
	return &Question{Name: name, Query: query, draw: draw, check: checkCommon}
}

// QuestionNames are the names, in order.
func QuestionNames() []string {
	names := make([]string, len(Questions))
	for i, q := range Questions {
		names[i] = q.Name
	}
	return names
}

// QuestionByName returns the question of a name, nil if there is none.
func QuestionByName(name string) *Question {
	for _, q := range Questions {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// Draw returns new arguments for a graph.
func (q *Question) Draw(g *Graph, r *rand.Rand) Arguments { return q.draw(g, r) }

func (q *Question) title() string { return q.Name }

// stream draws from random numbers of its own, independent of other connections' and of other questions'.
func (q *Question) stream(load *Load, connection int) stream {
	seed := uint64(slices.Index(Questions, q)+1)<<32 + uint64(connection)
	s := &questions{Question: q, graph: load.Graph, random: rand.New(rand.NewPCG(load.Seed, seed))}
	if load.EachOnce {
		s.turn, s.turns = connection, load.Connections
	}
	return s
}

// questions asks one question again and again.
type questions struct {
	*Question
	graph  *Graph
	random *rand.Rand
	asked  Arguments

	turn, turns int // the users that are asked about in turn; turns is 0 if they are drawn
}

func (s *questions) next(body []byte) ([]byte, string, bool) {
	s.asked = s.Draw(s.graph, s.random)
	if s.turns > 0 {
		s.turn += s.turns
		if s.turn-s.turns >= s.graph.Users {
			return body, "", false
		}
		if id := s.graph.ID(s.turn - s.turns + 1); id != s.asked.With && !slices.Contains(s.asked.To, id) && !s.OfFamous() {
			s.asked.ID = id
		}
	}
	return s.AppendBody(body, s.asked), "", true
}

// OfFamous reports whether the question is about few users only.
func (q *Question) OfFamous() bool { return q.Name == "q5c" || q.Name == "q5t" }

func (s *questions) kind() string { return "" }

func (s *questions) judge(status int, response []byte, thorough bool) error {
	err := Skim(status, response)
	if err == nil && thorough {
		err = s.Check(s.asked, response)
	}
	return err
}

// AppendBody appends the request's JSON to a buffer.
func (q *Question) AppendBody(body []byte, a Arguments) []byte {
	return appendRequest(body, q.Query, a)
}

// appendRequest appends a query, with the arguments that there are. Both are plain ASCII: Go quotes them as JSON does.
func appendRequest(body []byte, query string, a Arguments) []byte {
	body = append(strconv.AppendQuote(append(body, `{"query":`...), query), `,"variables":{`...)
	begin := len(body)
	variable := func(name string, is bool) bool {
		if is && len(body) > begin {
			body = append(body, ',')
		}
		if is {
			body = append(strconv.AppendQuote(body, name), ':')
		}
		return is
	}
	if variable("id", a.ID != 0) {
		body = appendID(body, a.ID)
	}
	if variable("with", a.With != 0) {
		body = appendID(body, a.With)
	}
	if variable("handle", a.Handle != "") {
		body = strconv.AppendQuote(body, a.Handle)
	}
	if variable("name", a.Name != "") {
		body = strconv.AppendQuote(body, a.Name)
	}
	if variable("to", a.To != nil) {
		body = append(body, '[')
		for i, id := range a.To {
			if i > 0 {
				body = append(body, ',')
			}
			body = appendID(body, id)
		}
		body = append(body, ']')
	}
	return append(body, "}}"...)
}

// appendID writes an id as JSON clients send it, as text.
func appendID(to []byte, id storage.UserID) []byte {
	to = append(to, '"')
	to = strconv.AppendInt(to, int64(id), 10)
	return append(to, '"')
}

func drawUser(g *Graph, r *rand.Rand) Arguments {
	return Arguments{ID: g.ID(g.someone(r))}
}

// drawPair draws two users, every other time from one community.
func drawPair(g *Graph, r *rand.Rand) Arguments {
	a := g.someone(r)
	near := r.IntN(2) == 0
	b := a
	for b == a {
		if near {
			b = g.neighbour(a, r)
		} else {
			b = g.someone(r)
		}
	}
	return Arguments{ID: g.ID(a), With: g.ID(b)}
}

// drawFamous draws two of the most followed users, all pairs equally often.
func drawFamous(g *Graph, r *rand.Rand) Arguments {
	a := r.IntN(Famous)
	b := (a + 1 + r.IntN(Famous-1)) % Famous
	return Arguments{ID: g.ID(g.famous(a)), With: g.ID(g.famous(b))}
}

func drawCelebrities(g *Graph, r *rand.Rand) Arguments {
	pair := r.Perm(Celebrities)
	return Arguments{ID: g.ID(pair[0] + 1), With: g.ID(pair[1] + 1)}
}

// drawRelations draws a user and 50 others, half of them from its community.
func drawRelations(g *Graph, r *rand.Rand) Arguments {
	const others = 50
	user := g.someone(r)
	list := make([]int, 0, others)
	for len(list) < others {
		other := g.anyone(r)
		if len(list) < others/2 {
			other = g.neighbour(user, r)
		}
		if other != user && !slices.Contains(list, other) {
			list = append(list, other)
		}
	}
	a := Arguments{ID: g.ID(user), To: make([]storage.UserID, others)}
	for i, other := range list {
		a.To[i] = g.ID(other)
	}
	return a
}

func (g *Graph) anyone(r *rand.Rand) int { return 1 + r.IntN(g.Users) }

// neighbour draws a user of a user's community, perhaps that user itself.
func (g *Graph) neighbour(n int, r *rand.Rand) int {
	return min((n-1)/Community*Community+1+r.IntN(Community), g.Users)
}
