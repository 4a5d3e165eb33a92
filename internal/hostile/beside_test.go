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

	"kith/internal/hostile"
	"kith/internal/kithtest"
)

// Eight connections send hostile requests one after another, for a minute with
// KITH_TEST_LONG=1. Beside them somebody who behaves well is answered as before, but for
// three times the time, and the gateway stays below 1 GB.
func TestBesideHostileRequests(t *testing.T) {
	attack, quiet := 15*time.Second, 5*time.Second
	if os.Getenv("KITH_TEST_LONG") == "1" {
		attack, quiet = time.Minute, 15*time.Second
	}
	g := kithtest.Start(t, kithtest.Args("--demo"))
	well := &wellBehaved{client: client(t), url: g.URL, documents: ordinary}
	well.ask(t, 2*time.Second) // until the caches are warm
	before := well.ask(t, quiet)

	attackers := launchAttackers(t, g.URL)
	during := well.ask(t, attack)
	sent, faults := attackers.end(t)
	after := well.ask(t, quiet)

	peak := peakMemory(t, g)
	t.Logf("quiet %s, then %s; beside %d hostile requests %s; %d MB at most", before, after, sent, during, peak>>20)
	if faults > 0 {
		t.Errorf("%d hostile requests found a fault of the server", faults)
	}
	if peak > 1<<30 {
		t.Errorf("the gateway took %d MB", peak>>20)
	}
	if limit := 3 * max(before.p99, after.p99); during.p99 > limit {
		t.Errorf("beside them the p99 is %s, quiet %s and %s", during.p99, before.p99, after.p99)
	}
	if during.failed > 0 {
		t.Errorf("%d of %d ordinary requests were not answered", during.failed, during.asked)
	}
}

// attackers are a process of their own, so that what they do besides sending slows nobody
// down but by the processors that they take.
type attackers struct {
	*exec.Cmd
	output *bytes.Buffer
	stop   io.Closer
}

// ofAttackers is the variable that makes this program one.
const ofAttackers = "KITH_HOSTILE_URL"

func launchAttackers(t *testing.T, url string) *attackers {
	t.Helper()
	a := &attackers{exec.Command(os.Args[0], "-test.run=^TestAttackers$", "-test.v"), &bytes.Buffer{}, nil}
	a.Env = append(os.Environ(), ofAttackers+"="+url)
	a.Stdout, a.Stderr = a.output, a.output
	stop, err := a.StdinPipe() // which ends with this process, too
	if err == nil {
		err = a.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	a.stop = stop
	return a
}

// end stops them, and returns how many requests they sent and how many of those found a fault.
func (a *attackers) end(t *testing.T) (sent, faults int) {
	t.Helper()
	_ = a.stop.Close()
	err := a.Wait()
	for line := range strings.Lines(a.output.String()) {
		if n, _ := fmt.Sscanf(line, "sent %d faults %d", &sent, &faults); n == 2 {
			return sent, faults
		}
	}
	t.Fatalf("the attackers told nothing: %v\n%s", err, a.output)
	return 0, 0
}

// TestAttackers is the process of the attackers: eight connections until its input ends.
func TestAttackers(t *testing.T) {
	url := os.Getenv(ofAttackers)
	if url == "" {
		t.Skip("it is started by TestBesideHostileRequests")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var sent, faults atomic.Int64
	var sending sync.WaitGroup
	all := hostile.Documents()
	for i := range 8 {
		c := client(t)
		sending.Go(func() {
			for n := i * len(all) / 8; ctx.Err() == nil; n++ {
				turn := n % (len(all) + len(hostile.Sockets))
				if turn >= len(all) {
					attack, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					hostile.Sockets[turn-len(all)].Run(attack, "ws"+strings.TrimPrefix(url, "http")+"/graphql", "")
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

// wellBehaved asks what front ends ask, on four connections.
type wellBehaved struct {
	client    *http.Client
	url       string
	documents []hostile.Document
}

var ordinary = []hostile.Document{
	{Body: `{"query": "{ user(id: 7) { name followingCount followerCount } }"}`},
	{Body: `{"query": "{ user(id: 9) { followings { nodes { id name } } } }"}`},
	{Body: `{"query": "{ user(id: 3) { commonFollowings(with: 5) { totalCount nodes { name } } } }"}`},
	{Body: `{"query": "{ users(ids: [1, 2, 3, 4, 5, 6, 7, 8]) { name relationship(to: 9) { status } } }"}`},
	{Body: `{"query": "{ userByHandle(handle: \"maya_okafor\") { id friends(first: 5) { nodes { name } } } }"}`},
}

// latencies are those of some requests.
type latencies struct {
	asked, failed int
	p50, p99      time.Duration
}

func (l latencies) String() string {
	return fmt.Sprintf("p50 %s p99 %s of %d", l.p50.Round(10*time.Microsecond), l.p99.Round(10*time.Microsecond), l.asked)
}

func (w *wellBehaved) ask(t *testing.T, atMost time.Duration) latencies {
	t.Helper()
	var mu sync.Mutex
	var l latencies
	var took []time.Duration
	var asking sync.WaitGroup
	start := time.Now()
	for range 4 {
		asking.Go(func() {
			for n := 0; time.Since(start) < atMost; n++ {
				a, err := send(t.Context(), w.client, w.url, w.documents[n%len(w.documents)])
				mu.Lock()
				if l.asked++; err != nil || a.status != http.StatusOK || len(a.codes()) > 0 {
					l.failed++
				}
				took = append(took, a.took)
				mu.Unlock()
				time.Sleep(time.Millisecond) // as somebody who reads
			}
		})
	}
	asking.Wait()
	slices.Sort(took)
	l.p50, l.p99 = took[len(took)/2], took[len(took)*99/100]
	return l
}

// peakMemory is the most that the program has held at a time, in bytes.
func peakMemory(t *testing.T, g *kithtest.Gateway) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.PID()))
	if err != nil {
		t.Skip("no /proc to read the program's memory from")
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("its status tells no VmHWM")
	return 0
}
