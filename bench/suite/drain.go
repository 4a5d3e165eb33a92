package suite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"kith/bench"
	"kith/bench/private"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sqlstore"
)

const (
	drainUsers   = 50_000 // at most; each follows one other
	drainWriters = 16
)

// drain measures how fast `kith replicate` applies a backlog of follows to their other side. It has a
// store of its own, because on an imported store a replicator first copies everything.
func (r *run) drain(ctx context.Context, graph *bench.Graph) (_ *report.Drain, err error) {
	small := bench.NewGraph(min(graph.Users, drainUsers), graph.Seed)
	small.Spread = graph.Spread
	location, err := r.emptyStore(ctx, report.MariaDB)
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: location, MaxConns: 4 * drainWriters}) // a quarter of them for writes
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := createUsers(ctx, store, small, 1, small.Users); err != nil {
		return nil, err
	}
	first, err := r.startReplicator(ctx, location)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(first.awaitTail(ctx), first.Stop()); err != nil {
		return nil, err
	}
	began := time.Now()
	backlog := small.Users
	if err := writeBacklog(ctx, store, small, backlog); err != nil {
		return nil, err
	}
	drained := &report.Drain{Follows: backlog, Written: float64(backlog) / time.Since(began).Seconds()}
	second, err := r.startReplicator(ctx, location)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, second.Stop()) }()
	if drained.PerSecond, err = second.drained(ctx, backlog); err == nil {
		r.Log("%d follows written at %.0f/s, replicated at %.0f/s", backlog, drained.Written, drained.PerSecond)
	}
	return drained, err
}

// writeBacklog writes follows, one transaction each, on one side only.
func writeBacklog(ctx context.Context, store *sqlstore.Store, graph *bench.Graph, count int) error {
	var writers sync.WaitGroup
	errs := make([]error, drainWriters)
	for k := range drainWriters {
		writers.Go(func() {
			for i := k; i < count && errs[k] == nil; i += drainWriters {
				from := i + 1
				to := 1 + (i+graph.Users/2)%graph.Users
				change := storage.EdgeChange{To: graph.ID(to), Type: storage.Following, At: storage.MicrosOf(time.Now())}
				errs[k] = store.ChangeEdges(ctx, graph.ID(from), []storage.EdgeChange{change}, storage.ChangeOptions{})[0].Err
			}
		})
	}
	writers.Wait()
	return errors.Join(errs...)
}

// replicator is `kith replicate`.
type replicator struct {
	*private.Process
	status string // the URL of its own pages
}

func (r *run) startReplicator(ctx context.Context, location string) (*replicator, error) {
	address, err := private.FreeAddress()
	if err != nil {
		return nil, err
	}
	process, err := private.Start(r.path("replicate.log"), nil, r.Program,
		"replicate", "--store", location, "--redundancy", "binlog", "--log-level", "warn", "--admin-addr", address)
	if err != nil {
		return nil, err
	}
	p := &replicator{process, "http://" + address}
	if err := p.Answers(ctx, func(ctx context.Context) error { return get(ctx, p.status+"/healthz") }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// awaitTail waits until the replicator follows the log.
func (p *replicator) awaitTail(ctx context.Context) error {
	return p.Answers(ctx, func(ctx context.Context) error {
		text, err := read(ctx, p.status+"/readyz")
		if err != nil {
			return err
		}
		var ready struct {
			Checks []struct {
				Details struct{ Servers []struct{ State string } }
			}
		}
		if err := json.Unmarshal([]byte(text), &ready); err != nil {
			return err
		}
		servers := 0
		for _, c := range ready.Checks {
			for _, s := range c.Details.Servers {
				if servers++; s.State != "tailing" {
					return fmt.Errorf("a server is %s", s.State)
				}
			}
		}
		if servers == 0 {
			return errors.New("there is no server yet")
		}
		return nil
	})
}

// drained waits until a number of rows have been applied, and returns how many were applied a second,
// counted from when it last saw none.
func (p *replicator) drained(ctx context.Context, rows int) (perSecond float64, err error) {
	began := time.Now()
	err = p.Answers(ctx, func(ctx context.Context) error {
		asked := time.Now()
		applied, err := p.applied(ctx)
		if err == nil && applied == 0 {
			began = asked
		}
		if err == nil && applied < float64(rows) {
			err = fmt.Errorf("%.0f of %d rows are applied", applied, rows)
		}
		perSecond = applied / time.Since(began).Seconds()
		return err
	})
	return perSecond, err
}

// applied is how many rows the replicator has applied.
func (p *replicator) applied(ctx context.Context) (rows float64, err error) {
	return metric(ctx, p.status, "kith_replication_events_total")
}

// metric adds up all series of a name that a process shows, 0 if there is none.
func metric(ctx context.Context, pages, name string) (sum float64, err error) {
	text, err := read(ctx, pages+"/metrics")
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ') // labels may hold spaces
		if series, _, _ := strings.Cut(lines.Text()[:max(0, at)], "{"); series != name {
			continue
		}
		n, err := strconv.ParseFloat(lines.Text()[at+1:], 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, err
}

// read gets a page of any status.
func read(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text := &strings.Builder{}
	_, err = bufio.NewReader(response.Body).WriteTo(text)
	return text.String(), err
}
