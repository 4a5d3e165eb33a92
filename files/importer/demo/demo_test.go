package demo

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func digest(users []storage.User, edges []storage.Edge) string {
	hash := fnv.New64a()
	for _, u := range users {
		fmt.Fprintf(hash, "%+v\n", u)
	}
	for _, e := range edges {
		fmt.Fprintf(hash, "%+v\n", e)
	}
	return fmt.Sprintf("%016x", hash.Sum64())
}

// The network is part of examples, so it must not change unnoticed. If a change was intended, put the
// new digest here.
func TestGraphIsAlwaysTheSame(t *testing.T) {
	got, want := digest(Graph(Seed, Base)), "59e1039d51c35abf"
	check.That(t, got == want, "digest %s, want %s", got, want)
	check.That(t, digest(Graph(Seed+1, Base)) != digest(Graph(Seed, Base)), "the seed does not matter")
	_, now := Graph(Seed, Base)
	_, later := Graph(Seed, Base.Add(time.Hour))
	check.That(t, later[0].UpdateTime-now[0].UpdateTime == storage.Micros(time.Hour.Microseconds()), "the base does not move the times")
}

func TestPeople(t *testing.T) {
	users, edges := Graph(Seed, Base)
	must.Equal(t, "users", len(users), Users)
	valid, imported := regexp.MustCompile(`^[a-z0-9_]{4,30}$`), regexp.MustCompile(`^u[0-9]+$`)
	handles, bios := map[string]bool{}, 0
	for i, u := range users {
		if u.ID != storage.UserID(i+1) || !valid.MatchString(u.Handle) || imported.MatchString(u.Handle) || handles[u.Handle] {
			t.Errorf("user %+v at %d: bad id or handle", u, i)
		}
		handles[u.Handle] = true
		given, family, ok := strings.Cut(u.Name, " ")
		check.That(t, ok && given != "" && family != "" && utf8.ValidString(u.Name), "user %d is called %q", u.ID, u.Name)
		check.That(t, utf8.RuneCountInString(u.Bio) <= 500 && u.AvatarURL == fmt.Sprintf("/faces/%d.svg", u.ID), "user %+v", u)
		if u.Bio != "" {
			bios++
		}
	}
	if users[0].Handle != "maya_okafor" || users[0].Name != "Maya Okafor" || users[1].Handle != "mateo_silva" {
		t.Errorf("the first users are %+v, %+v", users[0], users[1])
	}
	check.That(t, bios >= Users/2 && bios <= Users*9/10, "%d users have a bio", bios)
	for _, e := range edges {
		must.That(t, users[e.From-1].CreatedAt < e.UpdateTime && users[e.To-1].CreatedAt < e.UpdateTime, "%+v is older than its users", e)
	}
}

func TestFollowsAreSkewedAndMutualLikeRealOnes(t *testing.T) {
	_, edges := Graph(Seed, Base)
	must.Equal(t, "edges", len(edges), Edges)
	followings, followers := make([]int, Users+1), make([]int, Users+1)
	known := map[storage.Pair]bool{}
	for _, e := range edges {
		if e.From == e.To || known[e.Pair()] || e.Type != storage.Following || e.From < 1 || e.To < 1 || e.From > Users || e.To > Users {
			t.Fatalf("edge %+v is wrong or occurs twice", e)
		}
		at := e.UpdateTime.Time()
		must.That(t, !at.Before(Base.AddDate(-2, 0, -1)) && at.Before(Base), "edge %+v is of %v", e, at)
		known[e.Pair()] = true
		followings[e.From]++
		followers[e.To]++
	}
	mutual := 0
	for p := range known {
		if known[storage.Pair{From: p.To, To: p.From}] {
			mutual++
		}
	}
	one := struct{ followings, followers, friends, common int }{followings: followings[1], followers: followers[1]}
	for id := storage.UserID(1); id <= Users; id++ {
		if known[storage.Pair{From: 1, To: id}] && known[storage.Pair{From: id, To: 1}] {
			one.friends++
		}
		if known[storage.Pair{From: 1, To: id}] && known[storage.Pair{From: 2, To: id}] {
			one.common++
		}
	}
	slices.Sort(followings)
	slices.Sort(followers)
	share := 100 * mutual / Edges
	t.Logf("followers: median %d, most %v; followings: least %d, median %d, most %d; mutual %d %%; user 1 %+v",
		followers[Users/2], followers[Users-5:], followings[1], followings[Users/2], followings[Users], share, one)
	between := func(name string, got, low, high int) {
		t.Helper()
		check.That(t, got >= low && got <= high, "%s: %d, want %d … %d", name, got, low, high)
	}
	between("most followers", followers[Users], 400, 1_000)
	between("median of followers", followers[Users/2], 5, 15)
	between("most followings", followings[Users], 150, 500)
	between("median of followings", followings[Users/2], 7, 18)
	between("share of mutual edges in percent", share, 25, 32)
	between("followings of user 1", one.followings, 60, 250)
	between("followers of user 1", one.followers, 60, 400)
	between("friends of user 1", one.friends, 10, 100)
	between("common followings of users 1 and 2", one.common, 10, 100)
}
