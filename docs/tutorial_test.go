package docs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestTutorial runs the commands of docs/start/tutorial.md in their order, on its own ports, and opens the page in a browser.
func TestTutorial(t *testing.T) {
	t.Parallel()
	chromium := testenv.Chromium(t)
	if _, err := exec.LookPath("curl"); err != nil {
		testenv.Missing(t, "curl is not installed")
	}
	folder := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(folder, "bin"), 0o755))
	must.OK(t, os.Symlink(kithtest.Binary(t), filepath.Join(folder, "bin", "kith")))
	pages := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(folder, "tutorial"))))
	defer pages.Close()
	free := httptest.NewServer(nil) // its port is free once it is closed
	api := free.URL
	free.Close()
	text := strings.NewReplacer("http://127.0.0.1:8080", api, "127.0.0.1:8080", strings.TrimPrefix(api, "http://"), "http://127.0.0.1:8000", pages.URL).Replace(read(t, "start/tutorial.md"))
	commands := submatches("(?s)```sh\n(.*?)```", text)
	must.That(t, len(commands) == 8 && commands[0] == "make build\n", "%d commands: %q", len(commands), commands)
	run := func(command string) string {
		t.Helper()
		c := exec.Command("bash", "-ec", command)
		c.Dir = folder
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", command, err, out, err.(*exec.ExitError).Stderr)
		}
		return string(out)
	}
	t.Cleanup(func() { run("kill $(cat tutorial/kith.pid) 2>/dev/null || true") })

	run(commands[1])
	for _, want := range []string{"imported 7 edges and 5 users ", "imported 0 edges and 0 users "} {
		said := run(commands[2])
		check.That(t, strings.HasPrefix(said, want), "the import says %s", said)
	}
	run(commands[3])
	var got, want any
	answers := submatches("(?s)```json\n(.*?)```", text)
	must.OK(t, json.Unmarshal([]byte(run(commands[4])), &got))
	must.OK(t, json.Unmarshal([]byte(answers[0]), &want))
	check.That(t, reflect.DeepEqual(got, want), "the answer is %v, on the page it is %v", got, want)
	run(commands[5])
	answer := run(commands[6])
	check.That(t, strings.Contains(answer, `"changed":true`) && strings.Contains(answer, `"followerCount":4`), "follow: %s", answer)
	dom, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=20000", "--dump-dom", pages.URL+"/?of=ada").Output()
	must.OK(t, err)
	page := regexp.MustCompile(`<script[^>]*>(?s:.*?)</script>|<[^>]+>`).ReplaceAllString(string(dom), " ")
	check.That(t, strings.Contains(page, "Ada Lovelace has 4 followers") && strings.Contains(page, "Barbara Liskov"), "the page shows %s", page)
	run(commands[7])
}
