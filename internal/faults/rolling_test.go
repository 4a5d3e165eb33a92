package faults_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kith/internal/kithtest"
	"kith/internal/testenv"
	"kith/storage"
)

// stopDelay is the time of 30 checks of the load balancer.
const stopDelay = "3s"

// traffic is the requests of clients of a load balancer, and their answers.
type traffic struct {
	asked, failed, followed atomic.Int64
	first                   atomic.Pointer[string] // the first failure
	acknowledged            sync.Map               // edge
	stop                    func()
}

// start makes clients ask through the balancer, each with a pause after an answer. Every tenth request follows a user
// whom the client does not follow yet.
func (b *balancer) start(t *testing.T, d *deployment, viewers []int64, users int64, pause time.Duration) *traffic {
	t.Helper()
	load := new(traffic)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, viewer := range viewers {
		c := d.client(t)
		c.http.Transport = b
		running.Go(func() {
			next := int64(0)
			for n := 0; ctx.Err() == nil; n++ {
				query, variables := `query($id: ID!) { user(by: {id: $id}) { handle followings(first: 10) { nodes { handle } } } }`, map[string]any{"id": id(viewer)}
				follows := n%10 == 9 && next < users-1
				if follows {
					if next++; next == viewer {
						next++
					}
					query, variables = `mutation($id: ID!) { follow(userId: $id) { changed } }`, map[string]any{"id": id(next)}
				}
				a, err := c.ask(context.WithoutCancel(ctx), "http://balancer", viewer, "", query, variables)
				load.asked.Add(1)
				switch {
				case err != nil || len(a.Errors) > 0:
					load.failed.Add(1)
					text := fmt.Sprintf("%s: %v %+v", query, err, a.Errors)
					load.first.CompareAndSwap(nil, &text)
				case follows:
					load.followed.Add(1)
					load.acknowledged.Store(edge{viewer, next}, true)
				}
				time.Sleep(pause)
			}
		})
	}
	var once sync.Once
	load.stop = func() { once.Do(func() { cancel(); running.Wait() }) }
	t.Cleanup(load.stop)
	return load
}

// roll replaces one gateway: it is asked to stop, as a supervisor does, and is started again when it has ended.
func (b *balancer) roll(t *testing.T, i int) {
	t.Helper()
	n := b.gateways[i]
	l := n.now.Load()
	l.wasWell(t)
	l.Signal(syscall.SIGTERM)
	if end := l.Wait(t); end.Code != 0 {
		t.Errorf("%s: %+v", l.name, end)
	}
	n.start(t)
	b.has(t, i, true)
}

// rolledWell checks that next to nothing failed, and that everything that was acknowledged exists on both sides.
func (load *traffic) rolledWell(t *testing.T, d *deployment, allowed float64) {
	t.Helper()
	load.stop()
	asked, failed := load.asked.Load(), load.failed.Load()
	t.Logf("%d requests, %d failed; %d follows", asked, failed, load.followed.Load())
	if float64(failed) > allowed*float64(asked) {
		t.Errorf("%d of %d requests failed, the first: %s", failed, asked, *load.first.Load())
	}
	count := func(table string) (n int64) {
		for s := range d.shards {
			n += d.number(t, s, "SELECT COUNT(*) FROM "+table)
		}
		return n
	}
	if rows := count("following"); rows < load.followed.Load() || rows > load.followed.Load()+failed {
		t.Errorf("%d follows were acknowledged, there are %d", load.followed.Load(), rows)
	}
	until(t, "follower has all", func() bool { return count("follower") == count("following") })
	d.allWell(t)
}

// TestRollingRestart restarts two gateways under load, one after the other: no request fails.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	const users = 400
	d := prepare(t, testenv.SharedMariaDB(t, 2), "binlog", users)
	for i := range 2 {
		d.gateways = append(d.gateways, d.serving(fmt.Sprint("gateway ", i), "--stop-delay", stopDelay))
		d.gateways[i].start(t)
	}
	b := d.balancer(t)
	for i := range d.gateways {
		b.has(t, i, true)
	}
	load := b.start(t, d, append(d.onShard(0, 2), d.onShard(3, 1)...), users, 10*time.Millisecond)
	for i := range d.gateways {
		b.roll(t, i)
	}
	until(t, "enough was asked", func() bool { return load.asked.Load() >= 2000 })
	load.rolledWell(t, d, 0)
}

// TestLongUpgrade runs gateways of the last release and of this tree side by side, under load. The first gateway of
// this tree migrates the tables while the other gateway still serves. Then gateways are restarted until 100,000
// requests have been sent. At most one of 100,000 may fail.
func TestLongUpgrade(t *testing.T) {
	testenv.Long(t)
	testenv.NeedsBinlog(t)
	const users, requests = 4500, 100_000
	before := kithtest.Program(lastRelease(t))
	servers := testenv.SharedMariaDB(t, 2)
	d := &deployment{mode: "binlog", servers: servers, dsns: servers.FreshDatabases(t, 2), redis: testenv.Redis(t), shardMap: storage.NewShardMap(4)}
	d.signs(t)
	list := filepath.Join(t.TempDir(), "users.csv")
	if err := os.WriteFile(list, []byte(usersFile(users)), 0o600); err != nil {
		t.Fatal(err)
	}
	if end := kithtest.Run(t, before, kithtest.Args(append([]string{"import", list}, d.settings()...)...)); end.Code != 0 {
		t.Fatalf("the last release imports nothing: %+v", end)
	}
	d.lookIn(t)
	for i := range 2 {
		n := d.serving(fmt.Sprint("gateway ", i))
		d.gateways = append(d.gateways, n)
		n.launch = func(t testing.TB) *life {
			c := kithtest.Launch(t, before, kithtest.Args(append([]string{"serve", "--addr", "127.0.0.1:0", "--jwt-secret", secret}, d.settings()...)...))
			announced := regexp.MustCompile(`(?s)  (http://\S+)/healthz .*  (http://\S+)/readyz `) // 0.1.0 serves both at one address
			c.Until(t, "the last release serves", func() bool { return announced.MatchString(c.Stdout()) })
			at := announced.FindStringSubmatch(c.Stdout())
			return &life{Command: c, gateway: &kithtest.Gateway{Command: c, URL: at[1], Admin: at[2]}}
		}
		n.start(t)
	}
	b := d.balancer(t)
	for i := range d.gateways {
		b.has(t, i, true)
	}
	load := b.start(t, d, append(d.onShard(0, 4), d.onShard(2, 4)...), users, 0)
	for i, n := range d.gateways { // they may not have --stop-delay, so they are taken out by hand first
		was := buildOf(t, n)
		b.out[i].Store(true)
		b.has(t, i, false)
		n.launch = d.serving(n.name, "--stop-delay", stopDelay).launch
		b.out[i].Store(false)
		b.roll(t, i)
		if is := buildOf(t, n); is == was {
			t.Errorf("%s was %s and is still", n.name, was)
		}
		beside := load.asked.Load()
		until(t, "requests to both versions", func() bool { return load.asked.Load() > beside+2000 })
		t.Logf("%d requests, %d failed, when %s had been replaced", load.asked.Load(), load.failed.Load(), n.name)
	}
	restarts := 0
	for load.asked.Load() < requests {
		b.roll(t, restarts%2)
		restarts++
	}
	t.Logf("%d more restarts", restarts)
	load.rolledWell(t, d, 1e-5)
}

// buildOf is the build that a gateway reports.
func buildOf(t *testing.T, n *node) string {
	t.Helper()
	response, err := http.Get(n.now.Load().gateway.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^kith_build_info.*$`).FindString(string(text))
}

// usersFile makes a file with users 1 … n.
func usersFile(n int) string {
	var b strings.Builder
	b.WriteString("id,handle\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,u%d\n", i+1, i+1)
	}
	return b.String()
}

// lastRelease builds the program of the last release. Its commit is the one with the tag, or else the one that added
// the heading of the last version to the changelog.
func lastRelease(t *testing.T) (program string) {
	t.Helper()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
		if err != nil {
			t.Skipf("git %v: %v: the last release cannot be built without its history", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\]`).FindStringSubmatch(string(changes))[1]
	commit := git("tag", "--list", "v"+version)
	if commit == "" {
		commit = git("log", "-1", "--format=%H", "-S## ["+version+"]", "--", "CHANGELOG.md")
	}
	if commit == "" || git("rev-parse", "--is-shallow-repository") == "true" {
		t.Skipf("this clone does not have version %s", version)
	}
	folder := t.TempDir()
	build := exec.Command("bash", "-ec", `git -C ../.. archive "$1" | tar -x -C "$2" && cd "$2" &&
		go build -buildvcs=false -ldflags "-s -X $(go list -m)/cli.version=$3" -o kith .`, "build", commit, folder, version)
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("version %s does not build here: %v\n%s", version, err, out)
	}
	return filepath.Join(folder, "kith")
}
