package cluster

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A request that has found a shard silent reads what is on other shards as every request does: it is kept, and counted
// once. What is on the silent shard fails at once.
func TestOneSilentShardLeavesTheOthersKept(t *testing.T) {
	t.Parallel()
	servers := []*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t)}
	const limit = 2 * time.Second
	g := openFeedGatewayOf(t, Config{Redundancy: Sync}, sqlstore.Config{
		Location:         "mysql:" + strings.Join([]string{servers[0].CreateDatabase(t, "kith_0"), servers[1].CreateDatabase(t, "kith_1")}, ";"),
		StatementTimeout: limit,
	}, 0)
	silent, other := onTwoShards(t, g.caches.store)
	server := servers[g.caches.store.ShardOf(silent)]
	server.Freeze(t)
	defer server.Thaw(t)
	ctx := storage.RememberOutages(t.Context())
	users := func(ids ...storage.UserID) []storage.Result[storage.User] {
		return storage.UserLookups.Read(ctx, g.caches.Reader(), ids...)
	}
	must.That(t, users(silent)[0].Err != nil, "the server answers")
	hits, misses := countedUsers(t, g.registry, "kith_cache_hits_total"), countedUsers(t, g.registry, "kith_cache_misses_total")
	began := time.Now()
	r := users(silent, other)
	check.That(t, r[0].Err != nil && r[1].Err == nil && r[1].Found, "%+v", r)
	check.Most(t, "the time that it waits again", time.Since(began), limit-1)
	check.Equal(t, "misses that are counted", countedUsers(t, g.registry, "kith_cache_misses_total")-misses, 2)
	check.That(t, users(other)[0].Found, "the user on the other shard is not found")
	check.Equal(t, "hits: it is kept", countedUsers(t, g.registry, "kith_cache_hits_total")-hits, 1)
}

// A gateway that is cut off from Redis goes on writing. The others, which do not hear of that, keep nothing meanwhile.
func TestAGatewayCutOffFromRedisIsNoticed(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	options, err := redis.ParseURL(server.URL())
	must.OK(t, err)
	admin := redis.NewClient(options)
	defer admin.Close()
	do := func(words ...any) {
		t.Helper()
		must.OK(t, admin.Do(t.Context(), words...).Err())
	}
	do("ACL", "SETUSER", "first", "on", ">secret", "~*", "&*", "+@all")
	own, err := url.Parse(server.URL())
	must.OK(t, err)
	own.User = url.UserPassword("first", "secret")
	of := sqlstore.Config{Location: "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]}
	first := openFeedGatewayOf(t, Config{Redundancy: Sync, Redis: own.String()}, of, 0)
	second := openFeedGatewayOf(t, Config{Redundancy: Sync, Redis: server.URL()}, of, 0)
	must.OK(t, first.caches.store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}})[0].Err)
	name := func() string { return storage.UserLookups.Read(t.Context(), second.caches.Reader(), 1)[0].Value.Name }
	keeps := func() bool { return name() == "Anna" && countedUsers(t, second.registry, "kith_cache_hits_total") > 0 }
	must.Soon(t, "the second gateway keeps something", keeps)
	do("ACL", "SETUSER", "first", "off")
	n, err := admin.Do(t.Context(), "CLIENT", "KILL", "USER", "first").Int()
	must.That(t, n != 0 && err == nil, "%d connections are cut: %v", n, err)
	berta := "Berta"
	_, _, err = first.caches.store.(*sqlstore.Store).UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &berta}, storage.MicrosOf(time.Now()))
	must.OK(t, err)
	must.Soon(t, "the second gateway answers the new name", func() bool { return name() == "Berta" })
	do("ACL", "SETUSER", "first", "on")
	must.Soon(t, "the second gateway keeps something again", func() bool { return second.caches.local.IsOn() })
	check.Equal(t, "the answer afterwards", name(), "Berta")
}

// When the address of Redis leads to a promoted replica while the former master goes on answering, what is written before, meanwhile and
// through a gateway that starts then is seen by all.
func TestTheAddressOfRedisMoves(t *testing.T) {
	t.Parallel()
	former, promoted := testenv.Redis(t), testenv.Redis(t)
	replica := redis.NewClient(&redis.Options{Addr: promoted.Addr()})
	defer replica.Close()
	host, port, err := net.SplitHostPort(former.Addr())
	must.OK(t, err)
	must.OK(t, replica.ReplicaOf(t.Context(), host, port).Err())
	address := testenv.NewLink(t, former.Addr())
	d, of := Config{Redundancy: Sync, Redis: "redis://" + address.Addr}, sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}
	gateways := []*feedGateway{openFeedGatewayOf(t, d, of, 0), openFeedGatewayOf(t, d, of, 0)}
	must.OK(t, gateways[0].caches.store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}})[0].Err)
	name := func(g *feedGateway) string {
		return storage.UserLookups.Read(t.Context(), g.caches.Reader(), 1)[0].Value.Name
	}
	rename := func(g *feedGateway, to string) {
		_, _, err := g.caches.store.(*sqlstore.Store).UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &to}, storage.MicrosOf(time.Now()))
		must.OK(t, err)
		began := time.Now()
		must.Soon(t, to+" is seen by all", func() bool {
			for _, g := range gateways {
				if name(g) != to {
					return false
				}
			}
			return true
		})
		check.Most(t, "the time after which "+to+" is seen", time.Since(began), lookAgain+5*time.Second)
	}
	must.Soon(t, "gateways keep what they read", func() bool { return gateways[0].caches.local.IsOn() && gateways[1].caches.local.IsOn() })
	rename(gateways[0], "Berta")
	must.Soon(t, "the replica has all", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	must.OK(t, replica.ReplicaOf(t.Context(), "NO", "ONE").Err())
	address.Turn(promoted.Addr())
	gateways = append(gateways, openFeedGatewayOf(t, d, of, 0))
	must.Soon(t, "the new gateway keeps what it reads", func() bool { return gateways[2].caches.local.IsOn() })
	for i, to := range []string{"Clara", "Dora", "Emma", "Frida", "Gerda", "Hanna"} {
		rename(gateways[(i+2)%3], to)
	}
}

// What a gateway wrote just before it left may still be on its way to the one that is alone from then on, when that is cut off from Redis.
func TestAGatewayThatIsAloneForgetsWhenItIsCutOff(t *testing.T) {
	t.Parallel()
	server, of := testenv.Redis(t), sqlstore.Config{Location: "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}
	g, beside := openFeedGatewayOf(t, Config{Redundancy: Sync, Redis: server.URL()}, of, 0), opened.Store(t, of)
	must.OK(t, beside.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "anna", Name: "Anna"}})[0].Err)
	name := func() string { return storage.UserLookups.Read(t.Context(), g.caches.Reader(), 1)[0].Value.Name }
	must.Soon(t, "the gateway is connected", func() bool {
		gaps, _ := metered.Sum(t, g.registry, "kith_events_gaps_total")
		return gaps > 0
	})
	must.Soon(t, "the gateway keeps something", func() bool { return g.caches.local.IsOn() && name() == "Anna" })
	berta := "Berta"
	_, _, err := beside.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &berta}, storage.MicrosOf(time.Now()))
	must.OK(t, err)
	check.Equal(t, "the user of whom nothing is heard", name(), "Anna")
	server.Kill(t)
	must.Soon(t, "the gateway answers the new name", func() bool { return name() == "Berta" })
	check.That(t, g.caches.local.IsOn(), "nothing is kept, although the gateway is alone")
}

// countedUsers is the number of users that a counter of the cache shows.
func countedUsers(t *testing.T, registry *prometheus.Registry, name string) (n float64) {
	t.Helper()
	for of, counted := range metered.All(t, registry) {
		if strings.HasPrefix(of, name+" user") {
			n += counted
		}
	}
	return n
}

// A process that starts before the only server it knows of a cluster takes this for a single one, and has to be started again.
func TestAClusterThatComesLateIsNamed(t *testing.T) {
	t.Parallel()
	for _, server := range testenv.RedisCluster(t, 3) {
		late := NewRedis(&redis.UniversalOptions{Addrs: []string{server.Addr()}})
		defer late.Close()
		check.Says(t, server.Addr(), late.Ready(t.Context()), "one of the 3 masters of a cluster, which was not found at the start: start this again")
	}
}

func TestBlanksAroundARedisDoNotCount(t *testing.T) {
	for _, setting := range []string{"redis://a:1\n", "rediss://:x@a:1/0\r\n", "a:1\n", " a:1"} {
		options, err := redisOptions(setting)
		check.That(t, err == nil && len(options.Addrs) == 1 && options.Addrs[0] == "a:1", "%q: %v, %v", setting, options, err)
	}
}

// Each node of a cluster may have a certificate of its own, or all of them one of the name that is set, behind which they are IP addresses.
func TestCertificatesOfRedis(t *testing.T) {
	roots := x509.NewCertPool()
	serves := func(names ...string) (port string) {
		public, private, err := ed25519.GenerateKey(nil)
		must.OK(t, err)
		of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				of.IPAddresses = append(of.IPAddresses, ip)
			} else {
				of.DNSNames = append(of.DNSNames, name)
			}
		}
		der, err := x509.CreateCertificate(nil, of, of, public, private)
		must.OK(t, err)
		certificate, err := x509.ParseCertificate(der)
		must.OK(t, err)
		roots.AddCert(certificate)
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}})
		must.OK(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				_ = conn.(*tls.Conn).Handshake()
			}
		}()
		_, port, err = net.SplitHostPort(l.Addr().String())
		must.OK(t, err)
		return port
	}
	name, address, other := serves("localhost"), serves("127.0.0.1"), serves("redis.example.org")
	for _, c := range []struct {
		setting, node string
		passes        bool
	}{
		{"redis.example.org:1,localhost:" + name, "localhost:" + name, true},
		{"10.0.0.1:1,127.0.0.1:" + address, "127.0.0.1:" + address, true},
		{"redis.example.org:1", "127.0.0.1:" + other, true},
		{"redis.example.org:1", "localhost:" + other, false},
		{"10.0.0.1:1", "127.0.0.1:" + other, false},
	} {
		options, err := redisOptions("rediss://" + c.setting)
		must.OK(t, err)
		options.TLSConfig.RootCAs = roots
		client := redis.NewClient(options.Simple())
		conn, err := client.Options().Dialer(t.Context(), "tcp", c.node) // as the client of each node does
		check.That(t, (err == nil) == c.passes, "%s, of %s: %v", c.node, c.setting, err)
		if err == nil {
			conn.Close()
		}
		client.Close()
	}
}
