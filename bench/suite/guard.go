package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	"kith/bench"
)

// Compared is how two builds of Kith have answered one question.
type Compared struct {
	Engine   string  `json:"engine"`
	State    string  `json:"state"`
	Question string  `json:"question"`
	Before   float64 `json:"beforePerSecond"`
	After    float64 `json:"afterPerSecond"`
	Rate     float64 `json:"rate"` // After to Before: the median of the rounds
	CPU      float64 `json:"cpu"`  // of gateway and databases for a request, After to Before; 0: unknown
}

// RunGuard puts each question, and the mixed load if there is one, to another build of kith and to the program, in turn, on stores of their own
// that hold the same. The one that is asked first in a round is asked second in the next. A wrong answer of the program is an error.
func RunGuard(ctx context.Context, c Config, before string) ([]Compared, error) {
	return eachState(ctx, c, func(r *run, engine, state string) ([]Compared, error) {
		return r.guard(ctx, []*subject{{engine: engine, state: state, build: before}, {engine: engine, state: state}})
	})
}

func (r *run) guard(ctx context.Context, pair []*subject) (all []Compared, err error) {
	graph := r.graph()
	defer func() { err = errors.Join(err, stopAll(pair)) }()
	for _, s := range pair {
		if s.location, err = r.imported(ctx, cmp.Or(s.build, r.Program), s.engine, graph); err != nil {
			return nil, err
		}
	}
	for _, s := range pair {
		if s.program, err = r.start(ctx, s, s.location); err != nil {
			return nil, err
		}
		if s.mix, err = bench.NewMix(graph, []byte(r.secret)); err != nil {
			return nil, err
		}
	}
	compare := func(of func(*subject) bench.Workload) error {
		before, after, rate, err := r.inTurn(ctx, pair, graph, of)
		if err != nil {
			return err
		}
		c := Compared{
			Engine: pair[0].engine, State: pair[0].state, Question: before.Question,
			Before: before.PerSecond(), After: after.PerSecond(), Rate: rate,
		}
		if was := cpuOf(before); was > 0 {
			c.CPU = cpuOf(after) / was
		}
		r.Log("%s %s %s: %.0f/s and %.0f/s, %.3f", c.Engine, c.State, c.Question, c.Before, c.After, c.Rate)
		all = append(all, c)
		return nil
	}
	for _, q := range r.Questions {
		if err := r.heatAll(ctx, pair, graph, q); err != nil {
			return nil, err
		}
		if err := compare(func(*subject) bench.Workload { return q }); err != nil {
			return nil, err
		}
	}
	if r.MixedUsers > 0 {
		err = compare(func(s *subject) bench.Workload { return s.mix })
	}
	return all, err
}

// imported makes a store by a build of Kith, which may have another layout than this one.
func (r *run) imported(ctx context.Context, program, engine string, graph *bench.Graph) (location string, err error) {
	if location, err = r.emptyStore(ctx, engine); err != nil {
		return "", err
	}
	edges, err := os.Create(r.path("edges.csv"))
	if err != nil {
		return "", err
	}
	_, err = graph.WriteTo(edges)
	if err = errors.Join(err, edges.Close()); err != nil {
		return "", err
	}
	began := time.Now()
	if out, err := exec.CommandContext(ctx, program, "import", "--store", location, edges.Name()).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s import: %w: %s", program, err, out)
	}
	r.Log("%s: imported by %s in %s", engine, program, time.Since(began).Round(100*time.Millisecond))
	return location, r.analyze(ctx, location)
}

// inTurn asks two subjects in turn, in all rounds. The ratio is the median of the rounds' ratios of rates, the second to the first. A wrong
// answer is an error, unless another build gives it.
func (r *run) inTurn(
	ctx context.Context, pair []*subject, graph *bench.Graph, of func(*subject) bench.Workload,
) (first, second bench.Result, ratio float64, err error) {
	rounds := [2][]bench.Result{}
	ratios := make([]float64, r.Rounds)
	for round := range r.Rounds {
		for turn := range pair {
			i := (round + turn) % 2
			result, err := r.round(ctx, round, pair[i], graph, of(pair[i]))
			switch {
			case err != nil:
				return first, second, 0, err
			case result.Error != nil && pair[i].build != "":
				r.Log("%s %s: before, a wrong answer: %v", pair[i].name(), result.Question, result.Error)
			case result.Error != nil:
				return first, second, 0, fmt.Errorf("%s: %w", result.Question, result.Error)
			}
			rounds[i] = append(rounds[i], result)
		}
		ratios[round] = rounds[1][round].PerSecond() / rounds[0][round].PerSecond()
	}
	return bench.Merge(rounds[0]), bench.Merge(rounds[1]), median(ratios), nil
}

// cpuOf is the CPU of a request, of gateway and databases as far as they are known.
func cpuOf(r bench.Result) float64 {
	used := 0.0
	for _, cpu := range []float64{r.Gateway, r.Databases} {
		if !math.IsNaN(cpu) {
			used += cpu
		}
	}
	return used / float64(max(1, r.Requests))
}

func median(of []float64) float64 {
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
