package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/exchange"
)

// directiveCaching says in the schema how long answers may be kept.
const directiveCaching = "cacheControl"

// keeping is how an answer may be kept by browsers and by caches on the way.
type keeping struct {
	seconds   int64 // 0: it may not be
	noneMatch string
}

// keepingOf is how long the answer to a GET of a document, by its id or hash, may be kept: only without
// a sign-in. The answer is the same for all clients that are not signed in.
func keepingOf(r *http.Request, op *graphql.OperationContext, response *graphql.Response) keeping {
	if len(response.Errors) > 0 || len(response.Extensions) > 0 {
		return keeping{}
	}
	for _, header := range personal {
		if exchange.Listed(r.Header, header) != "" {
			return keeping{}
		}
	}
	return keeping{maxAge(op.Operation), exchange.Listed(r.Header, "If-None-Match")}
}

// personal are the headers that an answer depends on, besides those of its form.
var personal = [...]string{"Authorization", "Kith-Viewer", exchange.HeaderConsistency}

// maxAge is the shortest age that the fields of a query give, in seconds; 0 if a field is for the viewer
// only, or if a root field gives none.
func maxAge(op *ast.OperationDefinition) int64 {
	age := leastAge(op.SelectionSet, 0)
	if age == forAsLong {
		return 0
	}
	return age
}

// forAsLong is the age of a selection that gives none.
const forAsLong = 1<<63 - 1

func leastAge(set ast.SelectionSet, unsaid int64) (least int64) {
	least = forAsLong
	for _, selection := range set {
		age := int64(forAsLong)
		switch selection := selection.(type) {
		case *ast.Field:
			age = min(ageOf(selection.Definition, unsaid), leastAge(selection.SelectionSet, forAsLong))
		case *ast.InlineFragment:
			age = leastAge(selection.SelectionSet, unsaid)
		case *ast.FragmentSpread:
			age = leastAge(selection.Definition.SelectionSet, unsaid)
		}
		least = min(least, age)
	}
	return least
}

// ageOf is the age that the schema gives a field.
func ageOf(field *ast.FieldDefinition, unsaid int64) int64 {
	d := field.Directives.ForName(directiveCaching)
	switch {
	case field.Name == "__typename":
		return forAsLong
	case d == nil:
		return unsaid
	}
	if scope := d.Arguments.ForName("scope"); scope != nil && scope.Value.Raw == "PRIVATE" {
		return 0
	}
	if age := d.Arguments.ForName("maxAge"); age != nil {
		seconds, _ := strconv.ParseInt(age.Value.Raw, 10, 64)
		return seconds
	}
	return unsaid
}

// keep sets the headers of an answer that may be kept, and reports whether the client has it already.
func (k keeping) keep(h http.Header, parts ...[]byte) (has bool) {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16]) + `"` // weak: compressed or not
	h.Set("Cache-Control", "public, max-age="+strconv.FormatInt(k.seconds, 10))
	h.Set("ETag", tag)
	h["Vary"] = append(h["Vary"], personal[:]...)
	for one := range strings.SplitSeq(k.noneMatch, ",") {
		if one = strings.TrimSpace(one); strings.TrimPrefix(one, "W/") == tag[len("W/"):] || one == "*" { // caches on the way drop the W/
			return true
		}
	}
	return false
}
