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
// without caches, as c.States says. Only fields whose names match are asked for; random queries have the default limit.
func RunCost(ctx context.Context, c Config, only *regexp.Regexp, random int) ([]Cost, error) {
	var env []string
	if random == 0 {
		env = append(env, "KITH_MAX_COST=100000000")
	}
	return eachCost(ctx, c, env, func(r *costRun) (all []costProbe, err error) {
		probes, err := bench.NewCostProbes(r.graph, c.Seed, []byte(r.secret))
		if random > 0 {
			probes, err = bench.RandomCostProbes(r.graph, r.viewer, c.Seed, []byte(r.secret), random)
		}
		for _, p := range probes {
			if only.MatchString(p.Name) {
				all = append(all, costProbe{p.Name, func(of *program) (Cost, error) { return measureCost(ctx, of, p, c.Duration) }})
			}
		}
		return all, err
	})
}

// RunDear measures some fields of [bench.DearFields], each under as many aliases as the default limit allows: a
// query of any one field takes no more. cold has no caches at all; warm has been asked the same fields with other arguments before.
func RunDear(ctx context.Context, c Config, only *regexp.Regexp) ([]Cost, error) {
	return eachCost(ctx, c, []string{"KITH_STATEMENT_TIMEOUT=60s", "KITH_REQUEST_TIMEOUT=60s"}, func(r *costRun) (all []costProbe, err error) {
		probes, err := bench.DearProbes(r.graph, r.viewer, c.Seed, []byte(r.secret))
		for _, p := range probes {
			if only.MatchString(p.Name) {
				all = append(all, costProbe{p.Name, func(of *program) (Cost, error) { return measureDear(ctx, of, p) }})
			}
		}
		return all, err
	})
}

// costProbe measures what one kind of request takes.
type costProbe struct {
	name    string
	measure func(*program) (Cost, error)
}

// eachCost measures some requests in each state.
func eachCost(ctx context.Context, c Config, env []string, probes func(*costRun) ([]costProbe, error)) (all []Cost, err error) {
	err = onCostGraph(ctx, c, func(r *costRun) error {
		for _, state := range c.States {
			probes, err := probes(r)
			if err != nil {
				return err
			}
			// One processor: with two, the collector of garbage marks on what is idle, which is no work of the request's.
			gateway, err := r.gateway(ctx, state, r.location, append(env, "GOMAXPROCS=1"))
			for i := 0; i < len(probes) && err == nil; i++ {
				var one Cost
				if one, err = probes[i].measure(gateway); err == nil {
					one.State = state
					all = append(all, one)
					r.Log("%s %s: cost %.0f, %.0f µs, %.0f kB, %.2f µs a unit %s", state, one.Name, one.Cost, one.CPU, one.Bytes/1e3, one.MicrosPerUnit(), one.Refused)
				} else {
					err = fmt.Errorf("%s: %w", probes[i].name, err)
				}
			}
			if gateway != nil {
				err = errors.Join(err, gateway.Stop())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", state, err)
			}
		}
		return nil
	})
	return all, err
}

// costRun is a run on a store of users whose names have words, of whom one follows half, up to 5,000: the viewer.
type costRun struct {
	*run
	graph    *bench.Graph
	viewer   storage.UserID
	location string
}

func onCostGraph(ctx context.Context, c Config, measure func(*costRun) error) error {
	c.Engines = []string{report.SQLite}
	return within(ctx, c, func(on *run) error {
		graph := bench.NewGraph(c.Users, c.Seed)
		graph.Degree, graph.Words = c.Follows, true
		viewer, follows := graph.Reader(min(5000, graph.Users/2))
		r := &costRun{run: on, graph: graph, viewer: viewer}
		var err error
		if r.location, _, err = r.makeStore(ctx, report.SQLite, graph); err != nil {
			return err
		}
		if err := r.addPosts(ctx, r.location, graph); err != nil {
			return err
		}
		store, err := sqlstore.Open(ctx, sqlstore.Config{Location: r.location})
		if err != nil {
			return err
		}
		var both []storage.Edge
		for _, e := range follows {
			both = append(both, e, storage.Edge{From: e.To, To: e.From, Type: e.Type, UpdateTime: e.UpdateTime})
		}
		err = createUsers(ctx, store, graph, graph.Users+1, graph.Users+1)
		if err == nil {
			_, err = importEdges(ctx, store, slices.Values(both))
		}
		if err == nil {
			err = relate(ctx, store, graph, viewer, follows)
		}
		if err = errors.Join(err, store.Close(), os.WriteFile(r.path("kinds.yaml"), []byte(costKinds), 0o600)); err != nil {
			return err
		}
		return measure(r)
	})
}

// costKinds declares the kind of relation that [bench.DearFields] ask for.
const costKinds = "relations:\n  admires:\n    number: 100\n    seen: everyone\n"

// gateway starts a gateway that knows them, and has the recent posts in memory.
func (r *costRun) gateway(ctx context.Context, state, location string, env []string) (*program, error) {
	s := &subject{engine: report.SQLite, state: state, env: append(env, "KITH_RELATIONS="+r.path("kinds.yaml"), "KITH_FEDERATION=true")}
	p, err := r.start(ctx, s, location)
	if err == nil {
		err = loaded(ctx, p)
	}
	return p, err
}

// relate lets the viewer admire whom it follows, and have them on a list, and lets them admire others. Some are suspended for a moment.
func relate(ctx context.Context, store *sqlstore.Store, graph *bench.Graph, viewer storage.UserID, follows []storage.Edge) error {
	list, _, err := store.CreateList(ctx, storage.UserList{ListID: storage.ListID{Owner: viewer, Number: 1}, Name: "many"})
	if err != nil {
		return err
	}
	var all []storage.Edge
	for i, e := range follows {
		all = append(all, storage.Pair{From: e.From, To: e.To, Item: 100}.Edge(storage.Related, e.UpdateTime), storage.Pair{From: e.From, To: e.To, Item: list.Kind()}.Edge(storage.Related, e.UpdateTime))
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
		return n > 0 && (atLeast == 0 || time.Since(since) >= atLeast && used >= min(atLeast.Seconds(), 0.2))
	}
	allocated := metricOf(ctx, p, "go_memstats_alloc_bytes_total", &err)
	cpu := p.cpu(ctx, &err)
	n, began, used := 0, time.Now(), 0.0
	for rounds := 1; err == nil && !enough(n, used, began); rounds *= 2 { // the gateway's own counter takes some ms to read
		for i := range rounds * len(probe.Requests) {
			if _, _, err = costOf(ctx, p.url, probe.Requests[i%len(probe.Requests)]); err != nil {
				return c, err
			}
			n++
		}
		used = p.cpu(ctx, &err) - cpu
	}
	c.CPU, c.Bytes = used*1e6/float64(n), (metricOf(ctx, p, "go_memstats_alloc_bytes_total", &err)-allocated)/float64(n)
	return c, err
}

// cpu is how many seconds of CPU a gateway has used: exactly, as Linux's scheduler counts them for each thread, or else by its own counter.
func (p *program) cpu(ctx context.Context, failed *error) (seconds float64) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID()))
	for _, thread := range threads {
		var ns float64
		if text, err := os.ReadFile(thread); err == nil { // else it has ended
			_, err := fmt.Sscan(string(text), &ns)
			*failed = errors.Join(*failed, err)
		}
		seconds += ns / 1e9
	}
	if len(threads) == 0 {
		seconds = metricOf(ctx, p, "process_cpu_seconds_total", failed)
	}
	return seconds
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
