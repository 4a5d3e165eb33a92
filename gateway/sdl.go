package gateway

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/sdl"
	"kith/graph/selections"
)

// serveSchema answers /schema.graphql: the schema as text, for code generators and routers. The
// text is made when it is first asked for.
func serveSchema(schema graphql.ExecutableSchema) http.HandlerFunc {
	made := sync.OnceValues(func() (text, etag string) {
		text, err := sdl.Of(schema.Schema(), selections.PrefixIn(schema))
		if err != nil {
			panic(err) // the limits have refused it before
		}
		return text, fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(text)))
	})
	return func(w http.ResponseWriter, r *http.Request) {
		text, etag := made()
		w.Header().Set("Content-Type", "application/graphql; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}
