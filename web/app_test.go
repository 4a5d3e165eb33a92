package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/web"
)

// builtApp is a built app, with the files that the handler reads.
func builtApp(t *testing.T) fstest.MapFS {
	t.Helper()
	main := built(t, script).(fstest.MapFS)["graphiql/main.js.gz"]
	return fstest.MapFS{"app/main.js.gz": main, "app/style.css.gz": main, "app/.stamp": &fstest.MapFile{Data: []byte("1 2")}}
}

// demo signs in as any user except 3.
var demo = web.Demo{Users: 5, IsLocal: func(r *http.Request) bool { return r.RemoteAddr != "203.0.113.9:1" }, Token: func(user int64) (string, time.Time, error) {
	if user == 3 {
		return "", time.Time{}, errors.New("no")
	}
	return fmt.Sprintf("token of %d", user), time.Unix(0, 0), nil
}}

func TestAppIsOnePageWithManyPaths(t *testing.T) {
	h := web.Handler(web.Config{Assets: builtApp(t), Host: "example.com", Demo: demo})
	page := get(t, h, "/app").Body.String()
	must.That(t, strings.Contains(page, `data-page="app"`) && strings.Contains(page, `data-endpoint="/graphql" data-demo="5"`) && len(links(page)) >= 3, "%v", page)
	for _, path := range []string{"/app/", "/app/u/somebody/followers", "/app/picture/7"} {
		w := get(t, h, path)
		check.That(t, w.Code == http.StatusOK && w.Body.String() == page, "%s: status %d, %s", path, w.Code, w.Body)
	}
	for _, url := range links(page) {
		w := get(t, h, url)
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, headers %v", url, w.Code, w.Header())
		}
	}
	// The page is not served in place of a file of an earlier build, because a script that is HTML
	// would fail.
	for _, path := range []string{"/app/files/000000000000/main.js", "/app/files/", "/appendix"} {
		w := get(t, h, path)
		check.That(t, w.Code == http.StatusNotFound, "%s: status %d", path, w.Code)
	}
	for _, without := range []string{"/app", "/app/u/somebody", links(page)[2]} {
		w := get(t, web.Handler(web.Config{Assets: builtApp(t), WithoutApp: true}), without)
		check.That(t, w.Code == http.StatusNotFound, "without the app: %s: status %d", without, w.Code)
	}
	w := get(t, web.Handler(web.Config{Assets: fstest.MapFS{}}), "/app/settings")
	check.That(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), "make web"), "not built: status %d, %s", w.Code, w.Body)
}

// The operations of the app are for the gateway, and are not served.
func TestDocuments(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, `{"1a": "{ viewer { user { id } } }"}`)
	must.OK(t, err)
	must.OK(t, z.Close())
	assets := builtApp(t)
	documents, err := web.Documents(assets)
	check.That(t, err == nil && documents == nil, "none: %v, %v", documents, err)
	assets["app/documents.json.gz"] = &fstest.MapFile{Data: zipped.Bytes()}
	documents, err = web.Documents(assets)
	check.That(t, err == nil && len(documents) == 1 && documents["1a"] == "{ viewer { user { id } } }", "one: %v, %v", documents, err)
	h := web.Handler(web.Config{Assets: assets})
	main := links(get(t, h, "/app").Body.String())[2]
	w := get(t, h, strings.Replace(main, "main.js", "documents.json", 1))
	check.Equal(t, "they are served", w.Code, http.StatusNotFound)
	assets["app/documents.json.gz"] = &fstest.MapFile{Data: []byte("no gzip")}
	_, err = web.Documents(assets)
	check.That(t, err != nil, "damaged ones are none")
}

// The app's policy allows nothing inline, and no data: URLs.
func TestAppsPolicy(t *testing.T) {
	h := web.Handler(web.Config{Assets: builtApp(t)})
	for _, path := range append(links(get(t, h, "/app").Body.String())[1:], "/app", "/app/u/x", "/faces/1.svg") {
		policy := get(t, h, path).Header().Get("Content-Security-Policy")
		if !strings.HasSuffix(policy, "; connect-src 'self'") || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "data:") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %s", path, policy)
		}
	}
}

// The app asks the identity providers at which people sign in, and no other page does.
func TestSignIns(t *testing.T) {
	h := web.Handler(web.Config{Assets: builtApp(t), WithoutPasswords: true, SignIns: []web.SignIn{
		{Issuer: "https://login.example.org/realms/one", ClientID: `k"ith`, Scopes: []string{"offline_access"}}, {Issuer: "http://127.0.0.1:9000", ClientID: "b"},
	}})
	w := get(t, h, "/app")
	const want = `data-passwords="false" data-sign-ins="[{&#34;issuer&#34;:&#34;https://login.example.org/realms/one&#34;,&#34;clientId&#34;:&#34;k\&#34;ith&#34;,&#34;scopes&#34;:[&#34;offline_access&#34;]},` +
		`{&#34;issuer&#34;:&#34;http://127.0.0.1:9000&#34;,&#34;clientId&#34;:&#34;b&#34;}]"`
	check.Has(t, "the page", w.Body.String(), want)
	policy := w.Header().Get("Content-Security-Policy")
	check.That(t, strings.HasSuffix(policy, "; connect-src 'self' https://login.example.org http://127.0.0.1:9000"), "%v", policy)
	check.Lacks(t, "/", get(t, h, "/").Header().Get("Content-Security-Policy"), "login.example.org")
	check.Has(t, "/app", get(t, web.Handler(web.Config{Assets: builtApp(t)}), "/app").Body.String(), `data-passwords="true" data-sign-ins="[]"`)
}

func TestDemoTokens(t *testing.T) {
	h := web.Handler(web.Config{Assets: builtApp(t), Host: "gateway.example", Demo: demo})
	ask := func(h http.Handler, method, host, query string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/demo/token"+query, nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, host := range []string{"localhost:8080", "127.0.0.1", "gateway.example:8080"} {
		w := ask(h, http.MethodPost, host, "?user=5")
		var answer struct{ Token, ExpiresAt string }
		err := json.NewDecoder(w.Body).Decode(&answer)
		check.That(t, err == nil && answer.Token == "token of 5" && answer.ExpiresAt == "1970-01-01T00:00:00Z", "%s: %d, %+v, %v", host, w.Code, answer, err)
		check.Equal(t, "Cache-Control", w.Header().Get("Cache-Control"), "no-store")
	}
	// GraphiQL also asks here.
	w := ask(web.Handler(web.Config{Assets: builtApp(t), Demo: demo, WithoutApp: true}), http.MethodPost, "localhost", "?user=5")
	check.That(t, w.Code == http.StatusOK, "without the app: status %d", w.Code)
	for _, c := range []struct {
		handler             http.Handler
		method, host, query string
		want                int
	}{
		{h, http.MethodPost, "evil.example", "?user=5", http.StatusForbidden}, // its DNS leads here
		{h, http.MethodPost, "localhost", "?user=6", http.StatusForbidden},
		{h, http.MethodPost, "localhost", "?user=0", http.StatusForbidden},
		{h, http.MethodPost, "localhost", "?user=x", http.StatusForbidden},
		{h, http.MethodPost, "localhost", "", http.StatusForbidden},
		{h, http.MethodPost, "localhost", "?user=3", http.StatusInternalServerError},
		{h, http.MethodPut, "localhost", "?user=5", http.StatusMethodNotAllowed},
		{web.Handler(web.Config{Assets: builtApp(t)}), http.MethodPost, "localhost", "?user=1", http.StatusForbidden},
	} {
		w := ask(c.handler, c.method, c.host, c.query)
		check.That(t, w.Code == c.want && !strings.Contains(w.Body.String(), "token of"), "%s %s %s: status %d, %s", c.method, c.host, c.query, w.Code, w.Body)
	}
	// A client elsewhere gets none, whatever host name it gives.
	far := httptest.NewRequest(http.MethodPost, "/demo/token?user=5", nil)
	far.Host, far.RemoteAddr = "localhost", "203.0.113.9:1"
	refused := httptest.NewRecorder()
	if h.ServeHTTP(refused, far); refused.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: status %d, %s", refused.Code, refused.Body)
	}
	// Under another host name, demo users are not offered.
	r := httptest.NewRequest(http.MethodGet, "/app", nil)
	r.Host = "evil.example"
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	check.That(t, strings.Contains(w.Body.String(), `data-demo="0"`), "%v", w.Body)
}

func TestFaces(t *testing.T) {
	h := web.Handler(web.Config{Assets: fstest.MapFS{}, WithoutApp: true})
	faces := map[string]bool{}
	for number := range 200 {
		w := get(t, h, fmt.Sprintf("/faces/%d.svg", number))
		body := w.Body.String()
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/svg+xml" || len(body) > 2048 {
			t.Fatalf("%d: status %d, %d bytes, headers %v", number, w.Code, len(body), w.Header())
		}
		for d := xml.NewDecoder(strings.NewReader(body)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%d: %v in %s", number, err, body)
			}
		}
		faces[body] = true
		check.That(t, get(t, h, fmt.Sprintf("/faces/%d.svg", number)).Body.String() == body, "%d has two faces", number)
	}
	check.That(t, len(faces) >= 195, "%d faces of 200 users", len(faces))
	for _, path := range []string{"/faces/", "/faces/x.svg", "/faces/01.svg", "/faces/-1.svg", "/faces/1", "/faces/1.png", "/faces/9223372036854775808.svg", "/faces/1/2.svg"} {
		w := get(t, h, path)
		check.That(t, w.Code == http.StatusNotFound, "%s: status %d", path, w.Code)
	}
}
