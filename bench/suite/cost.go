package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kith/bench"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sqlstore"
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
	r, graph, viewer, location, err := openCost(ctx, c)
	defer func() { err = errors.Join(err, r.close()) }()
	if err != nil {
		return nil, err
	}
	probes, err := bench.NewCostProbes(graph, c.Seed, []byte(r.secret))
	if random > 0 {
		probes, err = bench.RandomCostProbes(graph, viewer, c.Seed, []byte(r.secret), random)
	}
	if err != nil {
		return nil, err
	}
	probes = slices.DeleteFunc(probes, func(p bench.CostProbe) bool { return !strings.Contains(p.Name, only) })
	kinds, err := r.withKinds()
	if err != nil {
		return nil, err
	}
	for _, state := range c.States {
		s := &subject{engine: report.SQLite, state: state, location: location, env: []string{kinds, "KITH_FEDERATION=true", oneProcessor}}
		if random == 0 {
			s.env = append(s.env, "KITH_MAX_COST=100000000")
		}
		costs, err := r.costsOf(ctx, s, probes)
		if err != nil {
			return all, fmt.Errorf("%s: %w", state, err)
		}
		all = append(all, costs...)
	}
	return all, nil
}

// openCost makes a store of users whose names have words, of whom one follows half, up to 5,000: the viewer.
func openCost(ctx context.Context, c Config) (r *run, graph *bench.Graph, viewer storage.UserID, location string, err error) {
	c.Engines = []string{report.SQLite}
	r = &run{Config: c, machine: describeMachine()}
	if err := r.openServers(ctx); err != nil {
		return r, nil, 0, "", err
	}
	graph = bench.NewGraph(c.Graphs[0].Users, c.Seed)
	graph.Degree, graph.Words = max(1, c.Graphs[0].Edges/graph.Users), true
	made, err := r.makeStore(ctx, report.SQLite, graph)
	if err == nil {
		err = r.addPosts(ctx, made.location, graph)
	}
	if err != nil {
		return r, nil, 0, "", err
	}
	readers := bench.NewFeedGraph(graph, time.Now(), []int{min(5000, graph.Users/2)})
	viewer = readers.Groups[0].IDs[0]
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: made.location})
	if err != nil {
		return r, nil, 0, "", err
	}
	err = createUsers(ctx, store, graph, graph.Users+1, graph.Users+1)
	follows := slices.DeleteFunc(slices.Collect(readers.ReaderEdges()), func(e storage.Edge) bool { return e.From != viewer })
	if err == nil {
		_, err = importEdges(ctx, store, func(yield func(storage.Edge) bool) {
			for _, e := range follows {
				if !yield(e) || !yield(storage.Edge{From: e.To, To: viewer, Type: e.Type, UpdateTime: e.UpdateTime}) {
					return
				}
			}
		})
	}
	if err == nil {
		err = relate(ctx, store, graph, viewer, follows)
	}
	if err = errors.Join(err, store.Close()); err == nil {
		err = r.analyze(ctx, made.location)
	}
	return r, graph, viewer, made.location, err
}

// costKinds declares the kind of relation that [bench.DearFields] ask for.
const costKinds = "relations:\n  admires:\n    number: 100\n    seen: everyone\n"

// withKinds is the setting that declares it.
func (r *run) withKinds() (setting string, err error) {
	file := r.path("kinds.yaml")
	return "KITH_RELATIONS=" + file, os.WriteFile(file, []byte(costKinds), 0o600)
}

// relate lets the viewer admire whom it follows, and have them on a list, and lets them admire others. Some are suspended for a moment.
func relate(ctx context.Context, store *sqlstore.Store, graph *bench.Graph, viewer storage.UserID, follows []storage.Edge) error {
	list, _, err := store.CreateList(ctx, storage.UserList{ListID: storage.ListID{Owner: viewer, Number: 1}, Name: "many"})
	if err != nil {
		return err
	}
	var all []storage.Edge
	for i, e := range follows {
		all = append(all, storage.Pair{From: e.From, To: e.To, Item: 100}.Edge(storage.Related, e.UpdateTime), storage.Pair{From: e.From, To: e.To, Item: list.Kind().Number}.Edge(storage.Related, e.UpdateTime))
		for k := range 6 {
			all = append(all, storage.Pair{From: e.To, To: graph.ID(1 + (i+17*k)%bench.EdgesTo), Item: 100}.Edge(storage.Related, e.UpdateTime))
		}
	}
	for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
		for some := range slices.Chunk(all, 3000) {
			for _, r := range store.Apply(ctx, side, some, storage.IfNewer) {
				if r.Err != nil {
					return r.Err
				}
			}
		}
	}
	for _, e := range follows[:min(20, len(follows))] {
		for _, action := range []storage.ModerationAction{storage.Suspended, storage.Reinstated} {
			if _, _, err := store.Moderate(ctx, storage.ModerationEntry{Owner: e.To, User: e.To, Action: action, By: "operator", Reason: "spam", Until: storage.Forever}); err != nil {
				return err
			}
		}
	}
	return nil
}

// One processor: with two, the collector of garbage marks on what is idle, which is no work of the request's.
const oneProcessor = "GOMAXPROCS=1"

// RunDear measures some fields of [bench.DearFields], each under as many aliases as the default limit allows: a
// query of any one field takes no more. cold has no caches at all; warm has been asked the same fields with other arguments before.
func RunDear(ctx context.Context, c Config, only *regexp.Regexp) (all []Cost, err error) {
	r, graph, viewer, location, err := openCost(ctx, c)
	defer func() { err = errors.Join(err, r.close()) }()
	if err != nil {
		return nil, err
	}
	kinds, err := r.withKinds()
	if err != nil {
		return nil, err
	}
	for _, state := range c.States {
		s := &subject{engine: report.SQLite, state: state, location: location, env: []string{kinds, "KITH_FEDERATION=true", "KITH_STATEMENT_TIMEOUT=60s", "KITH_REQUEST_TIMEOUT=60s", oneProcessor}}
		if s.program, err = r.start(ctx, s, s.location); err != nil {
			return all, err
		}
		probes, err := bench.DearProbes(graph, viewer, c.Seed, []byte(r.secret))
		for i := 0; i < len(probes) && err == nil; i++ {
			var one Cost
			if p := probes[i]; only.MatchString(p.Name) {
				if one, err = measureDear(ctx, s.program, p); err == nil {
					one.State = s.state
					all = append(all, one)
					r.Log("%s %s: cost %.0f, %.0f ms, %.0f MB %s", s.state, p.Name, one.Cost, one.CPU/1e3, one.Bytes/1e6, one.Refused)
				}
			}
		}
		if err = errors.Join(err, s.program.Stop()); err != nil {
			return all, fmt.Errorf("%s: %w", state, err)
		}
	}
	return all, nil
}

// defaultMaxCost is that of --max-cost.
const defaultMaxCost = 100_000

// measureDear asks for as many aliases as the limit allows.
func measureDear(ctx context.Context, p *program, probe bench.DearProbe) (c Cost, err error) {
	for aliases := probe.Most; aliases > 0; aliases = min(aliases-1, int(float64(aliases)*defaultMaxCost/max(c.Cost, 1))) {
		two := []bench.AppRequest{probe.Request(aliases), probe.Request(aliases)}
		c, err = measureCost(ctx, p, bench.CostProbe{Name: probe.Name, Requests: two}, time.Millisecond)
		if c.Refused == "" {
			break
		}
	}
	return c, err
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

// leastCPU is how many seconds of CPU a measurement takes, at least, for its time: more if the counter is exact to 10 ms only.
func leastCPU(d time.Duration, exact bool) float64 {
	if exact {
		return min(d.Seconds(), 0.2)
	}
	return min(max(5*d.Seconds(), 0.05), 0.2)
}

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
	enough := func(n int, used float64, since time.Time, exact bool) bool {
		if len(probe.Requests) == 1 { // one of many; one that takes long is not judged by what else went on at its moment
			return n > 0 && used/float64(n) < 0.1 || n >= 10
		}
		return n > 0 && (atLeast == 0 || time.Since(since) >= atLeast && used >= leastCPU(atLeast, exact))
	}
	allocated := metricOf(ctx, p, "go_memstats_alloc_bytes_total", &err)
	cpu, exact := p.cpu(ctx, &err)
	n, began, used := 0, time.Now(), 0.0
	for rounds := 1; err == nil && !enough(n, used, began, exact); rounds *= 2 { // the gateway's own counter takes some ms to read
		for i := range rounds * len(probe.Requests) {
			if _, _, err = costOf(ctx, p.url, probe.Requests[i%len(probe.Requests)]); err != nil {
				return c, err
			}
			n++
		}
		now, _ := p.cpu(ctx, &err)
		used = now - cpu
	}
	c.CPU, c.Bytes = used*1e6/float64(n), (metricOf(ctx, p, "go_memstats_alloc_bytes_total", &err)-allocated)/float64(n)
	return c, err
}

// cpu is how many seconds of CPU a gateway has used: exactly, as Linux's scheduler counts them for each thread, or else by its own counter.
func (p *program) cpu(ctx context.Context, failed *error) (seconds float64, exact bool) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID()))
	for _, thread := range threads {
		var ns float64
		if text, err := os.ReadFile(thread); err == nil { // else it has ended
			_, err := fmt.Sscan(string(text), &ns)
			*failed = errors.Join(*failed, err)
		}
		seconds += ns / 1e9
	}
	if len(threads) > 0 {
		return seconds, true
	}
	return metricOf(ctx, p, "process_cpu_seconds_total", failed), false
}

func metricOf(ctx context.Context, p *program, name string, failed *error) float64 {
	value, err := metric(ctx, p.admin, name)
	*failed = errors.Join(*failed, err)
	return value
}

// costOf asks, with what it costs by the limit.
func costOf(ctx context.Context, url string, q bench.AppRequest) (cost float64, refused string, err error) {
	response, err := post(ctx, url, q)
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
