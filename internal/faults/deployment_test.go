package faults_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"kith/accounts/identity"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// patience bounds every wait. It is generous, and is reached only if something is wrong.
const patience = 90 * time.Second

// secret signs the tokens of every deployment.
const secret = "the fault tests' secret, known to everybody"

// deployment is a store on two servers and Redis, with two gateways that do not replicate. In the
// modes that need replicators, it has some.
type deployment struct {
	mode        string
	servers     testenv.Servers
	dsns        []string
	sqlite      string               // the store's file, instead of servers
	redis       *testenv.RedisServer // nil without Redis
	inRedis     bool                 // gateways keep users and lists there
	gateways    []*node
	replicators []*node
	shardMap    *storage.ShardMap
	shards      []*sql.DB // for the test's own reads
	issuer      *identity.Issuer
}

// node is one place of a deployment. The processes that run there follow one another.
type node struct {
	name    string
	launch  func(testing.TB) *life
	options []kithtest.Option    // for the next launches
	now     atomic.Pointer[life] // nil while it is down
	lives   int
}

// life is one process from its start to its end.
type life struct {
	*kithtest.Command
	gateway *kithtest.Gateway // nil if it serves nothing
	name    string
	killed  atomic.Bool
}

// deploy starts a deployment with users 1 … n.
func deploy(t testing.TB, mode string, users int) *deployment {
	t.Helper()
	return deployOn(t, testenv.SharedMariaDB(t, 2), mode, users)
}

// deployOn starts a deployment on given servers.
func deployOn(t testing.TB, servers testenv.Servers, mode string, users int) *deployment {
	t.Helper()
	d := prepare(t, servers, mode, users)
	d.twoGateways("--no-replicate")
	switch mode {
	case "stream":
		d.replicators = []*node{d.serving("replicator 0"), d.serving("replicator 1")}
	case "binlog":
		d.replicators = []*node{d.replicating("kith replicate"), d.serving("replicator")}
	}
	d.start(t)
	return d
}

// prepare makes a deployment whose nodes are started later.
func prepare(t testing.TB, servers testenv.Servers, mode string, users int) *deployment {
	t.Helper()
	return assemble(t, servers, servers.FreshDatabases(t, 2), testenv.Redis(t, testenv.AppendOnly...), mode, users)
}

// assemble makes a deployment of databases and a Redis.
func assemble(t testing.TB, servers testenv.Servers, dsns []string, redis *testenv.RedisServer, mode string, users int) *deployment {
	t.Helper()
	if mode == "binlog" {
		testenv.NeedsBinlog(t)
	}
	d := &deployment{mode: mode, servers: servers, dsns: dsns, redis: redis, shardMap: storage.NewShardMap(len(dsns))}
	d.begin(t, users)
	return d
}

// begin creates the tables, the users, and the issuer that signs their tokens.
func (d *deployment) begin(t testing.TB, users int) {
	t.Helper()
	d.layOut(t, users)
	d.signs(t)
}

// signs creates the issuer that signs the users' tokens.
func (d *deployment) signs(t testing.TB) {
	t.Helper()
	var err error
	d.issuer, err = identity.NewIssuer(identity.IssuerConfig{Secrets: identity.NewSecrets([]byte(secret))})
	must.OK(t, err)
}

// layOut creates the tables and the users.
func (d *deployment) layOut(t testing.TB, users int) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: d.location()})
	must.OK(t, err)
	defer store.Close()
	list := make([]storage.User, users)
	for i := range list {
		id := storage.UserID(i + 1)
		list[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "User " + id.String(), CreatedAt: 1, UpdatedAt: 1}
	}
	for some := range slices.Chunk(list, 1000) {
		must.All(t, store.CreateUsers(t.Context(), some))
	}
	d.lookIn(t, d.dsns...)
}

// lookIn opens databases for the test itself.
func (d *deployment) lookIn(t testing.TB, dsns ...string) {
	t.Helper()
	for _, dsn := range dsns {
		db, err := sql.Open("mysql", dsn)
		must.OK(t, err)
		t.Cleanup(func() { _ = db.Close() })
		d.shards = append(d.shards, db)
	}
}

func (d *deployment) location() string {
	if d.sqlite != "" {
		return "sqlite:" + d.sqlite
	}
	return "mysql:" + strings.Join(d.dsns, ";")
}

// serving makes a node for gateways of this deployment.
func (d *deployment) serving(name string, more ...string) *node {
	args := append(append(d.settings(), "--jwt-secret", secret), more...)
	n := &node{name: name}
	n.launch = func(t testing.TB) *life {
		g := kithtest.Serve(t, append(n.options, kithtest.Args(args...))...)
		return &life{Command: g.Command, gateway: g}
	}
	return n
}

// twoGateways makes the nodes of two gateways with the same arguments.
func (d *deployment) twoGateways(more ...string) {
	d.gateways = []*node{d.serving("gateway 0", more...), d.serving("gateway 1", more...)}
}

// replicating makes a node for `kith replicate`.
func (d *deployment) replicating(name string, more ...string) *node {
	n := &node{name: name}
	n.launch = func(t testing.TB) *life {
		args := append(append([]string{"replicate"}, d.settings()...), more...)
		return &life{Command: kithtest.Launch(t, append(n.options, kithtest.Args(args...))...)}
	}
	return n
}

// command returns a function that starts a command of the program on this deployment, unless args name another store.
func (d *deployment) command(args ...string) func(testing.TB) *life {
	if settings := d.settings(); slices.Contains(args, "--store") {
		args = append(args, settings[2:]...)
	} else {
		args = append(args, settings...)
	}
	return func(t testing.TB) *life { return &life{Command: kithtest.Launch(t, kithtest.Args(args...))} }
}

func (d *deployment) settings() []string {
	list := []string{"--store", d.location(), "--redundancy", d.mode, "--log-level", "warn"}
	if d.redis != nil {
		list = append(list, "--redis", d.redis.URL())
	}
	if d.inRedis {
		list = append(list, "--redis-cache")
	}
	return list
}

func (d *deployment) nodes() []*node {
	return append(append([]*node{}, d.gateways...), d.replicators...)
}

// start starts all nodes.
func (d *deployment) start(t testing.TB) {
	t.Helper()
	for _, n := range d.nodes() {
		n.start(t)
	}
}

func (n *node) start(t testing.TB) {
	t.Helper()
	l := n.launch(t)
	n.lives++
	l.name = fmt.Sprintf("%s, life %d", n.name, n.lives)
	n.now.Store(l)
}

// kill ends the process like a crash.
func (n *node) kill(t testing.TB) {
	t.Helper()
	l := n.now.Swap(nil)
	l.killed.Store(true)
	l.wasWell(t)
	l.Kill(t)
}

// wasWell checks that the process runs, and has logged no error. An example is a binlog that cannot
// be followed from the last position: copying everything again would hide lost rows.
func (l *life) wasWell(t testing.TB) {
	t.Helper()
	if l.Ended() && !l.metNoServer() {
		t.Errorf("%s has ended by itself: %+v", l.name, l.Wait(t))
	}
	for line := range strings.Lines(l.Stderr()) {
		check.Lacks(t, l.name, line, "level=ERROR")
	}
}

// metNoServer reports whether the program was started at the very moment at which a server was
// killed, and could not open the store or reach Redis. Then a supervisor starts it again.
func (l *life) metNoServer() bool {
	for line := range strings.Lines(l.Stderr()) { // warnings may come before it
		for _, setting := range []string{"--store (KITH_STORE)", "--redis (KITH_REDIS)"} {
			if strings.HasPrefix(line, "kith: "+setting+": ") {
				return strings.Contains(line, "connection") || strings.Contains(line, "EOF")
			}
		}
	}
	return false
}

// supervise begins a new life if the last one met no server.
func (n *node) supervise(t testing.TB) {
	t.Helper()
	if l := n.now.Load(); l != nil && l.Ended() && l.metNoServer() {
		n.start(t)
	}
}

func (d *deployment) allWell(t testing.TB) {
	t.Helper()
	for _, n := range d.nodes() {
		n.now.Load().wasWell(t)
	}
}

// token is a bearer token of a user.
func (d *deployment) token(t testing.TB, id int64) string {
	t.Helper()
	token, _, err := d.issuer.Issue(storage.UserID(id), 0)
	must.OK(t, err)
	return token
}

// admin is a connection to Redis.
func (d *deployment) admin(t testing.TB) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(d.redis.URL())
	must.OK(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// shardOf is the shard that owns a user.
func (d *deployment) shardOf(id int64) int { return d.shardMap.Of(storage.UserID(id)) }

// onShard returns the first n users whose shard is s.
func (d *deployment) onShard(s, n int) []int64 {
	var list []int64
	for id := int64(1); len(list) < n; id++ {
		if d.shardOf(id) == s {
			list = append(list, id)
		}
	}
	return list
}

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); kithtest.Pause(began) {
		must.That(t, time.Since(began) <= patience, "%s: not within %s", what, patience)
	}
}

// total adds up one number of each shard.
func (d *deployment) total(t testing.TB, query string, args ...any) (n int64) {
	t.Helper()
	for shard := range d.shards {
		n += d.number(t, shard, query, args...)
	}
	return n
}

// number reads one number from a shard.
func (d *deployment) number(t testing.TB, shard int, query string, args ...any) (n int64) {
	t.Helper()
	must.OK(t, d.shards[shard].QueryRowContext(context.Background(), query, args...).Scan(&n))
	return n
}
