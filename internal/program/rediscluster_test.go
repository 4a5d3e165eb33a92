package program_test

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestManagedRedisCluster: of a cluster with TLS and a password, as clouds sell it, one address is enough, even that of a replica. A list
// may hold one that does not answer.
func TestManagedRedisCluster(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer server.Close()
	certificate := written(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	must.OK(t, err)
	key := written(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))

	masters := testenv.RedisCluster(t, 3)
	const account = "rediss://app:" + password + "@"
	var addrs []string
	var clients []*goredis.Client // whose connections outlive their right to connect, so that a slow answer must not end them
	for _, server := range append(masters, testenv.RedisClusterReplica(t, masters[0])) {
		client := goredis.NewClient(&goredis.Options{Addr: server.Addr(), ReadTimeout: time.Minute})
		defer client.Close()
		clients = append(clients, client)
		addrs = append(addrs, testenv.FreeAddress(t))
		_, port, err := net.SplitHostPort(addrs[len(addrs)-1])
		must.OK(t, err)
		for _, command := range [][]any{
			{"CONFIG", "SET", "tls-cert-file", certificate, "tls-key-file", key, "tls-auth-clients", "no", "tls-port", port, "cluster-announce-port", port},
			{"ACL", "SETUSER", "app", "on", ">" + password, "~*", "&*", "+@all"},
			{"ACL", "SETUSER", "default", "off"},
		} {
			must.OK(t, client.Do(t.Context(), command...).Err())
		}
	}
	for _, client := range clients {
		must.Soon(t, "it has heard of the ports with TLS", func() bool {
			slots, err := client.ClusterSlots(t.Context()).Result() //nolint:staticcheck // as the program asks
			must.OK(t, err)
			return !slices.ContainsFunc(slots, func(s goredis.ClusterSlot) bool { return !slices.Contains(addrs, s.Nodes[0].Addr) })
		})
	}
	for _, where := range append(addrs, closedPort(t)+","+addrs[0]) {
		end := kithtest.Run(t, kithtest.Env("SSL_CERT_FILE="+certificate),
			kithtest.Args("doctor", "--store", location(newSQLite(t, 1)...), "--redis", account+where))
		check.Has(t, where, end.Stdout+end.Stderr, "redis writes: it takes")
		check.Lacks(t, where, end.Stdout+end.Stderr, password)
	}
}
