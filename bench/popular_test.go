package bench

import (
	"math/rand/v2"
	"testing"
)

// Of 1,000 users with the shape 1, the first rank has 1 / (1 + 1/2 + … + 1/1,000) = 13.4 % of the requests.
func TestPopularUsersAreAskedForMoreOften(t *testing.T) {
	g := NewGraph(1000, 42)
	g.Draw = DrawZipf
	const draws = 20_000
	times := map[int]int{}
	r := rand.New(rand.NewPCG(1, 2))
	for range draws {
		n := g.someone(r)
		if n < 1 || n > g.Users {
			t.Fatalf("user %d of %d", n, g.Users)
		}
		times[n]++
	}
	if first := times[1+g.byRank[0]]; first < draws*12/100 || first > draws*15/100 {
		t.Errorf("the first was asked for %d times of %d", first, draws)
	}
	if len(times) < 800 {
		t.Errorf("only %d users were asked for", len(times))
	}
}
