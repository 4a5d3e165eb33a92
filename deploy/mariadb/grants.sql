-- Run once on each server, after the user kith has been made.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP ON `kith\_%`.* TO 'kith'@'%';
-- To read the binlog, and to see whether it has all databases.
GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'kith'@'%';
