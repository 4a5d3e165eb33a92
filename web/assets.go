package web

import (
	"embed"
	"io/fs"
	"os"
)

// assetsFS is what scripts/web.sh built, if it ran before the compiler did. The all: prefix
// includes the committed .keep, so that a tree without assets compiles.
//
//go:embed all:assets
var assetsFS embed.FS

//go:embed page
var pageFS embed.FS

// checkout is the folder assets of the tree that the program was linked for (make run), where they may be built after the program.
var checkout string

// Assets returns the files embedded in this binary: the folders graphiql and app, as far as
// they were built.
func Assets() fs.FS {
	if checkout != "" {
		return os.DirFS(checkout)
	}
	return sub(assetsFS, "assets")
}

// HasGraphiQL reports whether assets hold a built GraphiQL; otherwise / is the plain page.
func HasGraphiQL(assets fs.FS) bool {
	_, err := fs.Stat(assets, "graphiql/main.js.gz")
	return err == nil
}

// sub is fs.Sub for a folder that is known to have a valid name.
func sub(fsys fs.FS, dir string) fs.FS {
	s, err := fs.Sub(fsys, dir)
	if err != nil {
		panic(err)
	}
	return s
}
