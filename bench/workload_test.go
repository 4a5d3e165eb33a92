package bench_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/bench"
	"kith/graph/generated"
	"kith/storage"
)

func TestRequestsFitTheSchema(t *testing.T) {
	schema := generated.NewSchema(generated.Config{}).Schema()
	g, r := bench.NewGraph(1000, 42), rand.New(rand.NewPCG(1, 2))
	for _, q := range bench.Questions {
		var request struct {
			Query     string
			Variables map[string]any
		}
		if err := json.Unmarshal(q.AppendBody(nil, q.Draw(g, r)), &request); err != nil {
			t.Errorf("%s: %v", q.Name, err)
			continue
		}
		document, errs := gqlparser.LoadQueryWithRules(schema, request.Query, nil)
		if errs != nil {
			t.Errorf("%s: %v", q.Name, errs)
			continue
		}
		operation := document.Operations[0]
		if _, err := validator.VariableValues(schema, operation, request.Variables); err != nil {
			t.Errorf("%s: %v", q.Name, err)
		}
		if len(request.Variables) != len(operation.VariableDefinitions) {
			t.Errorf("%s sends %v", q.Name, request.Variables)
		}
	}
}

func TestArguments(t *testing.T) {
	g, r := bench.NewGraph(10_000, 42), rand.New(rand.NewPCG(1, 2))
	near := func(a, b storage.UserID) bool { return (a-1)/bench.Community == (b-1)/bench.Community }
	draw := func(name string) bench.Arguments { return bench.QuestionByName(name).Draw(g, r) }
	pairsNear := 0
	pairs, famous := map[storage.UserID]bool{}, map[storage.UserID]bool{}
	for range 1000 {
		if a := draw("q3"); true {
			here := 0
			seen := map[storage.UserID]bool{a.ID: true}
			for _, id := range a.To {
				if seen[id] {
					t.Fatalf("q3 asks about %d twice, or about itself: %v", id, a)
				}
				seen[id] = true
				if near(a.ID, id) {
					here++
				}
			}
			if len(a.To) != 50 || here < 25 || here > 35 {
				t.Fatalf("q3 asks about %d users, %d of them of the same community", len(a.To), here)
			}
		}
		if a := draw("q4"); a.ID == a.With {
			t.Fatalf("q4 asks about %v", a)
		} else if near(a.ID, a.With) {
			pairsNear++
		}
		if a := draw("q5t"); a.ID == a.With || max(a.ID, a.With) > bench.Celebrities {
			t.Fatalf("q5t asks about %v", a)
		}
		if a := draw("q5c"); a.ID == a.With {
			t.Fatalf("q5c asks about %v", a)
		} else {
			pairs[a.ID*1e6+a.With] = true
			famous[a.ID], famous[a.With] = true, true
		}
	}
	followers := make([]int, g.Users+1)
	for e := range g.Edges() {
		followers[e.To]++
	}
	most := slices.Sorted(slices.Values(followers))
	for id := range famous {
		if followers[id] < most[len(most)-2*bench.Famous] { // ranks follow the chances, and followers are drawn
			t.Errorf("q5c asks about user %d with %d followers", id, followers[id])
		}
	}
	if len(famous) != bench.Famous || len(pairs) < 700 {
		t.Errorf("q5c asks about %d pairs of %d users", len(pairs), len(famous))
	}
	if pairsNear < 400 || pairsNear > 650 {
		t.Errorf("%d of 1,000 pairs are of one community, want about half", pairsNear)
	}
}

func TestRequestsAreDrawnFromTheSeed(t *testing.T) {
	g := bench.NewGraph(1000, 42)
	bodies := func(seed uint64) (all string) {
		r := rand.New(rand.NewPCG(seed, 0))
		for _, q := range bench.Questions {
			all += string(q.AppendBody(nil, q.Draw(g, r)))
		}
		return all
	}
	first, again := bodies(1), bodies(1)
	if first != again {
		t.Error("one seed gives different requests")
	}
	if first == bodies(2) {
		t.Error("two seeds give the same requests")
	}
}
