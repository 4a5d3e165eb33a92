package examples_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/kithtest"
	"kith/internal/must"
)

const (
	secret   = "a secret of at least 32 bytes, for tests"
	password = "correct horse battery"
	follow   = `mutation ($id: ID!) { follow(userId: $id) { changed } }`
	// following is how many users a person follows: three pages of 20.
	following = 45
)

// kith is a gateway with the demo graph.
type kith struct{ *kithtest.Gateway }

func start(t *testing.T, more ...string) kith {
	t.Helper()
	args := append([]string{"--demo", "--jwt-secret", secret, "--store", kithtest.DemoStore(t, 1), "--request-timeout", "2m", "--statement-timeout", "1m"}, more...)
	return kith{kithtest.Start(t, kithtest.Args(args...))}
}

// subscriptions waits until n of them run.
func (k kith) subscriptions(t *testing.T, n int) {
	t.Helper()
	k.Until(t, fmt.Sprint(n, " subscriptions"), func() bool {
		_, metrics := k.Get(t, "/metrics")
		return strings.Contains(metrics, fmt.Sprintf("\nkith_subscription_operations %d\n", n))
	})
}

// user is somebody with a password.
type user struct {
	kith       kith
	id, handle string
}

// person registers a user who follows some users of the demo graph.
func (k kith) person(t *testing.T, handle string) user {
	t.Helper()
	var answer struct {
		Register struct {
			Viewer struct{ User struct{ ID string } }
		}
	}
	k.Query(t, `mutation ($h: String!, $p: String!) { register(handle: $h, name: "Somebody", password: $p) { viewer { user { id } } } }`,
		map[string]any{"h": handle, "p": password}, &answer)
	p := user{k, answer.Register.Viewer.User.ID, handle}
	ids := ""
	for i := range following {
		ids += demo(1+i) + " "
	}
	k.as(t, p.id, fmt.Sprintf(`mutation { followMany(userIds: [%s]) { outcomes { changed } } }`, ids), "")
	return p
}

// demo is the id of a user of the demo graph.
func demo(i int) string { return strconv.Itoa(i) }

// token is a user's token that is valid for a time.
func token(t *testing.T, id string, valid time.Duration) string {
	t.Helper()
	return signed(t, jwt.MapClaims{"sub": id}, valid)
}

// backendToken is a token of a backend that acts for users.
func backendToken(t *testing.T, valid time.Duration) string {
	t.Helper()
	return signed(t, jwt.MapClaims{"scope": "act-as"}, valid)
}

func signed(t *testing.T, claims jwt.MapClaims, valid time.Duration) string {
	t.Helper()
	claims["iat"], claims["exp"] = time.Now().Add(-time.Hour).Unix(), time.Now().Add(valid).Unix()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	must.OK(t, err)
	return text
}

// as runs a mutation as a user. It must succeed. id is its variable.
func (k kith) as(t *testing.T, who, mutation, id string) {
	t.Helper()
	k.ask(t, who, mutation, map[string]any{"id": id})
}

// ask sends an operation as a user. The answer must have no errors.
func (k kith) ask(t *testing.T, who, operation string, variables map[string]any) (data json.RawMessage) {
	t.Helper()
	as := *k.Gateway
	as.Token = token(t, who, time.Hour)
	as.Query(t, operation, variables, &data)
	return data
}

func (k kith) handle(t *testing.T, id string) string { t.Helper(); return k.profile(t, id).Handle }

func (k kith) followerCount(t *testing.T, id string) int {
	t.Helper()
	return k.profile(t, id).FollowerCount
}

func (p user) followings(t *testing.T) []string {
	t.Helper()
	return handles(p.kith.profile(t, p.id).Followings)
}

func (p user) followers(t *testing.T) []string {
	t.Helper()
	return handles(p.kith.profile(t, p.id).Followers)
}

// dismissed are the handles of those whom p has dismissed.
func (p user) dismissed(t *testing.T) []string {
	t.Helper()
	var answer struct{ Viewer struct{ DismissedUsers list } }
	must.OK(t, json.Unmarshal(p.kith.ask(t, p.id, `{ viewer { dismissedUsers { nodes { handle } } } }`, nil), &answer))
	return handles(answer.Viewer.DismissedUsers)
}

type list struct{ Nodes []struct{ Handle string } }

type profile struct {
	Handle                string
	FollowerCount         int
	Followings, Followers list
}

func (k kith) profile(t *testing.T, id string) profile {
	t.Helper()
	var answer struct{ User profile }
	k.Query(t, `query ($id: ID!) { user(by: {id: $id}) { handle followerCount followings(first: 100) { nodes { handle } } followers(first: 100) { nodes { handle } } } }`,
		map[string]any{"id": id}, &answer)
	return answer.User
}

func handles(l list) (all []string) {
	for _, n := range l.Nodes {
		all = append(all, n.Handle)
	}
	return all
}
