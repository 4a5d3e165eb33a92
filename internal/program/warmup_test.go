package program_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
)

var warmed = regexp.MustCompile(`\nkith_cache_warmed_total (\d+)\n`)

// warmedUp is how many users a gateway has read before anybody asked for them, and whether it is still reading.
func warmedUp(t *testing.T, g *kithtest.Gateway) (users int, reading bool) {
	t.Helper()
	metrics := g.Metrics(t)
	found := warmed.FindStringSubmatch(metrics)
	if found == nil {
		return 0, false // there is no cache
	}
	users, _ = strconv.Atoi(found[1])
	return users, strings.Contains(metrics, "\nkith_cache_warming 1\n")
}

// A gateway that has just started reads users with their lists by itself, and then answers the first question about them from
// memory. It does not do so if it is told not to, or keeps nothing.
func TestAGatewayWarmsUp(t *testing.T) {
	t.Parallel()
	store := kithtest.DemoStore(t, 2)
	g := kithtest.Start(t, kithtest.Args("--store", store, "--jwt-secret", secret))
	g.Until(t, "warm up", func() bool {
		users, reading := warmedUp(t, g)
		return users > 0 && !reading
	})
	users, _ := warmedUp(t, g)
	check.That(t, users >= 1000, "%d users were read", users)
	const question = `{"query":"{ user(by: {id: 11}) { name followings(first: 20) { nodes { name } } followers(first: 20) { totalCount } } user2: user(by: {id: 1500}) { name } }"}`
	check.Has(t, "the first question", wholeAnswer(t, g, question, "Authorization", "Bearer "+adminToken(t), "Kith-Cost", "1"), `"statements":0`)
	end := g.Interrupt(t)
	check.That(t, end.Code == 0 && strings.Contains(end.Stderr, "warmed up"), "%+v", end)
	other := kithtest.Start(t, kithtest.Args("--cache-bytes", "0", "--store", store))
	other.Query(t, "{ user(by: {id: 1}) { name } }", nil, new(any))
	users, reading := warmedUp(t, other)
	check.That(t, users == 0 && !reading, "%d users were read, it goes on: %v", users, reading)
}

// Two gateways without a Redis do not hear of each other's changes, so they keep nothing in memory. Their logs say so, and when it
// is over.
func TestTheLogSaysWhyNothingIsKept(t *testing.T) {
	t.Parallel()
	store := kithtest.DemoStore(t, 1)
	g := kithtest.Start(t, kithtest.Args("--store", store))
	keeps := func(value string) func() bool {
		return func() bool { return strings.Contains(g.Metrics(t), "\nkith_cache_enabled "+value+"\n") }
	}
	g.Until(t, "keep users in memory", keeps("1"))
	other := kithtest.Start(t, kithtest.Args("--store", store))
	g.Until(t, "keep nothing", keeps("0"))
	check.Equal(t, "the code", other.Interrupt(t).Code, 0)
	g.Until(t, "keep users again", keeps("1"))
	end := g.Interrupt(t)
	off := strings.Index(end.Stderr, "cache off: every request reads the databases\" reason=\"other processes use the store")
	on := strings.Index(end.Stderr, "cache on: users and lists are kept in memory again")
	check.That(t, off >= 0 && on >= off, "%+v", end)
}
