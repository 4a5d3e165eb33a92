// Package expected compares a gateway's answers about a follow graph with answers that were
// computed separately: the relationship of two users, what they have in common, who is suggested.
// For a generated graph the answers are computed here, with plain sets. The answers for a real
// graph are beside its data set; two unrelated programs have computed them.
//
//	answers := expected.Of(t, graph)
//	answers.Hold(t, gateway)
package expected

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/testgraph"
)

// Answers are all answers that are expected about one graph.
type Answers struct {
	Pairs       []Pair
	Suggestions []Suggestion
}

// Of returns the answers about a graph.
func Of(t testing.TB, g testgraph.Graph) Answers {
	t.Helper()
	if g.Generated {
		edges := g.Edges(t)
		return setsOf(edges).answers(edges)
	}
	return Answers{
		Pairs:       lines[Pair](t, g.Name+".pairs.jsonl"),
		Suggestions: lines[Suggestion](t, g.Name+".suggest.jsonl"),
	}
}

// Hold fails the test for each answer of a gateway that differs.
func (a Answers) Hold(t testing.TB, g *kithtest.Gateway) {
	t.Helper()
	began := time.Now()
	for _, p := range a.Pairs {
		for _, wrong := range p.Wrong(t, g) {
			t.Error(wrong)
		}
	}
	t.Logf("%d pairs compared in %s", len(a.Pairs), time.Since(began).Round(time.Millisecond))
	began, pages := time.Now(), 0
	for _, s := range a.Suggestions {
		wrong, read := s.Wrong(t, g)
		for _, w := range wrong {
			t.Error(w)
		}
		pages += read
	}
	t.Logf("%d suggestions compared in %s, %d pages", len(a.Suggestions), time.Since(began).Round(time.Millisecond), pages)
}

// WrongPairs counts the pairs about which a gateway answers something else.
func (a Answers) WrongPairs(t testing.TB, g *kithtest.Gateway) (n int) {
	t.Helper()
	for _, p := range a.Pairs {
		if len(p.Wrong(t, g)) > 0 {
			n++
		}
	}
	return n
}

// lines reads a file of answers, a JSON object a line.
func lines[T any](t testing.TB, name string) []T {
	t.Helper()
	file, err := os.Open(testenv.Data(t, "expected/"+name))
	must.OK(t, err)
	defer file.Close()
	var list []T
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var answer T
		err := json.Unmarshal(scanner.Bytes(), &answer)
		must.That(t, err == nil, "%s:%d: %v", name, len(list)+1, err)
		list = append(list, answer)
	}
	err = scanner.Err()
	must.That(t, err == nil && len(list) != 0, "%s: %d answers, %v", name, len(list), err)
	return list
}

func id(n int64) string { return strconv.FormatInt(n, 10) }
