package bench

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/vektah/gqlparser/v2"

	"kith/graph/generated"
	"kith/internal/must"
)

// Everybody follows another user, with their own token, and every pair is drawn.
func TestFollows(t *testing.T) {
	if _, err := gqlparser.LoadQueryWithRules(generated.NewSchema(generated.Config{}).Schema(), follow.Query, nil); err != nil {
		t.Fatal(err)
	}
	f, err := NewFollows([]byte("a secret for tests of 32 bytes or more"))
	must.OK(t, err)
	const users = 4
	s := &follows{Follows: f, graph: &Graph{Users: users}, random: rand.New(rand.NewPCG(7, 7))}
	pairs := map[[2]string]bool{}
	for range 500 {
		body, token, more := s.next(nil)
		var asked struct{ Variables struct{ ID string } }
		if err := json.Unmarshal(body, &asked); err != nil || !more {
			t.Fatal(string(body), more, err)
		}
		var claims jwt.RegisteredClaims
		if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil {
			t.Fatal(err)
		}
		if claims.Subject == asked.Variables.ID {
			t.Fatalf("user %s follows itself", claims.Subject)
		}
		pairs[[2]string{claims.Subject, asked.Variables.ID}] = true
	}
	if want := users * (users - 1); len(pairs) != want {
		t.Errorf("%d pairs are drawn, want %d: %v", len(pairs), want, pairs)
	}
}

// An answer must say whether anything has changed.
func TestFollowsAreJudged(t *testing.T) {
	var s follows
	for answer, good := range map[string]bool{
		`{"data":{"follow":{"changed":true}}}`: true, `{"data":{"follow":{"changed":false}}}`: true,
		`{"data":{"follow":{}}}`: false, `{"data":{}}`: false, `{"data":{"follow":null},"errors":[]}`: false, `{"errors":[]}`: false,
	} {
		if err := s.judge(200, []byte(answer), true); (err == nil) != good {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
