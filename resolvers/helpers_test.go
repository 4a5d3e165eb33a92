package resolvers_test

import (
	"strconv"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

func userID(t testing.TB, text string) storage.UserID {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	must.OK(t, err)
	return storage.UserID(n)
}
