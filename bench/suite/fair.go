package suite

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/bench"
	"kith/bench/report"
)

// Fair is how others are answered beside clients who send one kind of request as fast as they can.
type Fair struct {
	Name   string  `json:"name"`
	Cost   float64 `json:"cost"`   // of one such request
	Alone  float64 `json:"alone"`  // such requests a second, with nobody beside
	Beside float64 `json:"beside"` // with the others beside

	P50, P99             float64 `json:"-"` // ms: of the others
	SparedP50, SparedP99 float64 `json:"-"` // ms: of the same requests to another gateway on the same store, at the same time
	Slower50             float64 `json:"slower50"`
	Slower99             float64 `json:"slower99"`

	Memory [3]float64 `json:"memory"` // MB of the gateway: before, when the crowd has gone, and when it has less than a quarter more than before, or three durations later
}

const (
	// crowd is how many clients send requests of one kind, and others how many send ordinary ones.
	crowd, others = 16, 4
	// pause is what an ordinary client waits between two requests: its users read.
	pause = 5 * time.Millisecond
	// passing is the cost up to which a query needs no turn among the expensive ones.
	passing = 1000
)

// RunFair measures some fields of [bench.DearFields] on SQLite, as [RunDear] asks for them, each under as many aliases as pass without a turn, and as
// many as the default limit allows, and the ten of some random legal queries that take most: 16 clients of one user, or of as many users as are to
// send, ask for it, one after the other, while four clients send ordinary requests of anybody, to their gateway and to another one on a copy of the
// store.
func RunFair(ctx context.Context, c Config, only *regexp.Regexp, random, senders int) (all []Fair, err error) {
	err = onCostGraph(ctx, c, func(r *costRun) error {
		all, err = r.fair(ctx, only, random, senders)
		return err
	})
	return all, err
}

func (r *costRun) fair(ctx context.Context, only *regexp.Regexp, random, senders int) (all []Fair, err error) {
	spared, err := r.copyStore(r.location) // two gateways on one SQLite store would keep nothing in memory
	if err != nil {
		return nil, err
	}
	var gateways [2]*program // the first is asked by the crowd
	for i, location := range []string{r.location, spared} {
		if gateways[i], err = r.gateway(ctx, report.Warm, location, nil); gateways[i] != nil {
			defer func() { err = errors.Join(err, gateways[i].Stop()) }()
		}
		if err != nil {
			return nil, err
		}
	}
	probes, err := bench.DearProbes(r.graph, r.viewer, r.Seed, []byte(r.secret))
	if err != nil {
		return nil, err
	}
	plain, err := bench.NewCostProbes(r.graph, r.Seed, []byte(r.secret))
	if err != nil {
		return nil, err
	}
	var ordinary []bench.AppRequest
	var tokens []string // of others
	for _, p := range plain {
		if slices.Contains([]string{"User.handle", "User.followings", "User.friends", "Relationship.status"}, p.Name) {
			ordinary = append(ordinary, p.Requests...)
		} else {
			tokens = append(tokens, p.Requests[0].Token)
		}
	}
	texts, err := bench.NewTexts(r.graph, r.Seed, []byte(r.secret))
	if err != nil {
		return nil, err
	}
	probes = append(probes, texts)
	probes = slices.DeleteFunc(probes, func(p bench.DearProbe) bool { return !only.MatchString(p.Name) })
	if random > 0 {
		queries, err := bench.RandomCostProbes(r.graph, r.viewer, r.Seed, []byte(r.secret), random)
		if err != nil {
			return nil, err
		}
		worst, err := r.worst(ctx, gateways[0], queries)
		if err != nil {
			return nil, err
		}
		probes = append(probes, worst...)
	}
	for _, p := range probes {
		for _, most := range []float64{passing, defaultMaxCost} {
			one, err := r.fairness(ctx, gateways, p, most, ordinary, tokens[:min(senders, len(tokens))])
			if err != nil {
				return all, fmt.Errorf("%s: %w", p.Name, err)
			}
			if one.Cost > 0 {
				all = append(all, one)
				r.Log("cost %.0f: p50 %.1f, p99 %.1f times the spared gateway's (%.2f, %.2f ms), %.0f of %.0f a second, %.0f MB: %s", one.Cost, one.Slower50, one.Slower99, one.SparedP50, one.SparedP99, one.Beside, one.Alone, one.Memory, one.Name)
			}
		}
	}
	return all, nil
}

// worst are the ten queries that take a gateway the most CPU.
func (r *run) worst(ctx context.Context, p *program, queries []bench.CostProbe) (ten []bench.DearProbe, err error) {
	var took []Cost
	asked := map[string]bench.AppRequest{}
	for _, q := range queries {
		if strings.Contains(q.Requests[0].Operation, "moderationLog") { // others have no token for it
			continue
		}
		one, err := measureCost(ctx, p, q, time.Millisecond)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.Name, err)
		}
		if one.Refused == "" {
			took, asked[q.Name] = append(took, one), q.Requests[0]
		}
	}
	slices.SortFunc(took, func(a, b Cost) int { return cmp.Compare(b.CPU, a.CPU) })
	for _, one := range took[:min(10, len(took))] {
		ten = append(ten, bench.DearProbe{Name: one.Name, Most: 1, Request: func(int) bench.AppRequest { return asked[one.Name] }})
	}
	return ten, nil
}

// fairness measures one kind of request, with as many aliases as may cost so much. Its cost is 0 if one alias costs more.
func (r *run) fairness(ctx context.Context, gateways [2]*program, probe bench.DearProbe, most float64, ordinary []bench.AppRequest, senders []string) (f Fair, err error) {
	aliases, cost, refused := probe.Most, 0.0, ""
	for ; aliases > 0; aliases = min(aliases-1, int(float64(aliases)*most/max(cost, 1))) {
		if cost, refused, err = costOf(ctx, gateways[0].url, probe.Request(aliases)); err != nil || refused == "" && cost <= most {
			break
		}
	}
	if err != nil || aliases == 0 {
		return f, err
	}
	f.Name, f.Cost = probe.Name, cost
	requests := make([]bench.AppRequest, 64)
	if probe.New {
		requests = make([]bench.AppRequest, 16384)
	}
	for i := range requests {
		if requests[i] = probe.Request(aliases); len(senders) > 1 {
			requests[i].Token = senders[i%len(senders)]
		}
	}
	memory := func() float64 { return metricOf(ctx, gateways[0], "process_resident_memory_bytes", &err) / 1e6 }
	f.Memory[0] = memory()
	beside := func(ask bool) (rate float64, times [2][]time.Duration, err error) {
		end := time.Now().Add(r.Duration)
		g, ctx := errgroup.WithContext(ctx)
		var asked [crowd]int
		for i := range crowd {
			g.Go(func() error {
				for n := i; time.Now().Before(end); n += crowd {
					busy, err := answered(ctx, gateways[0].url, requests[n%len(requests)])
					if err != nil {
						return err
					}
					if !busy {
						asked[i]++
					}
				}
				return nil
			})
		}
		var took [2][others][]time.Duration
		for i := 0; i < others && ask; i++ {
			g.Go(func() error {
				for n := i; time.Now().Before(end); n++ {
					at, began := n%2, time.Now()
					busy, err := answered(ctx, gateways[at].url, ordinary[(n/2*7+i)%len(ordinary)])
					if busy {
						err = errors.New("an ordinary request is refused")
					}
					if err != nil {
						return err
					}
					took[at][i] = append(took[at][i], time.Since(began))
					time.Sleep(pause)
				}
				return nil
			})
		}
		err = g.Wait()
		for at := range times {
			times[at] = slices.Concat(took[at][:]...)
			slices.Sort(times[at])
		}
		for _, n := range asked {
			rate += float64(n) / r.Duration.Seconds()
		}
		return rate, times, err
	}
	var times [2][]time.Duration
	if f.Alone, _, err = beside(false); err == nil {
		f.Beside, times, err = beside(true)
	}
	for end := time.Now().Add(3 * r.Duration); err == nil; time.Sleep(time.Second) { // asking takes memory, too
		f.Memory[2] = memory()
		f.Memory[1] = cmp.Or(f.Memory[1], f.Memory[2])
		if f.Memory[2] < 1.25*f.Memory[0] || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return f, err
	}
	at := func(of []time.Duration, p float64) float64 { return bench.Latencies(of).Percentile(p).Seconds() * 1e3 }
	f.P50, f.P99, f.SparedP50, f.SparedP99 = at(times[0], 50), at(times[0], 99), at(times[1], 50), at(times[1], 99)
	f.Slower50, f.Slower99 = f.P50/f.SparedP50, f.P99/f.SparedP99
	return f, nil
}

// answered asks a gateway. Busy says that it is to be asked again later.
func answered(ctx context.Context, url string, q bench.AppRequest) (busy bool, err error) {
	response, err := post(ctx, url, q)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	body := bufio.NewReader(response.Body)
	begin, _ := body.Peek(200) // it may be shorter
	if busy = response.StatusCode == http.StatusServiceUnavailable; !busy && bytes.HasPrefix(begin, []byte(`{"errors"`)) {
		return false, fmt.Errorf("status %d: %s", response.StatusCode, begin)
	}
	_, err = io.Copy(io.Discard, body)
	return busy, err
}
