package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/graph/generated"
	"kith/internal/must"
	"kith/storage"
)

func newTestMix(t *testing.T, users int) *mixed {
	t.Helper()
	g := NewGraph(users, 42)
	g.Degrees = PublishedDegrees
	m, err := NewMix(g, []byte("a secret for tests of 32 bytes or more"))
	must.OK(t, err)
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
		"profile":            {mixedRequest{op: updateNode, id: 5, name: "n"}, `{"data":{"updateProfile":{"viewer":{"user":{"id":"5","name":"n"}}}}}`, ""},
		"profile, old name":  {mixedRequest{op: updateNode, id: 5, name: "n"}, `{"data":{"updateProfile":{"viewer":{"user":{"id":"5","name":"o"}}}}}`, "written"},
		"create":             {mixedRequest{op: addNode, id: 5, name: "n"}, `{"data":{"createUser":{"user":{"id":"5","name":"n"}}}}`, ""},
		"create, nobody":     {mixedRequest{op: addNode, id: 5, name: "n"}, `{"data":{"createUser":{}}}`, "missing"},
		"delete":             {mixedRequest{op: deleteNode}, `{"data":{"deleteAccount":{"complete":true}}}`, ""},
		"delete, not yet":    {mixedRequest{op: deleteNode}, `{"data":{"deleteAccount":{"complete":false}}}`, ""},
		"delete, unheard of": {mixedRequest{op: deleteNode}, `{"data":{}}`, "missing"},
	} {
		s := &mixed{Mix: &Mix{}, asked: c.asked}
		s.asked.begin(new(written), reading{})
		err := s.judge(200, []byte(c.text), true)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// What was written shows in later answers. If another write overlaps the write or the read, either is right.
func TestWhatWasWrittenIsChecked(t *testing.T) {
	m, from := &Mix{written: make([]written, 10), numbers: map[storage.UserID]int{5: 5, 7: 7, 8: 8}}, reading{}
	ask := func(q mixedRequest) *mixed {
		q.id = 5
		q.begin(&m.written[5], from)
		return &mixed{Mix: m, asked: q}
	}
	rename := func(name string) *mixed { return ask(mixedRequest{op: updateNode, name: name}) }
	change := func(op operation) *mixed { return ask(mixedRequest{op: op, with: 8}) }
	answer := func(s *mixed, status int, data string) error {
		return s.judge(status, fmt.Appendf(nil, `{"data":{%s}}`, data), true)
	}
	renamed := func(s *mixed, name string) error {
		return answer(s, 200, fmt.Sprintf(`"updateProfile":{"viewer":{"user":{"id":"5","name":%q}}}`, name))
	}
	named := func(s *mixed, name string) error {
		return answer(s, 200, fmt.Sprintf(`"user":{"id":"5","name":%q}`, name))
	}
	followed := func(s *mixed) error { return answer(s, 200, `"follow":{"changed":true}`) }
	unfollowed := func(s *mixed) error { return answer(s, 200, `"unfollow":{"changed":true}`) }
	list := func(s *mixed, ids ...int) error {
		var edges []string
		for _, id := range ids {
			edges = append(edges, fmt.Sprintf(`{"followedAt":"2026-11-20T00:00:00Z","node":{"id":"%d","name":"n"}}`, id))
		}
		return answer(s, 200, `"user":{"followings":{"edges":[`+strings.Join(edges, ",")+`],"complete":true}}`)
	}
	links := func(follows bool) error {
		return answer(ask(mixedRequest{op: getLinks, to: []storage.UserID{7, 8}}), 200, fmt.Sprintf(
			`"relationships":[{"id":"rel_5_7","following":false,"followedBy":false},{"id":"rel_5_8","following":%v,"followedBy":false}]`, follows))
	}
	node := func() *mixed { return ask(mixedRequest{op: getNode}) }
	page := func() *mixed { return ask(mixedRequest{op: getList}) }
	right := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	wrong := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, errWritten) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wrong("an old name in its own answer", renamed(rename("alone"), "old"))
	right("any name before", named(node(), "alone"))
	right("a name", renamed(rename("a"), "a"))
	right("a new name", named(node(), "a"))
	wrong("an old name", named(node(), "alone"))

	early := node()
	a, b := rename("b"), rename("c")
	right("a name that is being changed", renamed(a, "c"))
	c := rename("d")
	right("a name that was being changed", renamed(b, "b"))
	right("a name that was being changed as this began", renamed(c, "c"))
	right("a name that was read before", named(early, "a"))
	right("one of three names", named(node(), "c"))
	wrong("what was overwritten in between", named(node(), "b"))
	right("a name", renamed(rename("e"), "e"))
	wrong("an old name again", named(node(), "c"))
	from = reading{gateway: 1, late: time.Hour}
	right("an old name that another gateway may show", named(node(), "c"))
	right("a name that was given on another gateway", renamed(rename("f"), "f"))
	wrong("an old name on the gateway on which it was given", named(node(), "e"))
	from = reading{late: time.Nanosecond}
	wrong("an old name on another gateway, too late", named(node(), "e"))
	if err := answer(rename("g"), 503, ""); err == nil {
		t.Error("a refusal is taken for an answer")
	}
	right("a name that may not have been given", named(node(), "f"))
	right("a name that may have been given", named(node(), "g"))
	from = reading{}

	right("a list of which nothing is known", list(page()))
	right("a follow", followed(change(addLink)))
	right("a list with the follow", list(page(), 8, 7))
	wrong("a list without the follow", list(page(), 7))
	right("a page that the follow is not on", list(page(), 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28))
	right("the follow", links(true))
	wrong("no follow", links(false))
	before := page()
	right("its end", unfollowed(change(deleteLink)))
	right("a list that was read before", list(before, 8))
	wrong("a list with the ended follow", list(page(), 8))
	wrong("the ended follow", links(true))
	one, other := change(addLink), change(deleteLink)
	right("a follow", followed(one))
	right("a list while it is changed", list(page(), 8))
	right("its end", unfollowed(other))
	right("either of two", links(true))
	right("either of two", links(false))
	right("a follow", followed(change(addLink)))
	if err := answer(change(deleteLink), 503, ""); err == nil {
		t.Error("a refusal is taken for an answer")
	}
	right("what may have failed", links(false))
	right("what may have failed", links(true))
	m.written[8].name.begin("eight", reading{began: time.Now()}).ended = time.Now()
	wrong("an old name in a list", list(page(), 8))
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
