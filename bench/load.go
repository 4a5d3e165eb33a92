package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Load says how a gateway is asked: by so many connections, each of which sends
// its next request when it has the answer to the last.
type Load struct {
	URL         string // of the GraphQL endpoint, http only
	Graph       *Graph // that the gateway serves
	Connections int
	Warmup      time.Duration // asked, but not counted
	Duration    time.Duration
	Seed        uint64 // of the arguments

	// CheckEvery: one answer in so many is decoded and checked in full; the others
	// are looked at for errors and incomplete lists. Defaults to 50.
	CheckEvery int
}

// Result is how one question was answered.
type Result struct {
	Question string
	Requests int           // counted ones
	Errors   int           // of these; they are in Requests, but not in Latencies
	Error    error         // the first of them
	Elapsed  time.Duration // that the counted ones took together
	Latencies

	// ServerCPU is how many cores the gateway's process used, by its /metrics,
	// ClientCPU how many the load itself did; negative when unknown.
	ServerCPU, ClientCPU float64
}

// PerSecond is the rate of good answers.
func (r Result) PerSecond() float64 {
	return float64(len(r.Latencies)) / r.Elapsed.Seconds()
}

// Run asks one question for as long as the load says. Its error means that nothing
// could be measured; wrong answers are in the result.
func (l Load) Run(ctx context.Context, q *Question) (Result, error) {
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
		// Independent of the other connections, and of the other questions.
		stream := uint64(slices.Index(Questions, q)+1)<<32 + uint64(i)
		workers[i] = &worker{load: &l, question: q, client: c, random: rand.New(rand.NewPCG(l.Seed, stream))}
	}

	begin := time.Now().Add(l.Warmup)
	end := begin.Add(l.Duration)
	var cpu cpuMeter
	var wg sync.WaitGroup
	wg.Go(func() { cpu.measure(ctx, at, begin, end) })
	for _, w := range workers {
		wg.Go(func() { w.run(ctx, begin, end) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	return collect(q, workers, l.Duration, cpu)
}

func collect(q *Question, workers []*worker, elapsed time.Duration, cpu cpuMeter) (Result, error) {
	result := Result{Question: q.Name, Elapsed: elapsed, ServerCPU: cpu.server, ClientCPU: cpu.client}
	var samples [][]time.Duration
	for _, w := range workers {
		if w.broken != nil {
			return Result{}, w.broken
		}
		samples = append(samples, w.samples)
		result.Errors += w.errors
		if result.Error == nil {
			result.Error = w.err
		}
	}
	result.Latencies = newLatencies(samples...)
	result.Requests = len(result.Latencies) + result.Errors
	if result.Requests == 0 {
		return Result{}, fmt.Errorf("%s: no answer within %s", q.Name, elapsed)
	}
	return result, nil
}

// worker is one connection.
type worker struct {
	load     *Load
	question *Question
	client   *client
	random   *rand.Rand

	asked   int
	samples []time.Duration
	errors  int
	err     error // the first wrong answer
	broken  error // the server is gone
}

// run asks until the end, and counts what began after the beginning. Wrong answers
// count from the start.
func (w *worker) run(ctx context.Context, begin, end time.Time) {
	var body []byte
	for ctx.Err() == nil {
		arguments := w.question.Draw(w.load.Graph, w.random)
		body = w.question.AppendBody(body[:0], arguments)
		if err := w.client.dial(ctx); err != nil {
			w.broken = err
			return
		}
		sent := time.Now()
		if !sent.Before(end) {
			return
		}
		status, response, err := w.client.ask(body)
		took := time.Since(sent)
		if err == nil {
			err = w.judge(arguments, status, response)
		}
		if sent.Before(begin) && err == nil {
			continue
		}
		w.note(took, err)
	}
}

func (w *worker) judge(a Arguments, status int, response []byte) error {
	w.asked++
	err := Skim(status, response)
	if err == nil && w.asked%w.load.CheckEvery == 1%w.load.CheckEvery {
		err = w.question.Check(a, response)
	}
	return err
}

func (w *worker) note(took time.Duration, err error) {
	if err == nil {
		w.samples = append(w.samples, took)
		return
	}
	w.errors++
	if w.err == nil {
		w.err = err
	}
}
