package bench_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/accounts/identity"
	"kith/internal/apitest"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

var (
	followers   = flag.Int("followers", 1_000_000, "followers of the star that BenchmarkCelebrity asks about")
	fameSamples = flag.Int("fame-samples", 2500, "answers that BenchmarkCelebrity times of each question, about the star and about users of 100 followers")
	fameOnly    = flag.String("fame-only", "", "the questions of BenchmarkCelebrity whose name begins so")
)

// BenchmarkCelebrity asks every question about a user with a million followers and about users with a
// hundred, in turn, through the program over HTTP on MariaDB: first cold, then warmed up. Each
// connection asks about the star and then about a quiet user, so anything else on the machine slows
// both. ×star is the 99th percentile of the star divided by that of the quiet users.
//
//	go test ./bench -run '^$' -bench Celebrity -benchtime 1x -timeout 30m
//
// Of -followers, a hundred thousand are imported. The server itself makes the rows of the others.
func BenchmarkCelebrity(b *testing.B) {
	f := fame{followers: min(*followers, 100_000), blocks: 200}
	server := testenv.MariaDB(b, "--innodb-buffer-pool-size=4G", "--innodb-log-file-size=512M")
	location := "mysql:" + server.CreateDatabase(b, "kith")
	began := time.Now()
	f.store(b, location)
	f = f.more(b, server.Open(b, "kith"), *followers)
	server.Exec(b, "ANALYZE TABLE kith.users, kith.user_counts, kith.following, kith.follower")
	b.Logf("%d users in %s", f.last(), time.Since(began).Round(time.Second))
	for _, state := range []struct{ name, setting string }{{"cold", "KITH_CACHE_BYTES=0"}, {"warm", "KITH_CACHE_BYTES=2147483648"}} {
		b.Run(state.name, func(b *testing.B) {
			g := kithtest.Start(b, kithtest.Args("--store", location, "--log-level", "warn", "--max-following", "0"),
				kithtest.Env(state.setting, "KITH_JWT_SECRET="+fameSecret))
			defer g.Interrupt(b)
			for warming := true; warming && state.name == "warm"; time.Sleep(time.Second) {
				_, metrics := g.Get(b, "/metrics")
				warming = strings.Contains(metrics, "\nkith_cache_warming 1\n")
			}
			b.Logf("%s after %s", state.name, time.Since(began).Round(time.Second))
			table := &strings.Builder{}
			fmt.Fprintf(table, "| %s | 100 followers: p50 ms | p99 ms | %d followers: p50 ms | p99 ms | p50 × | p99 × |\n|---|---:|---:|---:|---:|---:|---:|\n", state.name, f.followers)
			for b.Loop() {
				for _, q := range fameQuestions {
					if !strings.HasPrefix(q.name, *fameOnly) {
						continue
					}
					quiet, famous := f.compare(b, g.URL, q)
					fmt.Fprintf(table, "| %s | %s | %s | %s | %s | %.2f | %.2f |\n", q.name, ms(quiet, 50), ms(quiet, 99), ms(famous, 50), ms(famous, 99),
						ratio(quiet, famous, 50), ratio(quiet, famous, 99))
					b.ReportMetric(ratio(quiet, famous, 99), strings.ReplaceAll(strings.ReplaceAll(q.name, ",", ""), " ", "-")+"-×star")
				}
			}
			b.ReportMetric(0, "ns/op")
			fmt.Printf("\n%s\n", table) // b.Log would cut it off
		})
	}
}

const fameSecret = "the secret of those who ask about celebrities"

// compare asks one question on four connections until there are enough answers. It returns the times
// about users with 100 followers, and about the star. The first answers, which fill caches, are left out.
func (f fame) compare(b *testing.B, url string, q fameQuestion) (quiet, famous []time.Duration) {
	b.Helper()
	const connections = 4
	issuer, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(fameSecret))})
	must.OK(b, err)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range connections {
		asking.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(i)))
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			each := (*fameSamples + connections - 1) / connections
			var times [2][]time.Duration
			for turn := -each / 4; turn < each; turn++ {
				for of, about := range [2]storage.UserID{f.randomQuiet(r), star} {
					token, _, err := issuer.Issue(f.near(about, r), 0)
					if err != nil {
						b.Error(err)
						return
					}
					body := q.body(f, r, about)
					began := time.Now()
					err = ask(client, url, token, body)
					if took := time.Since(began); turn >= 0 {
						times[of] = append(times[of], took)
					}
					if err != nil {
						b.Errorf("%s: %s: %v", q.name, body, err)
						return
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			quiet, famous = append(quiet, times[0]...), append(famous, times[1]...)
		})
	}
	asking.Wait()
	if b.Failed() {
		b.FailNow()
	}
	slices.Sort(quiet)
	slices.Sort(famous)
	return quiet, famous
}

// ask sends one request. The answer must have no errors.
func ask(client *http.Client, url, token string, body []byte) error {
	request, err := http.NewRequest(http.MethodPost, url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !bytes.HasPrefix(text, []byte(`{"data":{`)) || bytes.Contains(text, []byte(`"errors":`))) {
		err = fmt.Errorf("answered with status %d: %.300s", response.StatusCode, text)
	}
	return err
}

func at(times []time.Duration, percent int) time.Duration {
	return times[min(len(times)*percent/100, len(times)-1)]
}

func ms(times []time.Duration, percent int) string {
	return fmt.Sprintf("%.2f", at(times, percent).Seconds()*1e3)
}

func ratio(quiet, famous []time.Duration, percent int) float64 {
	return at(famous, percent).Seconds() / at(quiet, percent).Seconds()
}

// The cost of an answer about a celebrity does not depend on the number of followers. No question takes
// more statements, or many more keys, than about users with 100 followers. Long lists are read in a few
// larger steps.
func TestCelebrity(t *testing.T) {
	f := fame{followers: 20_000, blocks: 20}
	location := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	f.store(t, location)
	var recorder apitest.Recorder
	store := opened.Store(t, sqlstore.Config{Location: location, OnStatement: recorder.Observe})
	api := apitest.New(t, store, apitest.Options{})
	cost := func(q fameQuestion, about storage.UserID) (statements, keys int) {
		r := rand.New(rand.NewPCG(9, 9))
		variables := apitest.Vars{"id": about.String()}
		if q.args != nil {
			q.args(f, r, about, variables)
		}
		recorder.Take()
		answer := api.As(f.near(about, r)).Ask("query Q"+q.query, variables)
		if len(answer.Errors) > 0 {
			t.Errorf("%s of user %s: %+v", q.name, about, answer.Errors)
		}
		for _, s := range recorder.Take() {
			statements++
			keys += s.Keys
		}
		return statements, keys
	}
	for _, q := range fameQuestions {
		quiet, quietKeys := cost(q, firstQuiet)
		famous, famousKeys := cost(q, star)
		if famous > quiet+4 || famousKeys > quietKeys+500 {
			t.Errorf("%s: %d statements for %d keys, of a quiet user %d for %d", q.name, famous, famousKeys, quiet, quietKeys)
		}
	}
}
