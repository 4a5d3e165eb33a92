-- Run once on each server, after the user kith has been created.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP ON `kith\_%`.* TO 'kith'@'%';
-- To read the binlog, and to check that it covers all databases.
GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'kith'@'%';
