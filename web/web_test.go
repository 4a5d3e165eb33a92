package web_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"kith/internal/check"
	"kith/internal/must"
	"kith/web"
)

const script = "console.log('built')"

// built is a build, with the files that the handler reads.
func built(t *testing.T, script string) fs.FS {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, script)
	must.OK(t, err)
	must.OK(t, z.Close())
	return fstest.MapFS{
		".keep":                &fstest.MapFile{},
		"graphiql/main.js.gz":  &fstest.MapFile{Data: b.Bytes()},
		"graphiql/main.css.gz": &fstest.MapFile{Data: b.Bytes()},
		"graphiql/.stamp":      &fstest.MapFile{Data: []byte("1 2")},
	}
}

// get sends a request to the handler. headers are pairs of name and value.
func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// links returns the URLs that the page loads by itself.
func links(html string) []string {
	var urls []string
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		urls = append(urls, m[1])
	}
	return urls
}

func TestPageDependsOnTheBuild(t *testing.T) {
	for name, tc := range map[string]struct {
		assets fs.FS
		want   string
	}{
		"built":      {built(t, script), `data-page="graphiql"`},
		"not built":  {fstest.MapFS{".keep": &fstest.MapFile{}}, `data-page="plain"`},
		"no folders": {fstest.MapFS{}, "make web"},
	} {
		w := get(t, web.Handler(web.Config{Assets: tc.assets}), "/")
		check.That(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), tc.want), "%s: status %d, page without %s:\n%s", name, w.Code, tc.want, w.Body)
	}
}

// TestPagesMayBeBuiltLater: a page is the plain one until there is a built one, without a new start.
func TestPagesMayBeBuiltLater(t *testing.T) {
	assets := fstest.MapFS{}
	h := web.Handler(web.Config{Assets: assets})
	for _, c := range []struct {
		next        fstest.MapFS // what is built
		query, page string
	}{
		{nil, `data-page="plain"`, "make web"}, {builtApp(t), `data-page="plain"`, `data-page="app"`},
		{built(t, script).(fstest.MapFS), `data-page="graphiql"`, `data-page="app"`},
	} {
		maps.Copy(assets, c.next)
		query, page := get(t, h, "/").Body.String(), get(t, h, "/app").Body.String()
		check.That(t, strings.Contains(query, c.query) && strings.Contains(page, c.page), "want %s and %s, got\n%s\n%s", c.query, c.page, query, page)
	}
}

func TestPageShowsItsConfig(t *testing.T) {
	for name, assets := range map[string]fs.FS{"graphiql": built(t, script), "plain": fstest.MapFS{}} {
		w := get(t, web.Handler(web.Config{Assets: assets, Examples: []string{`{ a(b: "<c>") }`}, Greeting: "About <b>.\nMore."}), "/")
		for _, want := range []string{`data-endpoint="/graphql"`, `{ a(b: `} {
			check.That(t, strings.Contains(w.Body.String(), want) && !strings.Contains(w.Body.String(), "<c>"), "%s: no %s in\n%s", name, want, w.Body)
		}
		w = get(t, web.Handler(web.Config{Assets: assets, Greeting: "About <b>.\nMore."}), "/")
		if want := "# About &lt;b&gt;.\n# More.\n#"; !strings.Contains(w.Body.String(), want) || !strings.Contains(w.Body.String(), `data-examples="[]"`) {
			t.Errorf("%s: without examples, no %q in\n%s", name, want, w.Body)
		}
	}
}

func TestPagesMayBeLeftOut(t *testing.T) {
	for name, assets := range map[string]fs.FS{"graphiql": built(t, script), "plain": fstest.MapFS{}} {
		page := get(t, web.Handler(web.Config{Assets: assets}), "/")
		h := web.Handler(web.Config{Assets: assets, WithoutGraphiQL: true})
		w := get(t, h, "/")
		if w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: / answers %d, headers %v", name, w.Code, w.Header())
		}
		if name == "graphiql" {
			urls := links(page.Body.String())
			if w := get(t, h, urls[len(urls)-1]); w.Code != http.StatusNotFound {
				t.Errorf("%s answers %d", urls[len(urls)-1], w.Code)
			}
		}
		w = get(t, h, "/app")
		check.That(t, w.Code == http.StatusOK && !strings.Contains(w.Body.String(), `href="/"`), "%s: the app answers %d and leads to GraphiQL: %s", name, w.Code, w.Body)
		w = get(t, web.Handler(web.Config{Assets: assets, WithoutApp: true}), "/")
		check.That(t, w.Code == http.StatusOK, "%s: without the app, / answers %d", name, w.Code)
	}
}

// TestDemoUsersAreForOwnNames: if the DNS of another host name leads here, a page under that name
// offers no demo users.
func TestDemoUsersAreForOwnNames(t *testing.T) {
	for offer, assets := range map[string]fs.FS{`max="5"`: fstest.MapFS{}, `data-demo="5"`: built(t, script)} {
		h := web.Handler(web.Config{Assets: assets, Demo: demo, Host: "Gateway.example:8080"})
		etags := map[bool]string{}
		for host, own := range map[string]bool{
			"localhost": true, "LOCALHOST:8080": true, "127.0.0.1": true, "127.0.0.1:1": true, "127.8.9.10:80": true, "[::1]": true, "[::1]:8080": true,
			"[::ffff:127.0.0.1]:80": true, "gateway.example:8080": true, "gateway.example": true,
			"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example:8080": false, "127.0.0.1@evil.example": false,
			"10.0.0.7:8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "[::2]": false, "": false, ":8080": false, "xgateway.example": false,
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			got := strings.Contains(w.Body.String(), offer)
			check.That(t, got == own && w.Code == http.StatusOK, "Host %q: status %d, demo users %t", host, w.Code, got)
			etags[own] = w.Header().Get("ETag")
		}
		check.That(t, etags[true] != etags[false], "both pages have the ETag %s", etags[true])
	}
}

func TestPageLoadsOnlyFilesOfOurs(t *testing.T) {
	for name, assets := range map[string]fs.FS{"graphiql": built(t, script), "plain": fstest.MapFS{}} {
		h := web.Handler(web.Config{Assets: assets})
		html := get(t, h, "/").Body.String()
		check.Equal(t, name+": addresses elsewhere", regexp.MustCompile(`(?i)https?:|["'(]//`).FindString(html), "")
		inline := regexp.MustCompile(`(?i)<script[^>]*>[^<]|\son\w+=|<style|\sstyle=`).FindString(html)
		check.That(t, inline == "", "%s: %q in the page", name, inline)
		check.That(t, len(links(html)) >= 3, "%s: links %q, want icon, style and script", name, links(html))
		for _, url := range links(html) {
			w := get(t, h, url)
			check.That(t, w.Code == http.StatusOK, "%s: %s answers %d", name, url, w.Code)
		}
	}
}

func TestSecurityHeaders(t *testing.T) {
	h := web.Handler(web.Config{Assets: built(t, script)})
	for _, path := range append(links(get(t, h, "/").Body.String()), "/", "/nothing") {
		got := get(t, h, path).Header()
		policy := got.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			check.That(t, strings.Contains(policy, want), "%s: policy without %s: %s", path, want, policy)
		}
		for _, not := range []string{"unsafe-eval", "http:", "https:", "*", "blob:"} {
			check.That(t, !strings.Contains(policy, not), "%s: policy allows %s: %s", path, not, policy)
		}
		check.That(t, got.Get("X-Content-Type-Options") == "nosniff" && got.Get("Referrer-Policy") == "no-referrer", "%s: headers %v", path, got)
	}
}

func TestAssetIsImmutable(t *testing.T) {
	h := web.Handler(web.Config{Assets: built(t, script)})
	for _, url := range links(get(t, h, "/").Body.String()) {
		w := get(t, h, url)
		got, want := w.Header().Get("Cache-Control"), "public, max-age=31536000, immutable"
		check.That(t, got == want, "%s: Cache-Control %q, want %q", url, got, want)
		again := get(t, h, url, "If-None-Match", w.Header().Get("ETag"))
		check.That(t, again.Code == http.StatusNotModified && again.Body.Len() == 0, "%s: status %d with %d bytes, want 304", url, again.Code, again.Body.Len())
	}
}

func TestPageIsRevalidated(t *testing.T) {
	h := web.Handler(web.Config{Assets: built(t, script)})
	w := get(t, h, "/")
	check.Equal(t, "Cache-Control", w.Header().Get("Cache-Control"), "no-cache")
	etag := w.Header().Get("ETag")
	again := get(t, h, "/", "If-None-Match", etag)
	check.That(t, again.Code == http.StatusNotModified, "status %d, want 304", again.Code)
	changed := web.Handler(web.Config{Assets: built(t, script+"//")})
	again = get(t, changed, "/", "If-None-Match", etag)
	check.That(t, again.Code == http.StatusOK, "status %d after another build, want 200", again.Code)
}

func TestBuildChangesURL(t *testing.T) {
	before := links(get(t, web.Handler(web.Config{Assets: built(t, script)}), "/").Body.String())
	h := web.Handler(web.Config{Assets: built(t, script+"//")})
	after := links(get(t, h, "/").Body.String())
	old, now := before[len(before)-1], after[len(after)-1]
	check.That(t, strings.HasSuffix(old, "/main.js") && old != now, "script is %s, then %s", old, now)
	w := get(t, h, old)
	if w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("file of the build before: status %d, headers %v, want 404 that is not stored", w.Code, w.Header())
	}
}

func TestAssetEncoding(t *testing.T) {
	h := web.Handler(web.Config{Assets: built(t, script)})
	urls := links(get(t, h, "/").Body.String())
	url := urls[len(urls)-1]
	etags := map[string]string{}
	for accept, gzipped := range map[string]bool{
		"": false, "identity": false, strings.Repeat("br,", 400) + "gzip": false, // it is too long to be read to its end
		"br, gzip;q=0": false, "gzip;q=0.0": false,
		"gzip": true, "br, gzip, deflate": true, "gzip;q=0.5": true,
	} {
		w := get(t, h, url, "Accept-Encoding", accept)
		body := w.Body.String()
		if gzipped {
			body = gunzip(t, w.Body)
		}
		if body != script || (w.Header().Get("Content-Encoding") == "gzip") != gzipped {
			t.Errorf("Accept-Encoding %q: headers %v, body %q", accept, w.Header(), body)
		}
		check.Equal(t, "Content-Type", w.Header().Get("Content-Type"), "text/javascript; charset=utf-8")
		check.That(t, w.Header().Get("Vary") == "Accept-Encoding", "Accept-Encoding %q: no Vary", accept)
		etags[w.Header().Get("ETag")] = w.Header().Get("Content-Encoding")
	}
	check.That(t, len(etags) == 2, "ETags %v, want one for each encoding", etags)
}

// Clients without gzip share one plain copy of a file. With a copy for each of them, those that do not take theirs would fill the memory.
func TestPlainFilesAreShared(t *testing.T) {
	long := strings.Repeat("1234567;", 1<<17)
	h := web.Handler(web.Config{Assets: built(t, long)})
	urls := links(get(t, h, "/").Body.String())
	ask := func() {
		w := get(t, h, urls[len(urls)-1], "Range", "bytes=8-15") // the recorder keeps no more either
		check.Equal(t, "a part of the file", w.Body.String(), "1234567;")
	}
	ask()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 16 {
		ask()
	}
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	check.That(t, took < uint64(len(long)), "16 requests for a part of a file of %d bytes took %d bytes", len(long), took)
}

func gunzip(t *testing.T, r io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(r)
	must.OK(t, err)
	b, err := io.ReadAll(z)
	must.OK(t, err)
	return string(b)
}

func TestOtherPathsAndMethods(t *testing.T) {
	h := web.Handler(web.Config{Assets: built(t, script)})
	urls := links(get(t, h, "/").Body.String())
	folder := urls[len(urls)-1]
	folder = strings.TrimSuffix(folder, "main.js")
	for _, path := range []string{"/index.html", "/graphiql", "/graphiql/", folder, folder + ".stamp", folder + "main.js.gz", folder + "../main.js"} {
		w := get(t, h, path)
		check.That(t, w.Code == http.StatusNotFound, "%s answers %d, want 404", path, w.Code)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST / answers %d, headers %v", w.Code, w.Header())
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	check.That(t, w.Code == http.StatusOK && w.Body.Len() == 0, "HEAD / answers %d with %d bytes", w.Code, w.Body.Len())
}
