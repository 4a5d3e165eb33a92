package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestMakeUp starts what `make up` starts, uses all of it, and ends it. No process stays. In the long form it starts
// once more, with the existing data.
func TestMakeUp(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"mariadbd", "mariadb-install-db", "redis-server"} {
		if !slices.ContainsFunc([]string{"", "/usr/sbin/", "/usr/local/sbin/"}, func(folder string) bool {
			_, err := exec.LookPath(folder + program)
			return err == nil
		}) {
			testenv.Missing(t, program+" is not installed: run scripts/install-test-deps.sh (make test does)")
		}
	}
	script, err := filepath.Abs("../scripts/up.sh")
	must.OK(t, err)
	folder, port := t.TempDir(), freePorts(t, 10)
	times := 1
	if os.Getenv("KITH_TEST_LONG") == "1" {
		times = 2
	}
	launch := func() *kithtest.Command {
		return kithtest.Launch(t, kithtest.Program(script), kithtest.Env("FOLDER="+folder, fmt.Sprint("PORT=", port), "PROGRAM="+kithtest.Binary(t)))
	}
	taken, err := net.Listen("tcp4", fmt.Sprint("127.0.0.1:", port+2))
	must.OK(t, err)
	if end := launch().Wait(t); end.Code != 1 || !strings.Contains(end.Stderr, "replicator has ended; its log ends: ") || !strings.Contains(end.Stderr, " is taken by another program") {
		t.Errorf("a port is taken: %+v", end)
	}
	taken.Close()
	for again := range times {
		up := launch()
		up.Until(t, "all is up", func() bool {
			if up.Ended() {
				t.Fatalf("%+v", up.Wait(t))
			}
			return strings.Contains(up.Stdout(), "Ctrl-C ends everything.")
		})
		use(t, up, port, again > 0)
		end := up.Interrupt(t)
		check.That(t, end.Code == 0 && end.Stderr == "", "%+v", end)
		left := processes(t, folder)
		check.That(t, len(left) == 0, "these are left: %q", left)
	}
}

// `make up` gives the processes the variables that compose.yaml gives them, and no others.
func TestMakeUpSetsWhatComposeSets(t *testing.T) {
	variables := func(path string) []string {
		list := regexp.MustCompile(`\bKITH_\w+`).FindAllString(read(t, path), -1)
		slices.Sort(list)
		return slices.Compact(list)
	}
	compose := slices.DeleteFunc(variables("compose.yaml"), func(v string) bool { return v == "KITH_DRAIN" }) // it is in a comment
	check.Equal(t, "what make up sets", variables("../scripts/up.sh"), compose)
}

// use registers a user at one gateway, finds that user at the other, and checks what Prometheus sees.
func use(t *testing.T, up *kithtest.Command, port int, again bool) {
	t.Helper()
	ask := func(gateway int, query string) string {
		return post(t, fmt.Sprintf("http://127.0.0.1:%d/graphql", port+gateway), query)
	}
	if !again {
		got := ask(0, `mutation { register(handle: "ada", name: "Ada", password: "correct horse") { viewer { user { handle } } } }`)
		check.Has(t, "register", got, `"ada"`)
	}
	command := exec.CommandContext(t.Context(), "bash", "-c", regexp.MustCompile(`source \S+`).FindString(up.Stdout())+` && "$0" shards`, kithtest.Binary(t))
	out, err := command.CombinedOutput()
	check.That(t, err == nil && strings.Count(string(out), "512 buckets") == 2, "a command: %v: %s", err, out)
	check.Has(t, "user", ask(1, `{ user(by: {handle: "ada"}) { name } }`), `"Ada"`)
	for _, url := range regexp.MustCompile(`(?m)^  (http://\S+) `).FindAllStringSubmatch(up.Stdout(), -1) {
		if response, err := http.Get(url[1]); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s: %v %v", url[1], response, err)
		}
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		return
	}
	for query, want := range map[string]int{"up == 1": 4, "kith_build_info": 4, `kith_replication_lag_seconds`: 6, `kith_audit_compared_total > 0`: 4} {
		up.Until(t, fmt.Sprintf("%d of %s", want, query), func() bool {
			response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/api/v1/query?query=%s", port+3, strings.ReplaceAll(query, " ", "+")))
			if err != nil {
				return false
			}
			defer response.Body.Close()
			var answer struct{ Data struct{ Result []any } }
			return json.NewDecoder(response.Body).Decode(&answer) == nil && len(answer.Data.Result) == want
		})
	}
}

func post(t *testing.T, url, query string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	must.OK(t, err)
	response, err := http.Post(url, "application/json", strings.NewReader(string(body)))
	must.OK(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(t, err)
	return string(text)
}

// freePorts finds n consecutive ports on which nothing listens, below those of outgoing connections.
func freePorts(t *testing.T, n int) (first int) {
	t.Helper()
	for first = 22100 + os.Getpid()*n%8000; ; first += n { // another process that does the same begins elsewhere
		free := true
		for i := range n {
			listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", first+i))
			if free = free && err == nil; err == nil {
				listener.Close()
			}
		}
		if free {
			return first
		}
		must.That(t, first <= 31000, "no ports are free")
	}
}

// processes are the command lines of the processes that have a folder in their arguments or their environment.
func processes(t *testing.T, folder string) (list []string) {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("there is no /proc here to see who is left")
	}
	deadline := time.Now().Add(10 * time.Second) // a process that has ended may still be in the list
	for {
		list = nil
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range lines {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), folder) {
				list = append(list, string(text))
			}
		}
		if len(list) == 0 || time.Now().After(deadline) {
			return list
		}
		time.Sleep(50 * time.Millisecond)
	}
}
