// Package binlog replicates by being a replica: of every server of a store it reads
// the row-based binlog by GTID, as a replica would, and gives the rows of
// `following` and `friend_request` to the shared [replication.Applier].
//
// For each server, whatever number of replicators run, one works: the holder of a
// named lock on that server. It goes on from the checkpoint; without one, or when
// the server's binlog does not reach back to it, it records the server's GTID
// position, copies both tables in ranges of their key through the same applier, and
// follows the binlog from the recorded position. The overlap is harmless, since
// applying is guarded by versions.
//
// The position advances at commits only, and only behind transactions whose rows
// have been applied. What is applied is in the binlog, too, as is the checkpoint:
// neither makes the replicator write again, or it would feed itself for ever.
//
// What the binlog does not say row by row, the replicator cannot follow: deleted edges
// that were no tombstones, TRUNCATE, DROP, statements logged as text, XA. There
// it stops, with a [StopError] that names the statement and the way out. Stopping
// is per server; see [Config.FailFast].
//
// Besides, a [Reader] gives the changes of all tables of edges to whoever compares
// them; it takes no lock and applies nothing.
package binlog
