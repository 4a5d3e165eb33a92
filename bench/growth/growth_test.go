package growth

import (
	"math"
	"strings"
	"testing"
)

// small is a plan with simple figures: 1,000 users become 2,000 in one month.
func small() Plan {
	return Plan{
		Figures{
			FollowingBytes: 100, FollowerBytes: 150, UserBytes: 500, PackedBytes: 10, PackedShare: 0.1, HotBytes: 100, CacheBytes: 400, CacheKeep: 60,
			FollowCPU: 1, ReplicateCPU: 1, ReadCPU: 1, GatewayCPU: 10, DrainPerSecond: 1000, MovePerSecond: 10,
		},
		Curve{
			Months: 1, Users: [2]float64{1000, 2000}, FollowsPerUser: [2]float64{10, 10},
			DailyShare: 0.5, RequestsPerDay: 86.4, ChangesPerDay: 8.64, Peak: 2, Zipf: 1, KeysPerRequest: 1,
		},
		Fleet{
			DiskBytes: 10e6, DiskShare: 0.5, MemoryBytes: 1e9, Cores: 2, GatewayCores: 2, CoreShare: 0.5, ShardsPerServer: 2,
			GatewayCache: 1e6, PoolPerShard: 20, MaxConnections: 39, MaxLoad: 0.5,
		},
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-3*math.Abs(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// The arithmetic by hand: 10,000 follows take 1.0 and 1.5 MB. The rest is 1,000 users × 500 bytes, and 10
// bytes for every tenth follow: 510,000 bytes. A server may hold 5 MB, so 3.01 MB need 0.602 servers, and a
// month later twice as much, 1.204. It doubles in a month of 30.417 days, so the server is full after ln(1
// / 0.602) / ln 2 = 0.7322 of a month. Then half of 20,000 rows move, at 10 a second for half of the time.
func TestFiguresWorkedOutByHand(t *testing.T) {
	months, err := Simulate(small())
	if err != nil || len(months) != 2 {
		t.Fatalf("%+v %v", months, err)
	}
	m := months[0]
	near(t, "following", m.FollowingBytes, 1e6)
	near(t, "follower", m.FollowerBytes, 1.5e6)
	near(t, "others", m.OtherBytes, 510_000)
	near(t, "split", m.SplitIn, 0.7322*30.4167)
	near(t, "rows", m.MoveRows, 10_000)
	near(t, "takes", m.MoveTakes, 2000.0/86_400)
	// 500 users a day make 1,000 / 86,400 a second at the peak: with 86.4 requests each, that is 1 a second.
	near(t, "requests", m.Requests, 1)
	near(t, "changes", m.Changes, 0.1)
	near(t, "replicated", m.Replicated, 0.1)
	if m.Gateways != 1 || m.Servers != 1 || m.Shards != 2 || m.Because != "disk" {
		t.Errorf("%+v", m)
	}
	// One gateway has 20 connections to each of two databases, which is one more than there should be.
	if m.Connections != 40 || !m.Proxy {
		t.Errorf("%v connections, proxy %v", m.Connections, m.Proxy)
	}
	if last := months[1]; last.Servers != 2 || last.Shards != 4 || last.Users != 2000 {
		t.Errorf("%+v", last)
	}
	p := small()
	p.Fleet.MaxConnections = 40
	if months, err = Simulate(p); err != nil || months[0].Proxy {
		t.Errorf("%+v %v", months, err)
	}
}

// The number of servers is that of the need which asks for the most.
func TestWhatServersAreNeededFor(t *testing.T) {
	for _, c := range []struct {
		because string
		change  func(*Plan)
		servers float64
	}{
		{"memory", func(p *Plan) { p.Fleet.MemoryBytes = 12_500 }, 4},                // for 500 daily users × 100 bytes
		{"replication", func(p *Plan) { p.Figures.DrainPerSecond = 0.02 }, 5},        // of 0.1 a second
		{"CPU", func(p *Plan) { p.Figures.FollowCPU = 29_980 }, 3},                   // 0.1 a second × 29.981 s, and 0.64 × 1 ms of reads, of 1 core
		{"disk", func(p *Plan) { p.Fleet.DiskBytes, p.Fleet.DiskShare = 1e6, 1 }, 4}, // 3.01 MB
	} {
		p := small()
		c.change(&p)
		months, err := Simulate(p)
		if err != nil || months[0].Servers != c.servers || months[0].Because != c.because {
			t.Errorf("%s: %+v %v", c.because, months[0], err)
		}
	}
	p := small()
	p.Curve.Users[1] = 1000
	if months, err := Simulate(p); err != nil || months[0].SplitIn != -1 || months[0].MoveRows != 0 {
		t.Errorf("what does not grow is split: %+v %v", months, err)
	}
}

// By hand: two users send 2 and 1 requests a second, and an entry is kept for a second. The first user is
// found 2 times of 3, the second 1 of 2. With weights 1 and 1/2 that is (2/3 + 1/4) / (3/2). With room for
// half an entry, the first user is there half of the time instead of two thirds, and is found for 3/4 of what it was.
func TestHits(t *testing.T) {
	p := Popularity{Users: 2, Shape: 1, PerSecond: 3}
	share, entries := p.Hits(1, 10)
	near(t, "hits", share, (2.0/3+1.0/4)/1.5)
	near(t, "entries", entries, 2.0/3+1.0/2)
	share, entries = p.Hits(1, 0.5)
	near(t, "hits of half an entry", share, 0.75*(2.0/3)/1.5)
	near(t, "half an entry", entries, 0.5)
	if share, entries = (Popularity{Users: 10, Shape: 1}).Hits(60, 5); share != 0 || entries != 0 {
		t.Errorf("of nothing that is asked for %v is found, %v kept", share, entries)
	}
}

// Adding up ranks in blocks makes no relevant difference.
func TestBlocksOfRanks(t *testing.T) {
	for _, shape := range []float64{0.6, 0.8, 1, 1.3} {
		p := Popularity{Users: 300_000, Shape: shape, PerSecond: 5000}
		total, found := 0.0, 0.0
		for rank := 1.0; rank <= p.Users; rank++ {
			total += math.Pow(rank, -shape)
		}
		for rank := 1.0; rank <= p.Users; rank++ {
			weight := math.Pow(rank, -shape)
			expected := p.PerSecond * 60 * weight / total
			found += weight / total * expected / (1 + expected)
		}
		share, _ := p.Hits(60, math.Inf(1))
		near(t, "hits", share, found)
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"months":                func(p *Plan) { p.Curve.Months = 0 },
		"months ":               func(p *Plan) { p.Curve.Months = 121 },
		"users":                 func(p *Plan) { p.Curve.Users[1] = 0 },
		"followingBytesAFollow": func(p *Plan) { p.Figures.FollowingBytes = math.NaN() },
		"diskBytes":             func(p *Plan) { p.Fleet.DiskBytes = 1e19 },
		"diskShare":             func(p *Plan) { p.Fleet.DiskShare = 1.1 },
		"packedShare":           func(p *Plan) { p.Figures.PackedShare = -1 },
	} {
		p := small()
		change(&p)
		if _, err := Simulate(p); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := small()
	p.Curve.Months, p.Curve.Users[1] = 120, 1e9
	if months, err := Simulate(p); err != nil || len(months) != 121 {
		t.Errorf("%d months: %v", len(months), err)
	}
}

func TestTable(t *testing.T) {
	months, err := Simulate(small())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	WriteTable(&out, months)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[2], "| 0 | 1.00 k | 10.0 k | 1.00 MB | 1.50 MB | 510 kB | 1 | 0 | 1 |") ||
		!strings.HasSuffix(lines[2], "| 1 | disk | 2 | 0 | 40, proxy | 22 days | 10.0 k | 0.6 h |") {
		t.Errorf("%s", out.String())
	}
}
