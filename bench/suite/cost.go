package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"kith/bench"
	"kith/bench/report"
)

// Cost is what a request has taken, beside what it costs by the limit.
type Cost struct {
	State   string  `json:"state"`
	Name    string  `json:"name"`
	Cost    float64 `json:"cost"`    // mean of the requests
	CPU     float64 `json:"cpu"`     // µs of the gateway
	Bytes   float64 `json:"bytes"`   // allocated
	Refused string  `json:"refused"` // the error of a request that was refused
	Query   string  `json:"query"`
}

// MicrosPerUnit is the gateway's CPU for each unit of the cost.
func (c Cost) MicrosPerUnit() float64 { return c.CPU / c.Cost }

// RunCost measures what each field takes, or random queries of any cost, on SQLite, whose work is the gateway's own: with warm caches and
// without caches, as c.States says. Only fields whose names contain a text are asked for; random queries have the default limit. It stops
// everything that it has started.
func RunCost(ctx context.Context, c Config, only string, random int) (all []Cost, err error) {
	c.Engines = []string{report.SQLite}
	r := &run{Config: c, machine: describeMachine()}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.openServers(ctx); err != nil {
		return nil, err
	}
	graph := bench.NewGraph(c.Graphs[0].Users, c.Seed)
	graph.Degree = max(1, c.Graphs[0].Edges/graph.Users)
	made, err := r.makeStore(ctx, report.SQLite, graph)
	if err == nil {
		err = r.addPosts(ctx, made.location, graph)
	}
	if err != nil {
		return nil, err
	}
	probes, err := bench.NewCostProbes(graph, c.Seed, []byte(r.secret))
	if random > 0 {
		probes, err = bench.RandomCostProbes(graph, c.Seed, []byte(r.secret), random)
	}
	if err != nil {
		return nil, err
	}
	probes = slices.DeleteFunc(probes, func(p bench.CostProbe) bool { return !strings.Contains(p.Name, only) })
	for _, state := range c.States {
		s := &subject{engine: report.SQLite, state: state, location: made.location}
		if random == 0 {
			s.env = []string{"KITH_MAX_COST=100000000", "KITH_FEDERATION=true"}
		}
		costs, err := r.costsOf(ctx, s, probes)
		if err != nil {
			return all, fmt.Errorf("%s: %w", state, err)
		}
		all = append(all, costs...)
	}
	return all, nil
}

func (r *run) costsOf(ctx context.Context, s *subject, probes []bench.CostProbe) (all []Cost, err error) {
	if s.program, err = r.start(ctx, s, s.location); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.program.Stop()) }()
	if err := loaded(ctx, s.program); err != nil {
		return nil, err
	}
	for _, p := range probes {
		one, err := measureCost(ctx, s.program, p, r.Duration)
		if err != nil {
			return all, fmt.Errorf("%s: %w", p.Name, err)
		}
		one.State = s.state
		all = append(all, one)
		r.Log("%s %s: cost %.0f, %.0f µs, %.0f kB, %.2f µs a unit %s", s.state, p.Name, one.Cost, one.CPU, one.Bytes/1e3, one.MicrosPerUnit(), one.Refused)
	}
	return all, nil
}

// leastCPU is how many seconds of CPU a measurement takes, at least, for its time: the counter is exact to 10 ms.
func leastCPU(d time.Duration) float64 { return min(max(5*d.Seconds(), 0.05), 0.2) }

// measureCost asks until a time is over, and until the gateway has used enough CPU. Each request is asked once before.
func measureCost(ctx context.Context, p *program, probe bench.CostProbe, atLeast time.Duration) (c Cost, err error) {
	c.Name, c.Query = probe.Name, probe.Requests[0].Operation
	total := 0.0
	for _, q := range probe.Requests {
		cost, refused, err := costOf(ctx, p.url, q)
		if err != nil || refused != "" {
			c.Refused, c.Cost = refused, cost
			return c, err
		}
		total += cost
	}
	c.Cost = total / float64(len(probe.Requests))
	enough := func(n int, used float64, since time.Time) bool {
		if len(probe.Requests) == 1 { // one of many; one that takes long is not judged by what else went on at its moment
			return n > 0 && used/float64(n) < 0.1 || n >= 10
		}
		return n > 0 && (atLeast == 0 || time.Since(since) >= atLeast && used >= leastCPU(atLeast))
	}
	cpu, allocated := metricsOf(ctx, p, &err)
	n, began, used, bytes := 0, time.Now(), 0.0, 0.0
	for rounds := 1; err == nil && !enough(n, used, began); rounds *= 2 { // reading the counters takes some ms
		for i := range rounds * len(probe.Requests) {
			if _, _, err = costOf(ctx, p.url, probe.Requests[i%len(probe.Requests)]); err != nil {
				return c, err
			}
			n++
		}
		nowCPU, nowAllocated := metricsOf(ctx, p, &err)
		used, bytes = nowCPU-cpu, nowAllocated-allocated
	}
	c.CPU, c.Bytes = used*1e6/float64(n), bytes/float64(n)
	return c, err
}

func metricsOf(ctx context.Context, p *program, failed *error) (cpu, allocated float64) {
	cpu, err := metric(ctx, p.admin, "process_cpu_seconds_total")
	allocated, errBytes := metric(ctx, p.admin, "go_memstats_alloc_bytes_total")
	*failed = errors.Join(*failed, err, errBytes)
	return cpu, allocated
}

// costOf asks, with what it costs by the limit.
func costOf(ctx context.Context, url string, q bench.AppRequest) (cost float64, refused string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(q.Body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+q.Token)
	request.Header.Set("Kith-Cost", "1")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", err
	}
	var answer struct {
		Errors []struct {
			Message    string
			Extensions struct {
				Code string
				Cost float64
			}
		}
		Extensions struct{ Cost struct{ Estimated float64 } }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, "", fmt.Errorf("status %d: %.300s: %w", response.StatusCode, text, err)
	}
	if len(answer.Errors) > 0 {
		if e := answer.Errors[0]; e.Extensions.Code == "QUERY_TOO_COSTLY" {
			return e.Extensions.Cost, e.Message, nil
		}
		return 0, "", fmt.Errorf("status %d: %.300s: %s", response.StatusCode, text, q.Operation)
	}
	return answer.Extensions.Cost.Estimated, "", nil
}
