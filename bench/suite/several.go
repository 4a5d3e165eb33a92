package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kith/accounts/identity"
	"kith/bench"
	"kith/bench/report"
)

// SeveralConfig says what to measure of several gateways on one store. States and Questions of the Config are not used: the load is the mixed
// one.
type SeveralConfig struct {
	Config
	Gateways   int
	Redundancy string
	CacheBytes string        // of each gateway; empty: its default
	Late       time.Duration // after what time at most each gateway shows what was written through another
}

// RunSeveral measures deployments of several gateways, with Redis as a cache, with Redis for events only, and without a Redis, in turn: all
// gateways are asked, one is killed and started again while the others are asked, and all are asked again. At the end, it measures after
// what time another gateway shows a write. One gateway is asked only, to compare.
func RunSeveral(ctx context.Context, c SeveralConfig) (size report.Size, machine report.Machine, err error) {
	err = within(ctx, c.Config, func(on *run) (err error) {
		machine = on.machine
		r := &severalRun{what: c, run: on, graph: c.mixedGraph()}
		defer func() {
			for _, d := range r.deployments {
				err = errors.Join(err, stopAll(d.gateways))
			}
		}()
		return r.measureDeployments(ctx, &size)
	})
	return size, machine, err
}

type severalRun struct {
	*run
	what        SeveralConfig
	graph       *bench.Graph
	deployments []*deployment
	loads       uint64 // so far: each has arguments of its own
}

// deployment is some gateways on one store.
type deployment struct {
	state    string // what the report calls it
	location string
	mix      *bench.Mix
	gateways []*subject
}

func (r *severalRun) measureDeployments(ctx context.Context, into *report.Size) error {
	into.MixedUsers, into.Sonyflake = r.graph.Users, r.Sonyflake
	for _, state := range []string{report.Shared, report.EventsOnly, report.NoRedis} {
		edges, err := r.deploy(ctx, state)
		if err != nil {
			return err
		}
		into.MixedEdges = edges
	}
	for round := range r.Rounds {
		for _, d := range r.deployments {
			if err := r.askAround(ctx, d, round+1, into); err != nil {
				return fmt.Errorf("%s: %w", d.state, err)
			}
		}
	}
	for _, d := range r.deployments {
		if len(d.gateways) == 1 {
			break
		}
		if err := r.seenByOthers(ctx, d, into); err != nil {
			return fmt.Errorf("%s: %w", d.state, err)
		}
	}
	return nil
}

// seenByOthers renames users through the first gateway, while all are asked, and reads them through the last until it shows another name.
func (r *severalRun) seenByOthers(ctx context.Context, d *deployment, into *report.Size) error {
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(r.secret))})
	if err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	var load errgroup.Group
	r.CheckEvery = bench.Unchecked // the load does not know of these names
	load.Go(func() error { _, _ = r.askAll(asking, d, d.gateways, time.Hour); return nil })
	defer func() { stop(); _ = load.Wait() }()
	here, there := d.gateways[0].program.url, d.gateways[len(d.gateways)-1].program.url
	took := make([]time.Duration, min(200, 20+int(r.Duration/(10*time.Millisecond)))) // fewer in a short run
	for i := range took {
		id := r.graph.ID(1 + i)
		token, _, err := issuer.Issue(id, 0)
		if err != nil {
			return err
		}
		name := fmt.Sprint("seen ", d.state, i)
		ask := func(url, query string) ([]byte, error) {
			body, _ := json.Marshal(map[string]string{"query": query})
			text, _, err := askOnce(ctx, url, bench.AppRequest{Body: body, Token: token})
			return text, err
		}
		read := fmt.Sprintf(`{ user(by: {id: "%d"}) { name } }`, id)
		before, err := ask(there, read) // it is in memory then
		if err != nil {
			return err
		}
		if _, err := ask(here, fmt.Sprintf(`mutation { updateProfile(name: %q) { viewer { user { id } } } }`, name)); err != nil {
			return err
		}
		written := time.Now()
		for text := before; bytes.Equal(text, before); { // the load may have renamed the user, too
			if text, err = ask(there, read); err == nil && time.Since(written) > time.Minute {
				err = fmt.Errorf("after a minute another gateway answers %s", text)
			}
			if err != nil {
				return err
			}
		}
		took[i] = time.Since(written)
	}
	slices.Sort(took)
	at := func(percent int) float64 { return took[(len(took)-1)*percent/100].Seconds() * 1e3 }
	cell := report.Cell{Engine: report.MariaDBRedis, State: d.state, Question: "seen by others", Figures: report.Figures{P50: at(50), P99: at(99), Max: at(100), Requests: len(took)}}
	into.Cells = append(into.Cells, cell)
	r.Log("%s: another gateway shows a write after %.1f ms, p99 %.1f ms, at most %.1f ms", d.state, cell.P50, cell.P99, cell.Max)
	return nil
}

// deploy makes a store and starts gateways on it, and asks them until their memory is filled.
func (r *severalRun) deploy(ctx context.Context, state string) (edges int, err error) {
	var env []string
	if state == report.Shared {
		env = append(env, "KITH_REDIS_CACHE=true")
	}
	if r.what.CacheBytes != "" {
		env = append(env, "KITH_CACHE_BYTES="+r.what.CacheBytes)
	}
	engine := report.MariaDBRedis
	if state == report.NoRedis {
		engine = report.MariaDB
	}
	d := &deployment{state: state}
	if d.location, edges, err = r.makeStore(ctx, report.MariaDB, r.graph); err != nil {
		return 0, err
	}
	if d.mix, err = bench.NewMix(r.graph, []byte(r.secret)); err != nil {
		return 0, err
	}
	r.deployments = append(r.deployments, d)
	for range r.what.Gateways {
		s := &subject{engine: engine, state: report.Warm, redundancy: r.what.Redundancy, env: env}
		if s.program, err = r.start(ctx, s, d.location); err != nil {
			return 0, err
		}
		d.gateways = append(d.gateways, s)
	}
	_, err = r.askAll(ctx, d, d.gateways, r.Heat)
	return edges, err
}

// askAround asks a deployment before and after one of its gateways was killed.
func (r *severalRun) askAround(ctx context.Context, d *deployment, round int, into *report.Size) error {
	note := func(when string, result bench.Result, err error) error {
		if err != nil {
			return err
		}
		cell := report.Cell{Engine: report.MariaDBRedis, State: d.state, Question: fmt.Sprint(round, " ", when), Figures: report.FiguresOf(result)}
		into.Cells = append(into.Cells, cell)
		r.Log("%s, %s: %.0f/s, p99 %.1f ms, %d wrong of %d, %d values compared so far", cell.State, cell.Question, cell.PerSecond, cell.P99, cell.Errors, cell.Requests, d.mix.Compared())
		if result.Error != nil {
			r.Log("the first wrong answer: %v", result.Error)
		}
		return nil
	}
	result, err := r.askAll(ctx, d, d.gateways, r.Duration)
	if err := note("before", result, err); err != nil || len(d.gateways) == 1 {
		return err
	}
	result, err = r.restartLast(ctx, d)
	if err := note("during", result, err); err != nil {
		return err
	}
	result, err = r.askAll(ctx, d, d.gateways, r.Duration)
	return note("after", result, err)
}

// restartLast kills the last gateway and starts it again, with nothing in its memory, while the others are asked.
func (r *severalRun) restartLast(ctx context.Context, d *deployment) (result bench.Result, err error) {
	last := d.gateways[len(d.gateways)-1]
	last.program.Kill()
	last.state = report.Restarted
	var others errgroup.Group
	others.Go(func() (err error) {
		result, err = r.askAll(ctx, d, d.gateways[:len(d.gateways)-1], r.Duration)
		return err
	})
	last.program, err = r.start(ctx, last, d.location)
	return result, errors.Join(err, others.Wait())
}

// askAll asks some gateways at the same time, each over its share of the connections, as one load.
func (r *severalRun) askAll(ctx context.Context, d *deployment, gateways []*subject, duration time.Duration) (bench.Result, error) {
	if duration == 0 {
		return bench.Result{}, nil
	}
	results := make([]bench.Result, len(gateways))
	var loads errgroup.Group
	for i, s := range gateways {
		r.loads++
		load := r.load(s, r.graph)
		load.Seed += r.loads << 32
		load.Duration, load.Connections = duration, max(1, r.Connections/len(gateways))
		load.Gateway, load.Late = slices.Index(d.gateways, s), r.what.Late
		loads.Go(func() (err error) {
			results[i], err = load.Run(ctx, d.mix)
			return err
		})
	}
	if err := loads.Wait(); err != nil {
		return bench.Result{}, err
	}
	for i := 1; i < len(results); i++ {
		results[i].Databases = 0 // the first has counted what all use
	}
	all := bench.Merge(results)
	all.Elapsed = results[0].Elapsed
	return all, nil
}
