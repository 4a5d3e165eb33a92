// Package replica is the replica's end of the protocol by which MySQL and MariaDB send their binlog: [Open] signs in, [Conn.Start]
// says where to begin, [Conn.Next] gives one [Event] after another. Of an event, only what replication asks for is
// decoded.
//
// Nothing in a packet is trusted: each length is compared with the bytes that are there, and memory is taken as bytes arrive.
//
// The protocol is described in MySQL's source documentation (https://dev.mysql.com/doc/dev/mysql-server/latest/, "Client/Server
// Protocol" and "Replication"; in the comments here, "page_…" is a page of it), and by MariaDB in
// https://mariadb.com/kb/en/clientserver-protocol/ and https://mariadb.com/kb/en/replication-protocol/.
package replica
