// Package deployment is how the processes on one store tell one another of changes: gateways,
// replicators and commands, the caches in their memory, and the one that they share in Redis.
//
// Whoever has written, or has carried rows to their other side, tells after the commit, in this
// order:
//
//  1. Redis, if there is one, by one command for each user whose row has changed, with the counts
//     that the write has left. It comes first: whoever hears of the change from then on reads
//     there, and must not find what was before. If Redis cannot be told, this process does not read
//     it until it could, and then tells everybody what was old there (events.Corrected).
//  2. The cache in its own memory, before the writer is answered: so it sees its own writes.
//  3. The bus, for subscriptions and for the caches of the others. A row is told there when it is
//     on both sides; users are at once.
//
// A writer may be killed between its commit and telling. In the mode binlog the log tells in its
// place: the replicator sees each change, tells Redis what its process has not told, carries the
// row, and then tells the bus. In the other modes writers note in Redis before a commit whom it
// changes, and take the note back when all have been told; others sweep the notes of the dead
// (storage/intents).
//
// A process that hears nothing of the others must not keep anything in memory: the bus tells when
// it is cut off from Redis, and without a Redis leases in the store tell whether there are others.
package deployment

// Config says what the processes on one store share. They all have the same.
type Config struct {
	// Redis is beside the store: redis://…, or host:port,host:port… of a cluster. Empty: there
	// is none.
	Redis string

	// RedisCache keeps users and lists in it as well.
	RedisCache bool

	// Redundancy is the mode: [Sync], [Stream] or [Binlog].
	Redundancy string

	// DSNs are the store's shards, for whoever follows their logs in the mode Binlog.
	DSNs []string
}

// The redundancy modes.
const (
	Sync   = "sync"
	Stream = "stream"
	Binlog = "binlog"
)
