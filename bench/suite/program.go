package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"kith/bench"
	"kith/bench/private"
	"kith/bench/report"
	"kith/internal/child"
	"kith/storage/sleep"
)

// program is a gateway, or the baseline, that answers.
type program struct {
	*child.Process
	url   string // of its GraphQL
	admin string // where its /metrics are
}

// start runs a subject's program on a store. Settings are given as environment
// variables, because a version of Kith that does not know a variable serves without it.
func (r *run) start(ctx context.Context, s *subject, location string) (p *program, err error) {
	for range 5 {
		p, err = r.startOnce(ctx, s, location)
		if err == nil || !strings.Contains(err.Error(), "is taken by another program") { // an address that was free a moment ago
			break
		}
	}
	return p, err
}

func (r *run) startOnce(ctx context.Context, s *subject, location string) (*program, error) {
	address, err := private.FreeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := private.FreeAddress()
	if err != nil {
		return nil, err
	}
	command := cmp.Or(s.build, r.Program)
	args := []string{"serve", "--store", location, "--addr", address, "--log-level", "warn", "--max-following", "0", "--redundancy", cmp.Or(s.redundancy, "sync")}
	env := slices.Clone(s.env)
	switch s.state {
	case report.Baseline:
		admin = address
		command = r.Baseline
		args = []string{"bench", "baseline", "--store", location, "--addr", address}
	case report.Cold:
		env = append(env, "KITH_CACHE_BYTES=0")
	}
	env = append(env, "KITH_JWT_SECRET="+r.secret, "KITH_WRITE_LIMIT=0", "KITH_ADMIN_ADDR="+admin)
	if s.engine == report.MariaDBRedis && s.state != report.Baseline {
		env = append(env, "KITH_REDIS="+r.redisURL)
		r.share(ctx, command, location, env)
	}
	cmd := exec.Command(command, args...)
	cmd.Env = slices.Concat(env, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}) // and no other variables of the caller's environment
	process, err := child.StartLogged(r.path(strings.ReplaceAll(s.name(), " ", "-")+".log"), cmd)
	if err != nil {
		return nil, err
	}
	err = process.Answers(ctx, func(ctx context.Context) error { return get(ctx, "http://"+admin+"/metrics") })
	p := &program{process, "http://" + address + "/graphql", "http://" + admin}
	switch {
	case err != nil:
	case s.state == report.Warm:
		err = r.warmedUp(ctx, s, p)
	case s.state == report.Restarted:
		err = process.Answers(ctx, func(ctx context.Context) error { return get(ctx, p.admin+"/readyz") })
	}
	if err != nil {
		_ = process.Stop()
		return nil, err
	}
	return p, nil
}

// share sets what all gateways on a store take from it, as the next one is told. Builds before this setting do without.
func (r *run) share(ctx context.Context, program, location string, told []string) {
	cache := fmt.Sprint("redis-cache=", slices.Contains(told, "KITH_REDIS_CACHE=true"))
	if out, err := exec.CommandContext(ctx, program, "settings", "set", "--store", location, "--redis", r.redisURL, cache).CombinedOutput(); err != nil {
		r.Log("settings: %s", out)
	}
}

// mostWarming is how long warming up may take: some 100 million follows.
const mostWarming = 20 * time.Minute

// warmedUp waits until a gateway that has started does not warm up any more.
func (r *run) warmedUp(ctx context.Context, s *subject, p *program) error {
	for began := time.Now(); ; {
		warming, err := metric(ctx, p.admin, "kith_cache_warming")
		if err != nil {
			return err
		}
		if warming == 0 {
			users, err := metric(ctx, p.admin, "kith_cache_warmed_total")
			r.Log("%s: warmed up by %.0f users in %s", s.name(), users, time.Since(began).Round(100*time.Millisecond))
			return err
		}
		if time.Since(began) > mostWarming {
			return fmt.Errorf("%s: still warming up after %s", s.name(), mostWarming)
		}
		if err := sleep.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// metric is the sum of all series of a name that a process shows, 0 if there is none.
func metric(ctx context.Context, pages, name string) (float64, error) {
	metrics, err := bench.Metrics(ctx, pages+"/metrics")
	return metrics[name], err
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", url, response.StatusCode)
	}
	return nil
}

// loaded waits until a gateway has the recent posts in memory.
func loaded(ctx context.Context, p *program) error {
	return p.Answers(ctx, func(ctx context.Context) error {
		posts, err := metric(ctx, p.admin, "kith_feed_posts")
		window, errWindow := metric(ctx, p.admin, "kith_feed_window_seconds")
		if err == nil && (posts == 0 || window == 0) {
			err = errors.New("the gateway has not loaded the recent posts")
		}
		return errors.Join(err, errWindow)
	})
}
