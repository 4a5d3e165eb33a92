package resolvers_test

import (
	"strconv"
	"testing"

	"kith/storage"
)

func userID(t testing.TB, text string) storage.UserID {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return storage.UserID(n)
}
