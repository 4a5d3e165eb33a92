package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"kith/accounts/identity"
	"kith/bench/report"
	"kith/storage"
)

// watch publishes posts through one gateway and reads a follower's feed through another one until
// the feed has them, while others post as well. Then it counts what a post writes.
func (r *feedRun) watch(ctx context.Context, here *subject) (list []report.Seen, err error) {
	there := &subject{engine: here.engine, state: here.state, location: here.location}
	if there.program, err = r.start(ctx, there, there.location); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, there.program.Stop()) }()
	if err := r.loaded(ctx, there.program, &report.Feeds{}); err != nil {
		return nil, err
	}
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(r.secret))})
	if err != nil {
		return nil, err
	}
	w := &watch{feedRun: r, issuer: issuer, here: here.program.url, there: there.program.url, name: here.state}

	others, stop := context.WithCancel(ctx)
	var posting sync.WaitGroup
	posting.Go(func() { w.others(others) })
	for range r.what.Posts {
		for i := range r.authors {
			if err == nil {
				err = w.one(ctx, i)
			}
		}
	}
	stop()
	posting.Wait()
	if err := errors.Join(err, w.failed); err != nil {
		return nil, err
	}
	for i, a := range r.authors {
		seen := report.Seen{Followers: a.followers, Posts: len(w.took[i])}
		slices.Sort(w.took[i])
		at := func(percent int) float64 { return w.took[i][(len(w.took[i])-1)*percent/100].Seconds() * 1e3 }
		seen.P50, seen.P99, seen.Max = at(50), at(99), at(100)
		if seen.Written, err = w.written(ctx, a); err != nil {
			return nil, err
		}
		r.Log("%s: a post of an author with %d followers is seen after %.1f ms, p99 %.1f ms; it writes %.1f rows", here.state, a.followers, seen.P50, seen.P99, seen.Written)
		list = append(list, seen)
	}
	return list, nil
}

type watch struct {
	*feedRun
	issuer      *identity.Issuer
	here, there string // URLs of GraphQL
	took        map[int][]time.Duration
	failed      error // of others
	sent        int
	name        string // begins the keys of posts
}

// others lets random users post, at a rate, until the context is done.
func (w *watch) others(ctx context.Context) {
	random := rand.New(rand.NewPCG(w.Seed, 1<<43))
	tick := time.NewTicker(time.Second / time.Duration(w.what.PerSecond))
	defer tick.Stop()
	var posting sync.WaitGroup
	defer posting.Wait()
	var mu sync.Mutex
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		by := w.graph.ID(1 + random.IntN(w.graph.Users))
		posting.Go(func() {
			if _, err := w.publish(context.WithoutCancel(ctx), by, fmt.Sprint(w.name, "-other-", n)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				w.failed = err
			}
		})
	}
}

// one publishes a post of an author, and waits until the watcher sees it.
func (w *watch) one(ctx context.Context, author int) error {
	if w.took == nil {
		w.took = map[int][]time.Duration{}
	}
	w.sent++
	began := time.Now()
	id, err := w.publish(ctx, w.authors[author].id, fmt.Sprint(w.name, "-seen-", w.sent))
	if err != nil {
		return err
	}
	for {
		var got struct {
			Viewer struct {
				Feed struct{ Nodes []struct{ ID string } }
			}
		}
		if err := w.ask(ctx, w.there, w.watcher, `{ viewer { feed(first: 5) { nodes { id } } } }`, &got); err != nil {
			return err
		}
		for _, node := range got.Viewer.Feed.Nodes {
			if node.ID == id {
				w.took[author] = append(w.took[author], time.Since(began))
				return nil
			}
		}
		if time.Since(began) > 30*time.Second {
			return fmt.Errorf("%s is not seen after %s", id, time.Since(began))
		}
	}
}

func (w *watch) publish(ctx context.Context, by storage.UserID, key string) (id string, err error) {
	var got struct {
		PublishPost struct{ Post struct{ ID string } }
	}
	err = w.ask(ctx, w.here, by, fmt.Sprintf(`mutation { publishPost(text: "What there is to say today", clientKey: %q) { post { id } } }`, key), &got)
	return got.PublishPost.Post.ID, err
}

// written counts the rows that the server inserts and changes for a post, as the mean of many posts
// by one author.
func (w *watch) written(ctx context.Context, a author) (float64, error) {
	const posts = 100
	count := func() (sum int, err error) {
		for _, name := range []string{"Handler_write", "Handler_update"} {
			n, err := w.serverStatus(ctx, name)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	before, err := count()
	if err != nil {
		return 0, err
	}
	for n := range posts {
		if _, err := w.publish(ctx, a.id, fmt.Sprint(w.name, "-written-", n)); err != nil {
			return 0, err
		}
	}
	after, err := count()
	return float64(after-before) / posts, err
}

// ask sends a request as a user and decodes the data.
func (w *watch) ask(ctx context.Context, url string, as storage.UserID, query string, data any) error {
	token, _, err := w.issuer.Issue(as, 0)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Data   any
		Errors []struct{ Message string }
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return errors.New(strings.TrimSpace(query) + ": " + answer.Errors[0].Message)
	}
	return nil
}
