package testenv_test

import (
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"kith/internal/must"
	"kith/internal/testenv"
)

func TestRedisClusterSpreadsKeys(t *testing.T) {
	servers := testenv.RedisCluster(t, 3)
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{servers[1].Addr()}})
	defer client.Close()
	ctx := t.Context()
	for i := range 100 {
		must.OK(t, client.Set(ctx, fmt.Sprint("key", i), i, 0).Err())
	}
	for i, server := range servers {
		one := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
		defer one.Close()
		if n, err := one.DBSize(ctx).Result(); err != nil || n == 0 || n == 100 {
			t.Errorf("server %d has %d of 100 keys: %v", i, n, err)
		}
	}
}
