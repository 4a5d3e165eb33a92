package private

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"
)

// Redis is a server that keeps nothing on disk.
type Redis struct {
	*Process
	address string
}

// StartRedis makes a server that works in a folder.
func StartRedis(ctx context.Context, folder string) (*Redis, error) {
	program, err := Find("redis-server")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	process, err := Start(filepath.Join(folder, "log"), nil, program,
		"--bind", "127.0.0.1", "--port", port, "--dir", folder, "--save", "", "--appendonly", "no")
	if err != nil {
		return nil, err
	}
	r := &Redis{process, address}
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer client.Close()
	if err := r.Answers(ctx, func(ctx context.Context) error { return client.Ping(ctx).Err() }); err != nil {
		_ = r.Stop()
		return nil, err
	}
	return r, nil
}

// URL is what `--redis` takes.
func (r *Redis) URL() string { return "redis://" + r.address + "/0" }
