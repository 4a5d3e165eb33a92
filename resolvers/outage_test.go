package resolvers_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// proxied is a store on two MariaDB servers with two databases each. The gateway reaches the
// second server, which has shards 2 and 3, by an address that can break.
type proxied struct {
	servers   testenv.Servers
	databases []string      // of the four shards
	server    *testenv.Link // the second server
	store     *sqlstore.Store
}

func behindProxy(t *testing.T, limit time.Duration) *proxied {
	t.Helper()
	servers := testenv.SharedMariaDB(t, 2)
	dsns := servers.FreshDatabases(t, 2)
	p := &proxied{servers: servers}
	for _, dsn := range dsns {
		p.databases = append(p.databases, dsn[strings.LastIndex(dsn, "/")+1:])
	}
	p.server = testenv.NewLink(t, servers[1].Addr())
	for i := range dsns {
		dsns[i] = strings.Replace(dsns[i], servers[1].Addr(), p.server.Addr, 1)
	}
	p.store = opened.Store(t, sqlstore.Config{Location: "mysql:" + strings.Join(dsns, ";"), StatementTimeout: limit})
	return p
}

// whole waits until a query of a town has no errors, and then compares its data.
func (town town) whole(t *testing.T, api *apitest.API) {
	t.Helper()
	const query = `{ users(by: {ids: [L1, L2, L3, D1, D2]}) { handle followingCount } }`
	var answer apitest.Answer
	must.Soon(t, "the answer is whole again", func() bool {
		answer = api.Ask(town.names.Replace(query), nil)
		return len(answer.Errors) == 0
	})
	answer.Is(town.names.Replace(`{"users": [{"handle": "uL1", "followingCount": 4}, {"handle": "uL2", "followingCount": 2},
		{"handle": "uL3", "followingCount": 0}, {"handle": "uD1", "followingCount": 2}, {"handle": "uD2", "followingCount": 1}]}`))
}

// A server that has gone silent, or that refuses connections, costs only the fields that need it, within
// the time limit of one statement. When it is back, answers are whole again.
func TestAServerThatIsOutCostsOnlyTheFieldsThatNeedIt(t *testing.T) {
	const limit = time.Second
	p := behindProxy(t, limit)
	town := makeTown(t, p.store)
	api := apitest.New(t, p.store, apitest.Options{Limits: apitest.NoLimits})
	town.whole(t, api)
	for name, begin := range map[string]func() (end func()){
		"silent": p.server.Silence,
		"down":   func() (end func()) { p.server.Cut(); return sync.OnceFunc(func() { p.server.Mend(t) }) },
	} {
		t.Run(name, func(t *testing.T) {
			end := begin()
			defer end()
			t.Run("meanwhile", func(t *testing.T) {
				for loss, l := range losses {
					t.Run(loss, func(t *testing.T) {
						t.Parallel()
						began := time.Now()
						town.check(t, api, l)
						check.Most(t, "the time that it took", time.Since(began), limit+5*time.Second)
					})
				}
			})
			end()
			town.whole(t, api)
		})
	}
}

// A query that meets a silent server on every level waits for it once. The fields that other servers can
// answer come well before the request's time ends.
func TestAQueryOfManyLevelsWaitsForASilentServerOnce(t *testing.T) {
	const levels, limit = 4, 2 * time.Second
	p := behindProxy(t, limit)
	first := makeChain(t, p.store, levels)
	query := fmt.Sprintf(`{ user(by: {id: %s}) { handle %s%s } }`, first,
		strings.Repeat(`followings(first: 2) { nodes { handle `, levels), strings.Repeat(`} }`, levels))
	api := apitest.New(t, p.store, apitest.Options{RequestTimeout: levels * limit})
	api.Ask(query, nil).Whole()
	defer p.server.Silence()()
	began := time.Now()
	answer := api.Ask(query, nil)
	took := time.Since(began)
	check.That(t, took >= limit && took <= 2*limit, "it took %s, want once %s and a little", took, limit)
	must.That(t, answer.Data != nil && len(answer.Errors) == levels, "got %s, want what the live shards know, and an error for each level", answer.Text)
	for _, e := range answer.Errors {
		check.That(t, strings.HasSuffix(e.At(), ".nodes.0") && e.Code() == "UNAVAILABLE", "%s at %s", e.Code(), e.At())
	}
	at := "user" + strings.Repeat(".followings.nodes.1", levels)
	check.That(t, answer.At(at+".handle") != nil, "%s is missing", at)
}

// Requests do not wait for a server that has been silent for a while. Otherwise they would soon be all that a gateway works on.
func TestAServerThatHasBeenSilentCostsNoTime(t *testing.T) {
	const limit, requests = time.Second, 40
	p := behindProxy(t, limit)
	town := makeTown(t, p.store)
	api := apitest.New(t, p.store, apitest.Options{})
	town.whole(t, api)
	end := p.server.Silence()
	defer end()
	began := time.Now()
	for range requests {
		answer := api.Ask(town.names.Replace(`{ users(by: {ids: [L1, D1]}) { handle } }`), nil)
		answer.FailsAt("UNAVAILABLE", "users.1")
		answer.DataIs(town.names.Replace(`{"users": [{"handle": "uL1"}, null]}`))
	}
	check.Most(t, fmt.Sprintf("the time of %d requests", requests), time.Since(began), requests*limit)
	began = time.Now()
	there := api.With("X-Test-Viewer", town.names.Replace("D1"))
	for range requests / 4 {
		there.Ask(`mutation { updateProfile(name: "d") { changed } }`, nil).FailsAt("UNAVAILABLE", "updateProfile")
	}
	check.Most(t, fmt.Sprintf("the time of %d writes", requests/4), time.Since(began), requests/4*limit)
	end()
	must.Soon(t, "the shard is well again", func() bool { return p.store.Ping(t.Context())[deadShard].Err == nil })
	api.Ask(town.names.Replace(`{ users(by: {ids: [D1]}) { handle } }`), nil).DataIs(town.names.Replace(`{"users": [{"handle": "uD1"}]}`))
}

// makeChain makes a chain of users on shards that answer. Each of them follows the next one and, more
// recently, a user on the shard that does not answer. It returns the first user.
func makeChain(t *testing.T, store storage.Store, length int) storage.UserID {
	t.Helper()
	shards := storage.NewShardMap(4)
	var live, dead []storage.UserID
	for id := storage.UserID(1); len(live) <= length || len(dead) < length; id++ {
		switch where := shards.Of(id); {
		case where == deadShard:
			dead = append(dead, id)
		case where < deadShard:
			live = append(live, id)
		default:
			continue
		}
		apitest.CreateUsers(t, store, storage.User{ID: id, Handle: "u" + id.String()})
	}
	for i := range length {
		apitest.Follow(t, store, live[i], live[i+1], dead[i])
	}
	return live[0]
}

// A statement that hangs on the server (here at a lock) costs what a dead shard costs. When the request
// gives up, the statement ends on the server, too.
func TestNothingGoesOnRunningForARequestThatGaveUp(t *testing.T) {
	const limit = time.Second
	p := behindProxy(t, limit)
	town := makeTown(t, p.store)
	api := apitest.New(t, p.store, apitest.Options{})
	town.whole(t, api)
	unlock := lockUsers(t, p.servers[1], p.databases[deadShard])

	began := time.Now()
	answer := api.Ask(town.names.Replace(`{ users(by: {ids: [L1, D1]}) { handle } }`), nil)
	answer.FailsAt("UNAVAILABLE", "users.1")
	answer.DataIs(town.names.Replace(`{"users": [{"handle": "uL1"}, null]}`))
	check.Most(t, "the time of the answer", time.Since(began), limit+5*time.Second)
	waitUntilIdle(t, p.servers[1], p.databases[deadShard], limit)

	for range 5 { // the client disconnects
		api.Abandon(100*time.Millisecond, town.names.Replace(`{ users(by: {ids: [L1, D1]}) { handle } }`), nil)
	}
	waitUntilIdle(t, p.servers[1], p.databases[deadShard], limit)

	unlock()
	town.whole(t, api)
}

// lockUsers keeps every reader of a database's users waiting until unlock is called.
func lockUsers(t *testing.T, server *testenv.MariaDBServer, database string) (unlock func()) {
	t.Helper()
	testenv.NotOn(t, "LOCK TABLES does nothing there", "tidb")
	conn, err := server.Open(t, database).Conn(t.Context())
	must.OK(t, err)
	_, err = conn.ExecContext(t.Context(), `LOCK TABLES users WRITE`)
	must.OK(t, err)
	unlock = func() { _, _ = conn.ExecContext(context.Background(), `UNLOCK TABLES`) }
	t.Cleanup(unlock)
	return unlock
}

// waitUntilIdle waits until no statement on users runs in a database. That must happen soon after the
// limit, while the lock is still held.
func waitUntilIdle(t *testing.T, server *testenv.MariaDBServer, database string, limit time.Duration) {
	t.Helper()
	db := server.Open(t, "")
	deadline := time.Now().Add(limit + 2*time.Second)
	for {
		running := runningIn(t, db, database)
		if running == 0 {
			return
		}
		must.That(t, !time.Now().After(deadline), "%d statements still run on the server", running)
		time.Sleep(20 * time.Millisecond)
	}
}

func runningIn(t *testing.T, db *sql.DB, database string) (n int) {
	t.Helper()
	row := db.QueryRow(`SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND command = 'Query' AND info LIKE '%FROM users%'`, database)
	must.OK(t, row.Scan(&n))
	return n
}
