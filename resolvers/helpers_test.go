package resolvers_test

import (
	"strconv"
	"testing"

	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// storeOf is the reference engine with the users 1 to n.
func storeOf(t testing.TB, n int) *oracle.Store {
	t.Helper()
	store := oracle.New()
	apitest.Users(t, store, n)
	return store
}

// withUsers is an API over the reference engine with the users 1 to n.
func withUsers(t *testing.T, n int, o apitest.Options) (*apitest.API, *oracle.Store) {
	t.Helper()
	store := storeOf(t, n)
	return apitest.New(t, store, o), store
}

func userID(t testing.TB, text string) storage.UserID {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	must.OK(t, err)
	return storage.UserID(n)
}
