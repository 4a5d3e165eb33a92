package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Unchecked as [Load.CheckEvery] checks no answer in full.
const Unchecked = math.MaxInt

// Load says how a gateway is asked: by a number of connections, each of which sends its next request when it has the answer to the last.
type Load struct {
	URL         string // of the GraphQL endpoint, http only
	Admin       string // where the gateway's /metrics are, such as http://127.0.0.1:8081; empty: at the URL's
	Graph       *Graph // that the gateway serves
	Connections int
	Warmup      time.Duration // asked, but not counted
	Duration    time.Duration
	Seed        uint64 // of the arguments

	// Databases are the processes behind the gateway whose CPU is measured, too.
	Databases []int

	// EachOnce asks about every user of the graph once, which fills caches. The load ends after that, or after the duration.
	EachOnce bool

	// CheckEvery says that one answer in so many is decoded and checked in full; the others
	// are checked for errors and incomplete lists only. Defaults to 50.
	CheckEvery int

	// Gateway is the number of the gateway that is asked, among several on one store, and Late after what time at most it shows what was
	// written through another.
	Gateway int
	Late    time.Duration
}

// A Workload is what is asked: a [Question], or the [Mix].
type Workload interface {
	title() string
	// stream makes the requests of one connection.
	stream(load *Load, connection int) stream
}

// A stream makes requests and judges the responses to them.
type stream interface {
	// next appends the body of the next request and returns the token that it is sent
	// with, "" for none. more is false if there is nothing left to ask.
	next(body []byte) (request []byte, token string, more bool)

	// judge reports what is wrong with the response to the latest request; thorough, it decodes the response.
	judge(status int, response []byte, thorough bool) error

	// kind names the latest request among requests of several kinds; "" if there is only one.
	kind() string
}

// Result is how one workload was answered.
type Result struct {
	Question string
	Requests int           // counted ones
	Errors   int           // wrong ones among these; they are not in Latencies
	Error    error         // the first of them
	Elapsed  time.Duration // that the counted ones took together
	Latencies
	Kinds map[string]Latencies // of a workload with requests of several kinds

	Usage
}

// PerSecond is the rate of good answers.
func (r Result) PerSecond() float64 {
	return float64(len(r.Latencies)) / r.Elapsed.Seconds()
}

// Merge puts the results of several rounds, or connections, of one workload together.
func Merge(results []Result) Result {
	var together [][]time.Duration
	kinds := map[string][][]time.Duration{}
	all := Result{Question: results[0].Question, Kinds: map[string]Latencies{}}
	for _, r := range results {
		all.Usage = all.Usage.plus(r.Usage, 1)
		all.Requests, all.Errors, all.Elapsed, all.Error = all.Requests+r.Requests, all.Errors+r.Errors, all.Elapsed+r.Elapsed, cmp.Or(all.Error, r.Error)
		together = append(together, r.Latencies)
		for kind, some := range r.Kinds {
			kinds[kind] = append(kinds[kind], some)
		}
	}
	all.Latencies = newLatencies(together...)
	for kind, some := range kinds {
		all.Kinds[kind] = newLatencies(some...)
	}
	return all
}

// Run asks for as long as the load says. Its error means that nothing could be measured; wrong answers are in the result.
func (l Load) Run(ctx context.Context, what Workload) (Result, error) {
	at, err := url.Parse(l.URL)
	if err != nil {
		return Result{}, err
	}
	if l.CheckEvery < 1 {
		l.CheckEvery = 50
	}
	workers := make([]*worker, l.Connections)
	for i := range workers {
		c, err := newClient(at)
		if err != nil {
			return Result{}, err
		}
		defer c.close()
		if err := c.dial(ctx); err != nil {
			return Result{}, err
		}
		workers[i] = &worker{load: &l, stream: what.stream(&l, i), client: c, samples: map[string][]time.Duration{}}
	}

	begin := time.Now().Add(l.Warmup)
	end := begin.Add(l.Duration)
	meter := meter{page: cmp.Or(l.Admin, "http://"+at.Host) + "/metrics", databases: l.Databases}
	metered := make(chan Usage, 1)
	metering, stop := context.WithCancel(ctx)
	go func() { metered <- meter.measure(metering, begin, end) }()
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() { w.run(ctx, begin, end) })
	}
	wg.Wait()
	elapsed := time.Since(begin)
	if elapsed < l.Duration {
		stop() // every user has been asked about before the end
	} else if !slices.ContainsFunc(workers, func(w *worker) bool { return w.late }) {
		elapsed = l.Duration
	}
	usage := <-metered
	stop()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	return collect(what, workers, elapsed, usage)
}

func collect(what Workload, workers []*worker, elapsed time.Duration, usage Usage) (Result, error) {
	results := make([]Result, len(workers))
	for i, w := range workers {
		if w.broken != nil {
			return Result{}, w.broken
		}
		results[i] = Result{Question: what.title(), Requests: w.good + w.errors, Errors: w.errors, Error: w.err, Kinds: map[string]Latencies{}}
		for kind, some := range w.samples {
			results[i].Latencies = append(results[i].Latencies, some...)
			if kind != "" {
				results[i].Kinds[kind] = some
			}
		}
	}
	all := Merge(results)
	if all.Elapsed, all.Usage = elapsed, usage; all.Requests == 0 {
		return Result{}, fmt.Errorf("%s: no answer within %s", what.title(), elapsed)
	}
	return all, nil
}

// worker is one connection.
type worker struct {
	load   *Load
	stream stream
	client *client

	asked   int
	samples map[string][]time.Duration // by kind
	good    int                        // how many samples there are
	errors  int
	err     error // the first wrong answer
	broken  error // the server is gone
	late    bool  // the only request began after the end
}

// run asks until the end, and counts what began after the beginning: one request at
// least, however late. Wrong answers count from the start.
func (w *worker) run(ctx context.Context, begin, end time.Time) {
	var body []byte
	for ctx.Err() == nil && (time.Now().Before(end) || w.good+w.errors == 0) {
		var token string
		var more bool
		if body, token, more = w.stream.next(body[:0]); !more {
			return
		}
		if err := w.client.dial(ctx); err != nil {
			w.broken = err
			return
		}
		sent := time.Now()
		w.late = w.late || !sent.Before(end) && w.good+w.errors == 0
		status, response, err := w.client.ask(body, token)
		took := time.Since(sent)
		if err == nil {
			w.asked++
			err = w.stream.judge(status, response, w.load.CheckEvery != Unchecked && w.asked%w.load.CheckEvery == 1%w.load.CheckEvery)
		}
		if sent.Before(begin) && err == nil {
			continue
		}
		w.note(took, err)
	}
}

func (w *worker) note(took time.Duration, err error) {
	if err == nil {
		kind := w.stream.kind()
		w.samples[kind] = append(w.samples[kind], took)
		w.good++
		return
	}
	w.errors++
	if w.err == nil {
		w.err = err
	}
}

// Latencies are the times that answers took, ascending.
type Latencies []time.Duration

// newLatencies puts the samples of several connections together.
func newLatencies(samples ...[]time.Duration) Latencies {
	all := slices.Concat(samples...)
	slices.Sort(all)
	return all
}

// Percentile is the shortest time that p percent of all answers did not exceed (the nearest rank), 0 if there are no answers.
func (l Latencies) Percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(l))))
	return l[min(max(rank, 1), len(l))-1]
}

// Beyond is how many answers took longer than a time.
func (l Latencies) Beyond(time time.Duration) int {
	at, _ := slices.BinarySearch(l, time+1)
	return len(l) - at
}

// Total is the time that all answers took together.
func (l Latencies) Total() (total time.Duration) {
	for _, one := range l {
		total += one
	}
	return total
}
