package resolvers_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
)

// A GET of a document by a client that is not signed in may be cached, for the shortest time that any
// of its fields allows. Nothing else may be cached.
func TestAnswersThatMayBeKept(t *testing.T) {
	api, store := withUsers(t, 3, apitest.Options{})
	apitest.Follow(t, store, 1, 2, 3)
	get := func(query string, headers ...string) *http.Response {
		t.Helper()
		persisted := fmt.Sprintf(`{"persistedQuery":{"version":1,"sha256Hash":"%x"}}`, sha256.Sum256([]byte(query)))
		register, err := http.Post(api.URL(), "application/json", strings.NewReader(`{"query":"`+query+`","extensions":`+persisted+`}`))
		must.OK(t, err)
		register.Body.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL()+"?extensions="+url.QueryEscape(persisted), http.NoBody)
		must.OK(t, err)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		must.OK(t, err)
		response.Body.Close()
		return response
	}
	for query, want := range map[string]string{
		"{ user(by: {id: 1}) { handle name } }":                                                    "public, max-age=30",
		"{ user(by: {id: 1}) { handle followerCount } }":                                           "public, max-age=10",
		"{ user(by: {id: 1}) { ...on User { followings { nodes { posts { nodes { id } } } } } } }": "public, max-age=5",
		"{ __typename user(by: {id: 1}) { followSuggestions { nodes { id } } } }":                  "public, max-age=30",
		"{ user(by: {id: 1}) { viewerRelationship { status } } }":                                  "no-store",
		"{ viewer { user { id } } user(by: {id: 1}) { id } }":                                      "no-store",
		"{ __schema { description } }":                                                             "no-store",
		"{ __typename }":                                                                           "no-store",
		"{ user(by: {id: 0}) { id } }":                                                             "no-store", // an error
	} {
		check.Equal(t, query, get(query).Header.Get("Cache-Control"), want)
	}
	const query = "{ user(by: {id: 1}) { handle } }"
	first := get(query)
	for _, header := range []string{"Authorization", "Kith-Viewer", "Kith-Consistency"} {
		check.Has(t, "Vary", strings.Join(first.Header.Values("Vary"), ", "), header)
		got := get(query, header, "x").Header
		check.That(t, got.Get("Cache-Control") == "no-store" && got.Get("ETag") == "", "with %s: %s", header, got.Get("Cache-Control"))
	}
	again := get(query, "If-None-Match", `"other", `+first.Header.Get("ETag"))
	check.That(t, again.StatusCode == http.StatusNotModified && again.Header.Get("ETag") == first.Header.Get("ETag"), "asked again: %d", again.StatusCode)
	check.Equal(t, "compared weakly", get(query, "If-None-Match", strings.TrimPrefix(first.Header.Get("ETag"), "W/")).StatusCode, http.StatusNotModified)
	check.Equal(t, "another answer", get("{ user(by: {id: 2}) { handle } }", "If-None-Match", first.Header.Get("ETag")).StatusCode, http.StatusOK)
	plain, err := http.Get(api.URL() + "?query=" + url.QueryEscape(query))
	must.OK(t, err)
	plain.Body.Close()
	check.Equal(t, "a text", plain.Header.Get("Cache-Control"), "no-store")
}
