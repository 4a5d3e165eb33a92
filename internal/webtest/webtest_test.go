package webtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// leaky is a page that runs its example. On the way it sends requests to foreign origins: by
// itself, from a worker, and over https.
const leaky = `<!doctype html><body data-page="plain">
<textarea id="query">query { a }</textarea><button id="run">Run</button><pre id="result"></pre>
<script>
document.getElementById("run").onclick = async () => {
  console.error("something is wrong");
  await fetch("http://page.example/x").catch(() => {});
  await fetch("https://tls.example/x").catch(() => {});
  const worker = new Worker("worker.js");
  worker.onmessage = () => { document.getElementById("result").textContent = '%s'; };
};
</script>`

const leakyWorker = `fetch("http://worker.example/x").catch(() => {}).finally(() => postMessage("done"));`

// spy is a test that records the errors reported to it instead of failing.
type spy struct {
	testing.TB
	errors []string
}

func (s *spy) Errorf(format string, args ...any) {
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}

func TestDriveReportsWhatIsWrong(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, leaky, `{"data": {"a": null}, "errors": [{"message": "no"}]}`)
	})
	mux.HandleFunc("GET /worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, leakyWorker)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()

	s := &spy{TB: t}
	Drive(s, srv.URL)
	for _, want := range []string{
		"console: error: \"something is wrong\"",
		"left the gateway's origin: http://page.example/x",
		"left the gateway's origin: connect://tls.example:443",
		"left the gateway's origin: http://worker.example/x",
		"answer of the example: 1 errors",
	} {
		if !slices.ContainsFunc(s.errors, func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("not reported: %s\nreported:\n%s", want, strings.Join(s.errors, "\n"))
		}
	}
}

func TestCheck(t *testing.T) {
	for answer, want := range map[string]string{
		`{"data": {"user": {"id": "1"}}}`:       "",
		`{"data": {"user": null}}`:              "user is null",
		`{"data": null}`:                        "no data",
		`{"data": {"user": 1}, "errors": [{}]}`: "1 errors",
		`not found`:                             "invalid character 'o' in literal null (expecting 'u')",
	} {
		got := ""
		if err := check([]byte(answer)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("check(%s) = %q, want %q", answer, got, want)
		}
	}
}
