package program_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// changedFollows is what a reader of `kith changes`, or of the subscription, knows of follows: an export, and the events since.
type changedFollows struct {
	t       *testing.T
	cursor  string
	edges   map[string][2]string // relation and time, by from and to
	seen    map[string]string    // subjects and times by source and id
	repeats int                  // lines that came again
}

// take takes whole lines of the output; the last one may have been cut off by a kill. It returns how many were follows.
func (c *changedFollows) take(output string) (n int) {
	c.t.Helper()
	lines := strings.SplitAfter(output, "\n")
	for _, line := range lines[:len(lines)-1] {
		var e changedFollow
		err := json.Unmarshal([]byte(line), &e)
		must.That(c.t, err == nil, "%q: %v", line, err)
		n += c.takeOne(e)
	}
	return n
}

// changedFollow is an event of the command, or of the subscription.
type changedFollow struct {
	ID, EventID, Source, Type, Kind, Subject, Cursor string
	Data                                             struct{ Relation, At string }
}

// takeOne returns 1 if an event is of a follow.
func (c *changedFollows) takeOne(e changedFollow) int {
	c.t.Helper()
	if e.Cursor != "" {
		c.cursor = e.Cursor
	}
	if e.Type != "kith.follows" && e.Kind != "FOLLOWS" {
		return 0
	}
	key, said := e.Source+" "+e.ID+e.EventID, e.Subject+e.Data.At
	if before, again := c.seen[key]; again {
		c.repeats++
		check.Equal(c.t, key, said, before)
		return 1
	}
	if c.seen[key] = said; e.Data.At >= c.edges[e.Subject][1] {
		c.edges[e.Subject] = [2]string{e.Data.Relation, e.Data.At}
	}
	return 1
}

// subscriber is a client of the subscription, which goes on from the last cursor that it has.
type subscriber struct {
	changedFollows
	over    apitest.Transport
	answers <-chan string
	leave   context.CancelFunc
}

func (s *subscriber) begin(url, token string) {
	var ctx context.Context
	ctx, s.leave = context.WithCancel(s.t.Context())
	s.answers = apitest.At(s.t, url, token).Subscribe(ctx, s.over,
		`subscription($after: String) { changes(after: $after, kinds: [FOLLOWS]) { eventId source kind subject data cursor } }`, apitest.Vars{"after": s.cursor})
}

// take takes what has come until there is enough, or the connection has ended, and returns how many were follows.
func (s *subscriber) take(enough func(n int) bool) (n int) {
	s.t.Helper()
	for !enough(n) {
		select {
		case text, open := <-s.answers:
			if !open {
				return n
			}
			var answer struct {
				Data struct{ Changes changedFollow }
			}
			err := json.Unmarshal([]byte(text), &answer)
			must.That(s.t, err == nil && answer.Data.Changes.Source != "", "%s: %s %v", s.over, text, err)
			n += s.takeOne(answer.Data.Changes)
		case <-time.After(time.Minute):
			s.t.Fatalf("%s: nothing comes after %d", s.over, n)
		}
	}
	return n
}

// rest takes what comes until the connection ends.
func (s *subscriber) rest() { s.take(func(int) bool { return false }) }

// A reader that has an export and its cursor, and is killed again and again while gateways write and are killed, too, knows in the end what
// is in the tables: it goes on from the last cursor that it had.
func TestChangesAreToldOverKills(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, fresh func(testing.TB, int) []database) {
		shards := fresh(t, 2)
		if shards[0].driver == "mysql" {
			testenv.NeedsBinlog(t)
		}
		const users = 60
		var lines strings.Builder
		for id := 1; id <= users; id++ {
			fmt.Fprintf(&lines, "%d %d\n", id, id%users+1)
		}
		folder := t.TempDir()
		file := written(t, "edges.txt", lines.String())
		store := kithtest.Args("--store", location(shards...))
		kithtest.Ends(t, 0, kithtest.Args("import", file), store)
		var url atomic.Value
		serve := func() *kithtest.Gateway {
			g := kithtest.Start(t, kithtest.Args("--jwt-secret", secret), store)
			url.Store(g.URL)
			return g
		}
		gateway := serve()
		var tokens []string
		for id := 1; id <= users; id++ {
			tokens = append(tokens, signed(t, jwt.MapClaims{"sub": fmt.Sprint(id)}))
		}
		var written atomic.Int64
		writing, ended := make(chan struct{}), make(chan struct{})
		go func() { // follows and ends of follows, in turn, whether the gateway lives or not
			defer close(ended)
			for i := 0; ; i++ {
				time.Sleep(5 * time.Millisecond) // or it would take a processor while no gateway lives
				select {
				case <-writing:
					return
				default:
				}
				from, to, what := i%users, (i/7)%users+1, []string{"follow", "unfollow"}[i/users%2]
				query := fmt.Sprintf(`{"query":"mutation { %s(userId: %d) { changed } }"}`, what, to)
				if _, _, err := send(&kithtest.Gateway{URL: url.Load().(string)}, query, "Authorization", "Bearer "+tokens[from]); err == nil {
					written.Add(1)
				}
			}
		}()
		more := func(n int64) {
			t.Helper()
			gateway.Until(t, "writes", func() bool { return written.Load() >= n })
		}
		more(20)

		copied := filepath.Join(folder, "copy")
		kithtest.Ends(t, 0, kithtest.Args("export", "--plain", copied), store)
		c := &changedFollows{t: t, edges: map[string][2]string{}, seen: map[string]string{}}
		var manifest struct{ Cursor string }
		text, err := os.ReadFile(filepath.Join(copied, "kith-export.json"))
		if err == nil {
			err = json.Unmarshal(text, &manifest)
		}
		files, err2 := filepath.Glob(filepath.Join(copied, "*.txt"))
		must.That(t, err == nil && err2 == nil && manifest.Cursor != "", "%v, %v, %v", err, err2, string(text))
		c.cursor = manifest.Cursor
		var subscribers []*subscriber
		for _, over := range apitest.Transports {
			subscribers = append(subscribers, &subscriber{over: over, changedFollows: changedFollows{t: t, seen: map[string]string{}, cursor: c.cursor}})
		}
		operator := signed(t, jwt.MapClaims{"sub": "operator", "scope": "admin"})
		for _, file := range files {
			text := must.File(t, file)
			relation, _, _ := strings.Cut(filepath.Base(file), "-")
			for _, line := range strings.Split(string(text), "\n") {
				if fields := strings.Fields(line); len(fields) == 3 && fields[0] != "#" {
					c.edges[fields[0]+"/"+fields[1]] = [2]string{relation, fields[2]}
				}
			}
		}

		for _, s := range subscribers {
			s.edges = maps.Clone(c.edges)
		}

		for i := range 4 {
			for _, s := range subscribers { // both at once
				s.begin(gateway.URL, operator)
			}
			for _, s := range subscribers {
				s.take(func(n int) bool { return n > 10 })
			}
			reader := kithtest.Launch(t, kithtest.Args("changes", "--kinds=follows", "--after", c.cursor), store)
			reader.Until(t, "lines", func() bool { return strings.Count(reader.Stdout(), "kith.follows") > 10 })
			c.take(reader.Kill(t).Stdout)
			if i == 1 {
				gateway.Kill(t)
				for _, s := range subscribers {
					s.rest()
				}
				gateway = serve()
			}
			for _, s := range subscribers {
				s.leave()
				s.rest()
			}
			more(written.Load() + 20)
		}
		close(writing)
		<-ended
		end := kithtest.Run(t, kithtest.Args("changes", "--until-now", "--kinds=follows", "--after", c.cursor), store)
		c.take(end.Stdout)
		must.Equal(t, "the code", end.Code, 0)

		for _, s := range subscribers {
			s.begin(gateway.URL, operator)
			s.take(func(int) bool { return maps.Equal(s.edges, c.edges) })
			for key, said := range c.seen {
				check.Equal(t, fmt.Sprintf("%s over %s, and what the command has", key, s.over), s.seen[key], said)
			}
			s.leave()
		}
		stranger := apitest.At(t, gateway.URL, tokens[0]).Subscribe(t.Context(), apitest.Events, `subscription { changes { cursor } }`, nil)
		check.Has(t, "what a user is told", <-stranger, `Cannot query field \"changes\"`)
		gateway.Interrupt(t)

		table := map[string]string{}
		for _, shard := range shards {
			rows, err := shard.open(t).Query("SELECT from_user_id, to_user_id, type FROM following")
			must.OK(t, err)
			defer rows.Close()
			for rows.Next() {
				var from, to string
				var kind int
				must.OK(t, rows.Scan(&from, &to, &kind))
				table[from+"/"+to] = []string{"ended", "following"}[kind]
			}
		}
		for edge, relation := range table {
			check.Equal(t, fmt.Sprintf("%s, %q", edge, c.edges[edge]), c.edges[edge][0], relation)
		}
		check.That(t, len(c.edges) == len(table) && len(c.seen) >= 50, "the reader has %d edges, the table %d; %d changes were told", len(c.edges), len(table), len(c.seen))
		t.Logf("%d writes, %d changes, %d of them again", written.Load(), len(c.seen), c.repeats)

		kithtest.Ends(t, 78, kithtest.Args("changes", "--after=x"), store)
		if shards[0].driver == "sqlite" {
			shards[0].exec(t, "DELETE FROM relation_log")
			kithtest.Run(t, kithtest.Args("changes", "--after", manifest.Cursor), store).Fails(t, "without its log", 3, "SNAPSHOT_NEEDED: ")
		}
	})
}
