// Package binlog replicates by acting as a replica: it reads the row-based binlog of every server
// of a store by GTID, and gives the rows of `following`, `friend_request`, `favorite` and `relation` to the shared
// [replication.Applier].
//
// However many replicators run, one of them works for each server: the holder of a named lock on
// that server. It continues from the checkpoint. If there is no checkpoint, or if the server's
// binlog does not reach back to it, the replicator records the server's GTID position, copies these
// tables in ranges of their key through the same applier, and follows the binlog from the recorded
// position. The overlap is harmless, since versions guard each write.
//
// The position advances only at commits, and only past transactions whose rows have been applied.
// The binlog also contains the applied rows and the checkpoint. Neither makes the replicator write
// again; otherwise it would feed itself without end.
//
// The replicator cannot follow everything: deleted edges that were not tombstones, TRUNCATE, DROP,
// statements logged as text, XA. If it meets one of these, it stops with a [StopError] that names the
// statement and the remedy. The other servers are followed further.
//
// In addition, a [Reader] passes the changes of all tables of edges to callers that compare them;
// it takes no lock and applies nothing.
package binlog
