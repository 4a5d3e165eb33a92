package bench

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Users are drawn in proportion to how many followers, or followings, they have. So the average of
// the users drawn is that of the squares, which is above the average of all users.
func TestUsersAreDrawnByTheirLists(t *testing.T) {
	g := NewGraph(3000, 42)
	var counts [2][]float64 // by user: followers, followings
	counts[0], counts[1] = make([]float64, g.Users+1), make([]float64, g.Users+1)
	for n := 1; n <= g.Users; n++ {
		for _, peer := range g.followings(n) {
			counts[0][peer]++
			counts[1][n]++
		}
	}
	for i, draw := range []Draw{DrawFollowers, DrawFollowings} {
		g.Draw = draw
		sum, squares := 0.0, 0.0
		for _, c := range counts[i] {
			sum, squares = sum+c, squares+c*c
		}
		const draws = 20_000
		drawn, r := 0.0, rand.New(rand.NewPCG(1, 2))
		for range draws {
			drawn += counts[i][g.someone(r)]
		}
		if got, want := drawn/draws, squares/sum; got < 0.8*want || got > 1.2*want {
			t.Errorf("drawn by %s, users have %.0f on average, want %.0f; all have %.0f", draw, got, want, sum/float64(g.Users))
		}
	}
	g.Draw = DrawZipf
	const draws = 100_000
	times, r := make(map[int]int), rand.New(rand.NewPCG(1, 2))
	for range draws {
		times[g.someone(r)]++
	}
	sum := 0.0 // of 1 / k
	for k := range g.Users {
		sum += 1 / float64(k+1)
	}
	most := slices.Max(slices.Collect(maps.Values(times)))
	if want := draws / sum; float64(most) < 0.95*want || float64(most) > 1.05*want {
		t.Errorf("by Zipf's law the most popular user is drawn %d times, want %.0f", most, want)
	}
}
