package selections_test

import (
	"runtime"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// An answer that would be too long is not made in full. Its memory stays near the bound, whether
// gqlgen writes it or this package does.
func TestAnswersEndAtTheirBound(t *testing.T) {
	store := oracle.New()
	const people = 500
	list := make([]storage.User, people)
	for i := range list {
		id := storage.UserID(i + 1)
		list[i] = storage.User{ID: id, Handle: id.ImportedHandle(), Name: "User", Bio: strings.Repeat("b", 2000)}
	}
	store.CreateUsers(t.Context(), list)
	ids := make([]string, people)
	for i := range ids {
		ids[i] = list[i].ID.String()
	}
	var bios strings.Builder
	for i := range 198 {
		bios.WriteString(" a" + strings.Repeat("x", i) + ": bio")
	}
	const most = 1 << 20
	for name, query := range map[string]string{
		"directly":  `query($ids: [ID!]!) { users(by: {ids: $ids}) {` + bios.String() + ` } }`,
		"by gqlgen": `query($ids: [ID!]!) { users(by: {ids: $ids}) {` + bios.String() + ` viewerRelationship { id } } }`,
	} {
		api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits, MaxAnswer: most})
		api.Ask(`query($ids: [ID!]!) { users(by: {ids: $ids}) { id } }`, apitest.Vars{"ids": ids}).Whole() // makes everything that is made only once
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer := api.Ask(query, apitest.Vars{"ids": ids})
		runtime.ReadMemStats(&after)
		answer.Refused("QUERY_TOO_COSTLY")
		// The tree that gqlgen builds of an answer takes some 100 bytes for each value: 199 MB here.
		check.Most(t, name+": memory for a refused answer", after.TotalAlloc-before.TotalAlloc, 60<<20)
	}
}
