package db

import (
	"fmt"
	"path/filepath"
	"strings"

	"kith/storage"

	"github.com/go-sql-driver/mysql"
)

// withCredentials is the address of an added shard with the user, password and options of the
// store's first shard. A stored address has none of these.
func (d *DB) withCredentials(address string) (string, error) {
	if d.Dialect == sqliteDialect {
		return address, nil
	}
	cfg, first, err := d.besideFirst(address)
	if err != nil {
		return "", err
	}
	first.Net, first.Addr, first.DBName = cfg.Net, cfg.Addr, cfg.DBName
	return first.FormatDSN(), nil
}

// besideFirst parses an address, and that of the first shard.
func (d *DB) besideFirst(address string) (cfg, first *mysql.Config, err error) {
	if cfg, err = parseDSN(address); err == nil {
		first, err = parseDSN(d.Shard(0).Address)
	}
	return cfg, first, err
}

// Plain is an address as kith_shards has it: without credentials, and independent of the folder in
// which a program is started. It returns an error if the credentials it has are not those of the
// first shard.
func (d *DB) Plain(address string) (string, error) {
	if d.Dialect == sqliteDialect {
		return d.plain(address)
	}
	cfg, first, err := d.besideFirst(address)
	if err != nil {
		return "", fmt.Errorf("the address of a shard is tcp(host:port)/database: %w", err)
	}
	if cfg.User != "" && (cfg.User != first.User || cfg.Passwd != first.Passwd) {
		return "", fmt.Errorf("%s is to be reached by the user and the password of the store's first shard: make that account there", cfg.Addr)
	}
	return d.plain(address)
}

// plain is an address without its credentials, whatever they are.
func (d *DB) plain(address string) (string, error) {
	if d.Dialect == sqliteDialect {
		return filepath.Abs(address)
	}
	cfg, err := parseDSN(address)
	if err != nil {
		return "", err
	}
	plain := mysql.NewConfig()
	plain.Net, plain.Addr, plain.DBName = cfg.Net, cfg.Addr, cfg.DBName
	return strings.TrimSuffix(plain.FormatDSN(), "?"), nil
}

// Addresses are the DSNs or paths of all shards, with credentials.
func (d *DB) Addresses() []string {
	return storage.Each(d.All(), func(n *Shard) string { return n.Address })
}
