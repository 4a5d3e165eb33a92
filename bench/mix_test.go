package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/graph/generated"
	"kith/storage"
)

func newTestMix(t *testing.T, users int) *mixed {
	t.Helper()
	g := NewGraph(users, 42)
	g.Degrees = PublishedDegrees
	m, err := NewMix(g, []byte("a secret for tests of 32 bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	return m.stream(&Load{Seed: 7, Connections: 1}, 0).(*mixed)
}

// The shares are LinkBench's, and add up to 1.
func TestMixHasItsShares(t *testing.T) {
	total := 0.0
	for _, percent := range share {
		total += percent
	}
	if math.Abs(total-100) > 0.001 {
		t.Errorf("the shares add up to %v %%", total)
	}
	const draws = 100_000
	s := newTestMix(t, 20_000)
	var drawn [operations]int
	for range draws {
		drawn[s.draw().op]++
	}
	for op, percent := range share {
		got := 100 * float64(drawn[op]) / draws
		if math.Abs(got-percent) > 0.05+0.05*percent {
			t.Errorf("%s: %.2f %% of the requests, want %.2f", mixedQueries[op], got, percent)
		}
	}
}

// A few users are accessed often, most rarely. Of 1,000 users, the first tenth of the ranks gets
// the share that Zipf's law gives it.
func TestAccessIsZipf(t *testing.T) {
	s := newTestMix(t, 1250) // 1,000 of them stay
	for name, c := range map[string]struct {
		by    zipf
		shape float64
	}{"list reads": {s.listReads, 0.8}, "node reads": {s.nodeReads, 0.625}} {
		want, all := 0.0, 0.0
		for k := 1; k <= 1000; k++ {
			weight := math.Pow(float64(k), -c.shape)
			all += weight
			if k <= 100 {
				want += weight
			}
		}
		first := 0
		const draws = 50_000
		for range draws {
			if c.by.draw(s.random) < 100 {
				first++
			}
		}
		if got := float64(first) / draws; math.Abs(got-want/all) > 0.02 {
			t.Errorf("%s: the first tenth gets %.3f, want %.3f", name, got, want/all)
		}
	}
}

// Every request fits the schema and is about users who stay. No user is created or deleted twice.
func TestMixedRequests(t *testing.T) {
	schema := generated.NewSchema(generated.Config{}).Schema()
	s := newTestMix(t, 1000)
	made := map[storage.UserID]bool{}
	deleted := map[int]bool{}
	seen := map[operation]bool{}
	for range 20_000 {
		body, token, more := s.next(nil)
		q := s.asked
		if !more {
			t.Fatal("the mix ends")
		}
		var request struct {
			Query     string
			Variables map[string]any
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !seen[q.op] {
			seen[q.op] = true
			document, errs := gqlparser.LoadQueryWithRules(schema, request.Query, nil)
			if errs != nil {
				t.Fatalf("%s: %v", body, errs)
			}
			if _, err := validator.VariableValues(schema, document.Operations[0], request.Variables); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if signed := strings.HasPrefix(request.Query, "mutation"); signed != (token != "") {
				t.Errorf("%s is sent with token %q", body, token)
			}
		}
		switch {
		case q.op == addNode:
			if made[q.id] || q.id <= 1000 {
				t.Fatalf("user %d is made again", q.id)
			}
			made[q.id] = true
		case q.op == deleteNode:
			if deleted[q.user] || q.user <= s.lasting {
				t.Fatalf("user %d is deleted, %d last", q.user, s.lasting)
			}
			deleted[q.user] = true
		case q.user > s.lasting || int(q.with) > s.lasting || slices.ContainsFunc(q.to, func(id storage.UserID) bool { return int(id) > s.lasting }):
			t.Fatalf("%s is about somebody who may be deleted", body)
		case q.op == updateLink && !slices.Contains(s.lists[q.user], int(q.with)):
			t.Fatalf("%s: they are not linked", body)
		case q.op == deleteLink && int(q.with) == s.kept(q.user):
			t.Fatalf("%s: this link has to stay", body)
		case q.with == q.id:
			t.Fatalf("%s: with itself", body)
		}
	}
	if len(seen) != int(operations) || len(deleted) != 200 { // a fifth of all users: there are no more to delete
		t.Errorf("operations %v, %d users deleted", seen, len(deleted))
	}
}

func TestMixedAnswersAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		asked mixedRequest
		text  string
		want  string // "" if it is right
	}{
		"list":               {mixedRequest{op: getList}, `{"data":{"user":{"followings":{"edges":[],"complete":true}}}}`, ""},
		"list, incomplete":   {mixedRequest{op: getList}, `{"data":{"user":{"followings":{"edges":[],"complete":false}}}}`, "complete"},
		"list, missing":      {mixedRequest{op: getList}, `{"data":{"user":{}}}`, "missing"},
		"node":               {mixedRequest{op: getNode, id: 5}, `{"data":{"user":{"id":"5","name":"five"}}}`, ""},
		"node, another":      {mixedRequest{op: getNode, id: 5}, `{"data":{"user":{"id":"6","name":"six"}}}`, "another"},
		"count":              {mixedRequest{op: countLinks}, `{"data":{"user":{"id":"5","followingCount":0}}}`, ""},
		"count, missing":     {mixedRequest{op: countLinks}, `{"data":{"user":{"id":"5"}}}`, "missing"},
		"links":              {mixedRequest{op: getLinks, id: 1, to: []storage.UserID{2}}, `{"data":{"relationships":[{"id":"rel_1_2","following":true,"followedBy":false}]}}`, ""},
		"links, fewer":       {mixedRequest{op: getLinks, id: 1, to: []storage.UserID{2}}, `{"data":{"relationships":[]}}`, "number"},
		"follow":             {mixedRequest{op: addLink}, `{"data":{"follow":{"changed":false}}}`, ""},
		"follow, other":      {mixedRequest{op: addLink}, `{"data":{"unfollow":{"changed":false}}}`, "missing"},
		"unfollow":           {mixedRequest{op: deleteLink}, `{"data":{"unfollow":{"changed":true}}}`, ""},
		"mark":               {mixedRequest{op: updateLink}, `{"data":{"setFollowMark":{"changed":true}}}`, ""},
		"mark, failed":       {mixedRequest{op: updateLink}, `{"errors":[{"message":"no"}],"data":{}}`, "no"},
		"profile":            {mixedRequest{op: updateNode, id: 5, name: "n"}, `{"data":{"updateProfile":{"user":{"id":"5","name":"n"}}}}`, ""},
		"profile, old name":  {mixedRequest{op: updateNode, id: 5, name: "n"}, `{"data":{"updateProfile":{"user":{"id":"5","name":"o"}}}}`, "another"},
		"create":             {mixedRequest{op: addNode, id: 5, name: "n"}, `{"data":{"createUser":{"user":{"id":"5","name":"n"}}}}`, ""},
		"create, nobody":     {mixedRequest{op: addNode, id: 5, name: "n"}, `{"data":{"createUser":{}}}`, "missing"},
		"delete":             {mixedRequest{op: deleteNode}, `{"data":{"deleteAccount":{"complete":true}}}`, ""},
		"delete, not yet":    {mixedRequest{op: deleteNode}, `{"data":{"deleteAccount":{"complete":false}}}`, ""},
		"delete, unheard of": {mixedRequest{op: deleteNode}, `{"data":{}}`, "missing"},
	} {
		s := &mixed{asked: c.asked}
		err := s.judge(200, []byte(c.text), true)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// If another request has changed a name in the meantime, either name is right.
func TestNamesThatOthersChangeToo(t *testing.T) {
	var of renames
	ask := func(name string) *mixed {
		s := &mixed{asked: mixedRequest{op: updateNode, id: 5, name: name}}
		s.asked.beginRename(&of)
		return s
	}
	judge := func(s *mixed, shown string) error {
		return s.judge(200, fmt.Appendf(nil, `{"data":{"updateProfile":{"user":{"id":"5","name":%q}}}}`, shown), true)
	}
	if err := judge(ask("alone"), "old"); err == nil {
		t.Error("an old name is taken for the new one")
	}
	a, b := ask("a"), ask("b")
	if err := judge(a, "b"); err != nil {
		t.Errorf("a name that is being changed: %v", err)
	}
	c := ask("c")
	if err := judge(b, "a"); err != nil {
		t.Errorf("a name that was being changed: %v", err)
	}
	if err := judge(c, "b"); err != nil {
		t.Errorf("a name that was being changed as this began: %v", err)
	}
	if err := judge(ask("again alone"), "c"); err == nil {
		t.Error("an old name is taken for the new one")
	}
}

// The degrees are those that LinkBench has published.
func TestPublishedDegrees(t *testing.T) {
	for _, c := range []struct {
		quantile float64
		want     int
	}{{0, 0}, {0.19, 0}, {0.2, 1}, {0.72, 1}, {0.73, 2}, {0.86, 2}, {0.945, 5}, {0.99, 16}, {0.99999, 7500}} {
		if got := publishedDegree(c.quantile); got != c.want {
			t.Errorf("quantile %v: degree %d, want %d", c.quantile, got, c.want)
		}
	}
	g := NewGraph(20_000, 42)
	g.Degrees = PublishedDegrees
	degrees := make([]int, g.Users+1)
	for e := range g.Edges() {
		degrees[e.From]++
	}
	share := func(atMost int) float64 {
		n := 0
		for _, d := range degrees[1:] {
			if d <= atMost {
				n++
			}
		}
		return float64(n) / float64(g.Users)
	}
	for atMost, want := range map[int]float64{0: 0.197, 1: 0.730, 5: 0.959, 50: 0.9965} {
		if got := share(atMost); math.Abs(got-want) > 0.01 {
			t.Errorf("%.3f of all follow at most %d, want %.3f", got, atMost, want)
		}
	}
}
