package hostile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/hostile"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// Eight connections send hostile requests one after another, for a minute with KITH_TEST_LONG=1. At
// the same time a well-behaved client is answered nearly as fast as by a gateway that is not
// attacked, and the gateway stays below 1 GB. The other gateway is asked at the same time, because
// the attackers, and everything else on the machine, take processor time from it, too.
func TestBesideHostileRequests(t *testing.T) {
	for name, c := range map[string]struct {
		slower int  // how many times as long the slowest hundredth of requests may take
		all    bool // not only requests that are refused, but also requests within the limits, and sockets
	}{
		"refused": {3, false},
		"all":     {10, true}, // two such requests at once use both processors of a small machine for 20 ms
	} {
		t.Run(name, func(t *testing.T) {
			g, spared := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1))), kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
			well := &wellBehaved{client: client(t), documents: ordinary}
			well.ask(t, time.Second, g.URL, spared.URL) // until the caches are warm
			// The machine may be busy with something else, so one success in three tries is enough.
			for try := 1; ; try++ {
				during := beside(t, g, spared, well, c.all)
				if during[0].p99 <= time.Duration(c.slower)*during[1].p99 {
					break
				}
				if try == 3 {
					t.Errorf("beside them the p99 is %s, of a gateway that nobody attacks %s", during[0].p99, during[1].p99)
					break
				}
			}
			check.Most(t, "the memory of the gateway", peakMemory(t, g), 1<<30)
		})
	}
}

// beside asks the attacked gateway and the spared one while the attackers run.
func beside(t *testing.T, g, spared *kithtest.Gateway, well *wellBehaved, all bool) []latencies {
	t.Helper()
	attack := 2 * time.Second
	if os.Getenv("KITH_TEST_LONG") == "1" {
		attack = time.Minute
	}
	attackers := launchAttackers(t, g.URL, all)
	during := well.ask(t, attack, g.URL, spared.URL)
	sent, faults := attackers.end(t)
	t.Logf("beside %d hostile requests %s, the gateway that nobody attacks %s; %d MB at most", sent, during[0], during[1], peakMemory(t, g)>>20)
	check.That(t, faults == 0, "%d hostile requests found a fault of the server", faults)
	check.That(t, during[0].failed == 0, "%d of %d ordinary requests were not answered", during[0].failed, during[0].asked)
	return during
}

// attackers are a separate process, so that apart from their requests they slow others down only by
// the processor time that they use.
type attackers struct {
	*exec.Cmd
	output *bytes.Buffer
	stop   io.Closer
}

// These variables make this program the attacker: whom to attack, and whether with everything.
const (
	ofAttackers = "KITH_HOSTILE_URL"
	withAll     = "KITH_HOSTILE_ALL"
)

func launchAttackers(t *testing.T, url string, all bool) *attackers {
	t.Helper()
	a := &attackers{exec.Command(os.Args[0], "-test.run=^TestAttackers$", "-test.v"), &bytes.Buffer{}, nil}
	a.Env = append(os.Environ(), ofAttackers+"="+url, withAll+"="+strconv.FormatBool(all))
	a.Stdout, a.Stderr = a.output, a.output
	stop, err := a.StdinPipe() // its input also ends with this process
	if err == nil {
		err = a.Start()
	}
	must.OK(t, err)
	a.stop = stop
	return a
}

// end stops the attackers. It returns how many requests they sent, and how many of those found a fault.
func (a *attackers) end(t *testing.T) (sent, faults int) {
	t.Helper()
	_ = a.stop.Close()
	err := a.Wait()
	for line := range strings.Lines(a.output.String()) {
		if n, _ := fmt.Sscanf(line, "sent %d faults %d", &sent, &faults); n == 2 {
			return sent, faults
		}
	}
	t.Fatalf("the attackers reported nothing: %v\n%s", err, a.output)
	return 0, 0
}

// TestAttackers is the process of the attackers: eight connections send until its input ends.
func TestAttackers(t *testing.T) {
	url := os.Getenv(ofAttackers)
	if url == "" {
		t.Skip("it is started by TestBesideHostileRequests")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sent, faults atomic.Int64
	var sending sync.WaitGroup
	all, sockets := hostile.Documents(), hostile.Sockets
	if os.Getenv(withAll) != "true" {
		all = slices.DeleteFunc(all, func(d hostile.Document) bool { return d.Answered })
		sockets = nil
	}
	for i := range 8 {
		c := client(t)
		sending.Go(func() {
			for n := i * len(all) / 8; ctx.Err() == nil; n++ {
				turn := n % (len(all) + len(sockets))
				if turn >= len(all) {
					attack, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					sockets[turn-len(all)].Run(attack, "ws"+strings.TrimPrefix(url, "http")+"/graphql", "")
					cancel()
					sent.Add(1)
					continue
				}
				a, err := send(ctx, c, url, all[turn])
				if sent.Add(1); err == nil && a.status >= 500 && a.status != http.StatusServiceUnavailable {
					faults.Add(1)
				}
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	sending.Wait()
	fmt.Printf("sent %d faults %d\n", sent.Load(), faults.Load())
}

// wellBehaved sends the requests that front ends send, on four connections.
type wellBehaved struct {
	client    *http.Client
	documents []hostile.Document
}

var ordinary = []hostile.Document{
	{Body: `{"query": "{ user(by: {id: 7}) { name followingCount followerCount } }"}`},
	{Body: `{"query": "{ user(by: {id: 9}) { followings { nodes { id name } } } }"}`},
	{Body: `{"query": "{ user(by: {id: 3}) { commonFollowings(with: 5) { totalCount nodes { name } } } }"}`},
	{Body: `{"query": "{ users(by: {ids: [1, 2, 3, 4, 5, 6, 7, 8]}) { name relationship(to: 9) { status } } }"}`},
	{Body: `{"query": "{ user(by: {handle: \"maya_okafor\"}) { id friends(first: 5) { nodes { name } } } }"}`},
}

// latencies are the latencies of some requests.
type latencies struct {
	asked, failed int
	p50, p99      time.Duration
}

func (l latencies) String() string {
	return fmt.Sprintf("p50 %s p99 %s of %d", l.p50.Round(10*time.Microsecond), l.p99.Round(10*time.Microsecond), l.asked)
}

// ask asks some gateways in turn.
func (w *wellBehaved) ask(t *testing.T, atMost time.Duration, urls ...string) []latencies {
	t.Helper()
	var mu sync.Mutex
	all, took := make([]latencies, len(urls)), make([][]time.Duration, len(urls))
	var asking sync.WaitGroup
	start := time.Now()
	for range 4 {
		asking.Go(func() {
			for n := 0; time.Since(start) < atMost; n++ {
				of := n % len(urls)
				a, err := send(t.Context(), w.client, urls[of], w.documents[n/len(urls)%len(w.documents)])
				mu.Lock()
				if all[of].asked++; err != nil || a.status != http.StatusOK || len(a.codes()) > 0 {
					all[of].failed++
				}
				took[of] = append(took[of], a.took)
				mu.Unlock()
				time.Sleep(time.Millisecond) // pauses, like a user who reads
			}
		})
	}
	asking.Wait()
	for i := range all {
		slices.Sort(took[i])
		all[i].p50, all[i].p99 = took[i][len(took[i])/2], took[i][len(took[i])*99/100]
	}
	return all
}

// peakMemory is the largest amount of memory that the program has used, in bytes.
func peakMemory(t *testing.T, g *kithtest.Gateway) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.PID()))
	if err != nil {
		t.Skip("no /proc to read the program's memory from")
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			must.OK(t, err)
			return kilobytes << 10
		}
	}
	t.Fatal("its status has no VmHWM")
	return 0
}
