package testenv

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/internal/child"
	"kith/internal/must"
)

// RedisCluster starts a cluster of n masters for t alone, without replicas, and removes it
// when t ends. Each may be stopped, killed and restarted by itself.
func RedisCluster(t testing.TB, n int, options ...string) []*RedisServer {
	t.Helper()
	const slots = 16384
	servers := make([]*RedisServer, n)
	ctx := t.Context()
	for i := range servers {
		servers[i] = Redis(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, options...)...)
		client := redis.NewClient(&redis.Options{Addr: servers[i].Addr()})
		defer client.Close()
		err := client.ClusterAddSlotsRange(ctx, i*slots/n, (i+1)*slots/n-1).Err()
		must.That(t, err == nil, "give slots to a Redis: %v", err)
		host, port, err := net.SplitHostPort(servers[0].Addr())
		must.OK(t, err)
		err = client.ClusterMeet(ctx, host, port).Err()
		must.That(t, err == nil, "join a Redis cluster: %v", err)
	}
	for _, server := range servers {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		if !poll(func() bool { return clusterOf(ctx, client) == fmt.Sprint("ok ", n) }) {
			t.Fatalf("the Redis cluster does not come up: %s; its log ends:\n%s", clusterOf(ctx, client), child.Tail(server.Log(), 20))
		}
	}
	return servers
}

// RedisClusterReplica starts a replica of a master of a cluster, and returns when it has the master's data.
func RedisClusterReplica(t testing.TB, master *RedisServer) *RedisServer {
	t.Helper()
	replica := Redis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
	client, of := redis.NewClient(&redis.Options{Addr: replica.Addr()}), redis.NewClient(&redis.Options{Addr: master.Addr()})
	defer client.Close()
	defer of.Close()
	host, port, err := net.SplitHostPort(master.Addr())
	must.OK(t, err)
	must.OK(t, client.ClusterMeet(t.Context(), host, port).Err())
	id := of.ClusterMyID(t.Context()).Val()
	must.Soon(t, "it is a replica", func() bool { return client.ClusterReplicate(t.Context(), id).Err() == nil })
	must.Soon(t, "it has what its master has", func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return replica
}

// clusterOf is a node's view: its state and how many nodes it knows.
func clusterOf(ctx context.Context, client *redis.Client) string {
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err.Error()
	}
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields["cluster_state"] + " " + fields["cluster_size"]
}
