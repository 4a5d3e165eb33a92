package bench

import (
	"math/rand/v2"
	"testing"
)

// Of 1,000 users with the shape 1, the first rank has 1 / (1 + 1/2 + … + 1/1,000) = 13.4 % of the requests.
func TestPopularUsersAreAskedForMoreOften(t *testing.T) {
	g := NewGraph(1000, 42)
	p, err := NewPopular(QuestionByName("q1"), g, 1)
	if err != nil {
		t.Fatal(err)
	}
	const draws = 20_000
	times := map[int]int{}
	r := rand.New(rand.NewPCG(1, 2))
	for range draws {
		n := p.ranking.draw(r)
		if n < 1 || n > g.Users {
			t.Fatalf("user %d of %d", n, g.Users)
		}
		times[n]++
	}
	if first := times[p.ranking.ranked[0]]; first < draws*12/100 || first > draws*15/100 {
		t.Errorf("the first was asked for %d times of %d", first, draws)
	}
	if len(times) < 800 {
		t.Errorf("only %d users were asked for", len(times))
	}
	s := p.stream(&Load{Graph: g, Seed: 1, Connections: 1}, 0).(*questions)
	same := 0
	for range 1000 {
		s.next(nil)
		if s.asked.ID == g.ID(p.ranking.ranked[0]) {
			same++
		}
	}
	if same < 90 || same > 180 {
		t.Errorf("%d of 1,000 requests were about the first", same)
	}
	if _, err := NewPopular(QuestionByName("q5t"), g, 1); err == nil {
		t.Error("a question about celebrities is asked of everybody")
	}
}

// The inserts are follows that the graph does not have, each once, by and of existing users.
func TestMoreEdges(t *testing.T) {
	g := NewGraph(500, 42)
	g.Degree = 10
	there := map[[2]int64]bool{}
	for e := range g.Edges() {
		there[[2]int64{int64(e.From), int64(e.To)}] = true
	}
	n, up := 0, 0
	last := int64(0)
	for e := range g.MoreEdges(2000) {
		pair := [2]int64{int64(e.From), int64(e.To)}
		if there[pair] || e.From == e.To || e.From < 1 || int(e.From) > g.Users || e.To < 1 || int(e.To) > g.Users {
			t.Fatalf("%v is no new follow", e)
		}
		there[pair] = true
		if n++; int64(e.From) > last {
			up++
		}
		last = int64(e.From)
	}
	if n != 2000 || up < 800 || up > 1200 {
		t.Errorf("%d follows, %d of which come after the one before: they are to be in no order", n, up)
	}
}
