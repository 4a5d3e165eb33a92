package web

import (
	"os"
	"testing"
	"testing/fstest"

	"kith/internal/check"
	"kith/internal/must"
)

// A program that was linked for a tree serves what is built there, also if that is built later.
func TestAssetsOfACheckout(t *testing.T) {
	checkout = t.TempDir()
	t.Cleanup(func() { checkout = "" })
	check.That(t, !HasGraphiQL(Assets()), "there is a page, and nothing has been built")
	must.OK(t, os.CopyFS(checkout, fstest.MapFS{"graphiql/main.js.gz": &fstest.MapFile{}}))
	check.That(t, HasGraphiQL(Assets()), "what has been built is not found")
}
