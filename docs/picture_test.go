package docs_test

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/webtest"
	"kith/web"
)

const picture = "images/graphiql.png"

// The README shows its first query in GraphiQL. With KITH_TEST_PICTURE=1 (make picture) the picture
// is taken again before it is checked.
func TestPictureOfGraphiQL(t *testing.T) {
	readme := read(t, filepath.Join(root, "README.md"))
	check.That(t, strings.Contains(readme, "](docs/"+picture+")"), "the README does not show %s", picture)
	if os.Getenv("KITH_TEST_PICTURE") == "1" {
		must.That(t, web.HasGraphiQL(web.Assets()), "GraphiQL has not been built: make web")
		query := submatches("(?s)```graphql\n(.*?)```", readme)[0]
		g := kithtest.Start(t, kithtest.Args("--demo"))
		webtest.Picture(t, g.URL, query, "Maya", picture)
	}
	file, err := os.Open(picture)
	must.OK(t, err)
	defer file.Close()
	_, err = png.DecodeConfig(file)
	check.That(t, err == nil, "%v", err)
	if at, err := file.Stat(); err != nil || at.Size() > 150_000 {
		t.Errorf("%d bytes, %v: every clone of the repository carries each version of it", at.Size(), err)
	}
}
