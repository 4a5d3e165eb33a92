package suite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"time"

	"kith/bench"
	"kith/bench/report"
	"kith/storage"
	"kith/storage/sqlstore"
)

// AppRates are how fast the baseline and Kith have answered one operation of the web app, or all in their shares.
type AppRates struct {
	Engine    string         `json:"engine"`
	State     string         `json:"state"`
	Operation string         `json:"operation"`
	Baseline  report.Figures `json:"baseline"`
	Kith      report.Figures `json:"kith"`
	Ratio     float64        `json:"ratio"` // of the rates, Kith to the baseline: the median of the rounds
}

// RunApp puts what the web app asks to the baseline and to Kith, in turn: each of the operations ([bench.AppOperations], or [bench.AppName] for
// all). Before anything is timed, both have to give the same answers. A wrong answer is an error.
func RunApp(ctx context.Context, c Config, operations []string) ([]AppRates, error) {
	return eachState(ctx, c, func(r *run, engine, state string) (all []AppRates, err error) {
		graph := c.graph()
		location, _, err := r.makeStore(ctx, engine, graph)
		if err == nil {
			err = r.addPosts(ctx, location, graph)
		}
		if err != nil {
			return nil, err
		}
		pair := []*subject{{engine: engine, state: report.Baseline, location: location}, {engine: engine, state: state, location: location}}
		defer func() { err = errors.Join(err, stopAll(pair)) }()
		return r.app(ctx, pair, graph, operations)
	})
}

// addPosts lets the users of a store have posted.
func (r *run) addPosts(ctx context.Context, location string, graph *bench.Graph) error {
	const atOnce = 2000
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: location})
	if err != nil {
		return err
	}
	posts := graph.Posts(time.Now())
	slices.SortFunc(posts, func(a, b storage.PostRow) int { return a.PostID.Compare(b.PostID) }) // an author is a transaction
	for rows := range slices.Chunk(posts, atOnce) {
		for _, restored := range store.Restore(ctx, storage.Restored{Posts: rows}) {
			err = cmp.Or(err, restored.Err)
		}
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	r.Log("%d posts loaded", len(posts))
	return r.analyze(ctx, location)
}

func (r *run) app(ctx context.Context, pair []*subject, graph *bench.Graph, operations []string) (all []AppRates, err error) {
	for _, s := range pair {
		if s.engine == report.SQLite { // what one writes for itself is not to disturb the other
			if s.location, err = r.copyStore(s.location); err != nil {
				return nil, err
			}
		}
		if s.program, err = r.start(ctx, s, s.location); err != nil {
			return nil, err
		}
	}
	kith := pair[1]
	if err := loaded(ctx, kith.program); err != nil {
		return nil, err
	}
	mix, err := bench.NewApp(graph, bench.AppName, []byte(r.secret))
	if err != nil {
		return nil, err
	}
	if err := sameAnswers(ctx, mix, r.Seed, pair[0].program.url, kith.program.url); err != nil {
		return nil, err
	}
	heat := r.load(kith, graph)
	heat.Duration = r.Heat
	heat.Seed-- // other requests
	if _, err := heat.Run(ctx, mix); err != nil {
		return nil, err
	}
	for _, name := range operations {
		load, err := bench.NewApp(graph, name, []byte(r.secret))
		if err != nil {
			return nil, err
		}
		first, second, ratio, err := r.inTurn(ctx, pair, graph, func(*subject) bench.Workload { return load })
		if err != nil {
			return nil, err
		}
		all = append(all, AppRates{kith.engine, kith.state, name, report.FiguresOf(first), report.FiguresOf(second), ratio})
		r.Log("%s %s: %.0f/s and %.0f/s, %.3f", kith.name(), name, first.PerSecond(), second.PerSecond(), ratio)
	}
	return all, nil
}

// sameAnswers asks the baseline and Kith the same, 300 times. The first difference of their data is an error.
func sameAnswers(ctx context.Context, app *bench.App, seed uint64, baseline, kith string) error {
	return app.Ask(seed, 300, func(q bench.AppRequest) ([]byte, error) {
		text, data, err := askOnce(ctx, kith, q)
		if err != nil {
			return nil, fmt.Errorf("asking Kith: %w", err)
		}
		byHand, dataByHand, err := askOnce(ctx, baseline, q)
		if err == nil && !reflect.DeepEqual(dataByHand, data) {
			err = fmt.Errorf("it answers %s\nKith %s", byHand, text)
		}
		if err != nil {
			return nil, fmt.Errorf("the baseline: %w", err)
		}
		return text, nil
	})
}

// connections are kept open, as many as clients ask at once.
var connections = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd + others}}

// post sends a request, and asks what it costs. The caller closes the body of the answer.
func post(ctx context.Context, url string, q bench.AppRequest) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+q.Token)
	request.Header.Set("Kith-Cost", "1")
	return connections.Do(request)
}

func askOnce(ctx context.Context, url string, q bench.AppRequest) (text []byte, data any, err error) {
	response, err := post(ctx, url, q)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		return nil, nil, err
	}
	var answer struct{ Data, Errors any }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Data == nil || answer.Errors != nil {
		return nil, nil, errors.Join(fmt.Errorf("status %d: %.1000s", response.StatusCode, text), err)
	}
	return text, answer.Data, nil
}
