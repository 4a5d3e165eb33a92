package importer

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

const someIdentities = "user,issuer,subject,linked_at\n" +
	"1,https://a.example/,auth0|1,50.000001\n2,https://a.example/,\"with, a comma\",51\n1,https://b.example/,1,52\n" +
	"1,https://a.example/,auth0|1,50.000001\n" + // again
	"2,https://a.example/,known,53\n1,https://a.example/,taken,54\n9,https://a.example/,nobody's,55\n" +
	"1,,x,56\n1,https://a.example/,\"of\ntwo lines\",57\n0,https://a.example/,x,58\n1,https://a.example/,x,soon\n"

func identitySeed(t *testing.T) *keeper {
	t.Helper()
	k := newKeeper()
	k.CreateUsers(ctx, []storage.User{{ID: 3, Handle: "three"}})
	for subject, user := range map[string]storage.UserID{"known": 2, "taken": 3} {
		must.OK(t, k.LinkIdentity(ctx, storage.Identity{Issuer: "https://a.example/", Subject: subject}, user, 7))
	}
	return k
}

func checkIdentities(t *testing.T, name string, k *keeper) {
	t.Helper()
	for user, want := range map[storage.UserID]string{
		1: "[{{https://a.example/ auth0|1} 1 50000001} {{https://b.example/ 1} 1 52000000}]",
		2: "[{{https://a.example/ known} 2 7} {{https://a.example/ with, a comma} 2 51000000}]",
		3: "[{{https://a.example/ taken} 3 7}]", 9: "[]",
	} {
		got, err := storage.LinkLookups.Get(ctx, k, user)
		check.That(t, err == nil && fmt.Sprint(got) == want, "%s: user %d has %v (%v), want %s", name, user, got, err, want)
	}
}

// Identities are linked after their users. Existing ones stay, and those that belong to another user are refused.
func TestIdentities(t *testing.T) {
	files := []string{file(t, "identities.csv.gz", someIdentities), file(t, "users.csv", someUsers)}
	for _, lines := range []int{1, 3, 100} {
		k := identitySeed(t)
		got := mustRun(t, k, Config{Files: files, Chunk: lines})
		want := Report{Lines: 14, UsersMade: 2, UsersExisted: 1, Identities: 3, Duplicates: 1, Existed: 1, Malformed: 4, Refused: 2}
		if lines < 100 { // a line that is repeated in another chunk counts as existing
			want.Duplicates, want.Existed = 0, 2
		}
		check.That(t, bare(got) == want, "%d lines: %+v, want %+v", lines, bare(got), want)
		checkIdentities(t, fmt.Sprint(lines, " lines"), k)
	}
}

// An import that is killed links identities once, and counts them once.
func TestKilledImportLinksIdentitiesOnce(t *testing.T) {
	files := []string{file(t, "identities.csv", someIdentities), file(t, "users.csv", someUsers)}
	config := func() Config { return Config{Files: files, Chunk: 4, Start: start} }
	killAtEachWrite(t, 5, identitySeed, config, func(name string, k *keeper, over bool) {
		got := mustRun(t, k, config())
		check.That(t, over || got.Identities+got.Existed+got.Duplicates == 5, "%s: %+v", name, bare(got))
		checkIdentities(t, name, k)
	})
}
