// Package cluster defines how the processes on one store notify one another of changes: gateways,
// replicators and commands, the caches in their memory, and the cache that they share in Redis.
//
// A process that has written rows, or has propagated them to their other side, reports them
// after the commit, in this order:
//
//  1. Redis, if there is one, by one command for each user whose row has changed, with the version
//     that the write has left. Redis comes first because every process that hears of the change
//     reads there, and must not find the old value. If the change cannot be delivered, this process
//     does not read Redis until it has been, and then notifies all processes of what was old there
//     (storage.Missed).
//  2. The cache in its own memory, before the writer gets its answer: so the writer sees its own
//     writes.
//  3. The bus, for subscriptions and for the caches of the other processes, with counts and profiles, so that these
//     need not be read again. An inverse row is published by whoever propagates it: then it is on both sides.
//
// A writer may be killed between its commit and its report. In the mode binlog the log takes the
// writer's place: the replicator sees each change, reports it to Redis once more, propagates the
// row, and then publishes it on the bus. In the other modes all
// caches forget everything when a process no longer renews its lease in the store (vanished.go); a
// process gives its lease back only if it has reported everything.
//
// A process that hears nothing from the others must not keep anything in memory. The bus notices
// when it is cut off from Redis; without a Redis, leases in the store show whether there are other
// processes.
package cluster

import (
	"kith/replication"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// Store is the store that processes share, as each of them has opened it.
type Store interface {
	storage.Store
	localcache.Packer
	localcache.Ranker
	replication.LogStore
	storage.Checkpoints

	// UUID distinguishes the store from others.
	UUID() string
	// ShardOf is the ordinal of a user's shard.
	ShardOf(user storage.UserID) int
	// HasLog reports whether each shard has a relation_log in place of a binlog.
	HasLog() bool
	// Addresses are those of the shards' databases, by ordinal.
	Addresses() []string
}

// Config is what the processes on one store share. All of them have the same.
type Config struct {
	// Redis is the Redis beside the store: redis://user:password@host:port/0 or host:port. Of a cluster that may be any server, or several,
	// host:port,host:port. Empty: none.
	Redis string

	// RedisCache means that users and lists are kept in Redis as well.
	RedisCache bool

	// Redundancy is the mode: [Sync], [Stream] or [Binlog].
	Redundancy string
}

// The redundancy modes.
const (
	Sync   = "sync"
	Stream = "stream"
	Binlog = "binlog"
)
