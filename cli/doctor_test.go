package cli

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage/doctor"
)

// hidden is a password that no line may show.
const hidden = "geheim-zum-Beispiel-ist-dies-4711"

// diagnosed runs `kith doctor --output json`.
func diagnosed(t *testing.T, args ...string) (found doctor.List, code int) {
	t.Helper()
	code, out, complaints := ran(t, append([]string{"doctor", "--output=json", "--max-connections=100", "--jwt-secret=" + hidden}, args...)...)
	var report doctorReport
	err := json.Unmarshal([]byte(out), &report)
	must.That(t, err == nil, "%v: %s%s", err, out, complaints)
	check.Lacks(t, "what it prints", out+complaints, hidden)
	fails := report.Checks.Count(doctor.Fail)
	check.That(t, (code != 0) == (fails > 0) && report.Failures == fails, "code %d with %d failures", code, fails)
	return report.Checks, code
}

// expect looks for a finding of a check whose text and remedy contain these texts.
func expect(t *testing.T, found doctor.List, level doctor.Level, check, says, mend string) {
	t.Helper()
	for _, f := range found {
		if f.Level == level && f.Check == check && strings.Contains(f.Says, says) && strings.Contains(f.Mend, mend) {
			return
		}
	}
	t.Errorf("no %s %s with %q and %q in\n%+v", level, check, says, mend, found)
}

// soundOnceMigrated creates the tables of a store. After that there must be nothing to repair.
func soundOnceMigrated(t *testing.T, store string, checks ...string) doctor.List {
	t.Helper()
	done(t, "migrate", store)
	found, code := diagnosed(t, store)
	check.That(t, code == 0 && found.Count(doctor.Warn) == 0, "nothing is wrong, and it says %+v", found)
	for _, check := range checks {
		expect(t, found, doctor.OK, check, "", "")
	}
	return found
}

// If a store is sound, there is nothing to repair. Every damage is found, together with what repairs it.
func TestDoctorOnMariaDB(t *testing.T) {
	testenv.OnlyOn(t, "its words are the ones expected", "mariadb")
	t.Parallel()
	server := testenv.MariaDB(t, "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--binlog-expire-logs-seconds=864000")
	for _, name := range []string{"kith_a", "kith_b", "kith_c", "kith_d", "empty"} {
		server.CreateDatabase(t, name)
	}
	for user, rights := range map[string]string{"kith": "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP", "half": "SELECT, INSERT, UPDATE, DELETE"} {
		server.Exec(t, "CREATE USER "+user+" IDENTIFIED BY '"+hidden+"'")
		server.Exec(t, "GRANT "+rights+" ON `kith\\_%`.* TO "+user)
	}
	server.Exec(t, "GRANT SELECT ON empty.* TO kith")
	server.Exec(t, "GRANT REPLICATION SLAVE ON *.* TO kith")
	server.Exec(t, "CREATE USER encrypted IDENTIFIED BY '"+hidden+"' REQUIRE SSL")
	at := func(user, database string) string {
		return user + ":" + hidden + "@tcp(" + server.Addr() + ")/" + database
	}
	store := "--store=mysql:" + at("kith", "kith_a") + ";" + at("kith", "kith_b")

	found, _ := diagnosed(t, "--store=mysql:"+at("kith", "kith_a"))
	expect(t, found, doctor.OK, "tables", "there are none yet", "")
	soundOnceMigrated(t, store, "settings", "secrets", "open files", "version", "isolation", "durability", "memory", "encryption", "clock", "clocks", "grants", "tables", "layout", "connections", "binlog", "redis")

	grown := "--store=mysql:" + at("kith", "kith_c")
	soundOnceMigrated(t, grown)
	done(t, "shards", "add", grown, "tcp("+server.Addr()+")/kith_d")
	found, _ = diagnosed(t, grown) // it has two shards, and is told of one
	expect(t, found, doctor.OK, "binlog", "", "")

	for name, c := range map[string]struct {
		store       string
		level       doctor.Level
		check, says string
		mend        string
	}{
		"grants":          {at("half", "kith_a") + ";" + at("half", "kith_b"), doctor.Fail, "grants", "not granted: CREATE, ALTER", "GRANT CREATE, ALTER ON `kith\\_%`.* TO 'half'@'%';"},
		"binlog's grant":  {at("half", "kith_a") + ";" + at("half", "kith_b"), doctor.Fail, "binlog", "may not read the binlog", "GRANT REPLICATION SLAVE ON *.* TO 'half'@'%'"},
		"no right at all": {at("half", "empty"), doctor.Fail, "server", "Access denied", "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER ON `empty`.* TO 'half'@'%';"},
		"no database":     {"app:app@tcp(" + server.Addr() + ")/none", doctor.Fail, "server", "Unknown database", "CREATE DATABASE `none`;"},
		"password":        {"kith:x@tcp(" + server.Addr() + ")/kith_a", doctor.Fail, "server", "Access denied", "correct user and password"},
		"TLS it lacks":    {at("kith", "kith_a") + "?tls=true", doctor.Fail, "server", "does not support TLS", "leave tls out of the DSN"},
		"TLS it asks for": {at("encrypted", "kith_a"), doctor.Fail, "server", "Access denied", "add ?tls=true"},
		"order":           {at("kith", "kith_b") + ";" + at("kith", "kith_a"), doctor.Fail, "layout", "it is shard 1 of the store", "order"},
		"clock":           {at("kith", "kith_a") + ";" + at("kith", "kith_b") + "?timestamp=1700000000", doctor.Warn, "clock", "-", "NTP"},
		"clocks":          {at("kith", "kith_a") + ";" + at("kith", "kith_b") + "?timestamp=1700000000", doctor.Warn, "clocks", "ahead of that of shard 1", "NTP"},
	} {
		t.Run(name, func(t *testing.T) {
			found, _ := diagnosed(t, "--store=mysql:"+c.store)
			expect(t, found, c.level, c.check, c.says, c.mend)
		})
	}

	for _, c := range []struct {
		variable, value string
		level           doctor.Level
		check, mend     string
	}{
		{"binlog_row_metadata", "'NO_LOG'", doctor.Fail, "binlog", "SET GLOBAL binlog_row_metadata = 'FULL'"},
		{"binlog_format", "'STATEMENT'", doctor.Fail, "binlog_format", "SET GLOBAL binlog_format = 'ROW'"},
		{"binlog_expire_logs_seconds", "3600", doctor.Warn, "binlog", "binlog_expire_logs_seconds"},
		{"sync_binlog", "0", doctor.Warn, "durability", "sync_binlog"},
		{"innodb_flush_log_at_trx_commit", "2", doctor.Warn, "durability", "innodb_flush_log_at_trx_commit = 1"},
		{"max_connections", "30", doctor.Fail, "connections", "max_connections"},
		{"max_connections", "60", doctor.Warn, "connections", "max_connections"},
		{"max_allowed_packet", "1048576", doctor.Fail, "max_allowed_packet", "max_allowed_packet"},
		{"read_only", "1", doctor.Fail, "read_only", "read_only = OFF"},
	} {
		db := server.Open(t, "")
		var before string
		must.OK(t, db.QueryRow("SELECT @@GLOBAL."+c.variable).Scan(&before))
		server.Exec(t, "SET GLOBAL "+c.variable+" = "+c.value)
		found, _ := diagnosed(t, store)
		expect(t, found, c.level, c.check, "", c.mend)
		if before[0] > '9' {
			before = "'" + before + "'"
		}
		server.Exec(t, "SET GLOBAL "+c.variable+" = "+before)
	}

	server.Exec(t, "INSERT INTO kith_b.kith_migrations (version_id, is_applied) VALUES (99999, TRUE)")
	found, _ = diagnosed(t, store)
	expect(t, found, doctor.Fail, "tables", "they are at version 99999", "newer program")
}

// TestDoctorFindsSeveralServersBehindOneAddress: a load balancer before a server and its replicas answers with what a replica has not got
// yet.
func TestDoctorFindsSeveralServersBehindOneAddress(t *testing.T) {
	t.Parallel()
	servers := []*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t)}
	for _, server := range servers {
		server.CreateDatabase(t, "kith_a")
	}
	name := testenv.NewLink(t, servers[0].Addr())
	name.Turn(servers[0].Addr(), servers[1].Addr())
	found, _ := diagnosed(t, "--store=mysql:app:app@tcp("+name.Addr+")/kith_a")
	expect(t, found, doctor.Fail, "server", "leads to several servers", "takes writes")
}

func TestDoctorOnRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	sqlite := "--store=sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	set := func(settings ...string) {
		for i := 0; i < len(settings); i += 2 {
			must.OK(t, client.ConfigSet(t.Context(), settings[i], settings[i+1]).Err())
		}
	}
	must.OK(t, client.Do(t.Context(), "ACL", "SETUSER", "lame", "on", ">"+hidden, "~*", "&*", "+@all", "-@scripting").Err())

	set("maxmemory", "100mb", "maxmemory-policy", "volatile-lru")
	found, code := diagnosed(t, sqlite, "--redis="+server.URL())
	for _, check := range []string{"redis version", "redis writes", "redis memory", "redis persistence", "redis clock", "redis encryption"} {
		expect(t, found, doctor.OK, check, "", "")
	}
	check.That(t, code == 0, "%+v", found)
	found, _ = diagnosed(t, sqlite, "--redis="+server.URL(), "--redundancy=stream")
	expect(t, found, doctor.Warn, "redis memory", "volatile-lru", "noeviction")
	expect(t, found, doctor.Warn, "redis persistence", "appendonly is no", "appendonly yes")

	set("maxmemory-policy", "allkeys-lru")
	found, _ = diagnosed(t, sqlite, "--redis=redis://lame:"+hidden+"@"+server.Addr())
	expect(t, found, doctor.Fail, "redis memory", "allkeys-lru", "maxmemory-policy volatile-lru")
	expect(t, found, doctor.Fail, "redis writes", "NOPERM", "+@scripting")
	check.Equal(t, fmt.Sprintf("failures, of two causes: %+v", found), found.Count(doctor.Fail), 2)
	set("maxmemory-policy", "noeviction", "maxmemory", "1")
	found, _ = diagnosed(t, sqlite, "--redis="+server.URL())
	expect(t, found, doctor.Fail, "redis writes", "OOM", "memory")
	set("maxmemory-policy", "noeviction", "maxmemory", "0")
	found, _ = diagnosed(t, sqlite, "--redis="+server.URL())
	expect(t, found, doctor.Warn, "redis memory", "no maxmemory", "maxmemory")

	found, _ = diagnosed(t, sqlite, "--redis=redis://x:"+hidden+"@"+server.Addr())
	expect(t, found, doctor.Fail, "redis", "WRONGPASS", "")
	set("maxmemory", "100mb", "maxmemory-policy", "volatile-lru")
	may := func(rights ...any) {
		t.Helper()
		must.OK(t, client.Do(t.Context(), append([]any{"ACL", "SETUSER", "lame", "reset", "on", ">" + hidden}, rights...)...).Err())
		found, _ = diagnosed(t, sqlite, "--redis=redis://lame:"+hidden+"@"+server.Addr(), "--redis-cache")
	}
	may("~kith:*", "&kith:*", "+@all", "-@dangerous", "+info")
	expect(t, found, doctor.OK, "redis writes", "", "")
	may("~kith:*", "+@all") // as users are made: without channels
	expect(t, found, doctor.Fail, "redis writes", "channel", "&kith:*")
	may("~kith:*", "&kith:*", "+@all", "-info")
	expect(t, found, doctor.Fail, "redis version", "INFO is refused", "allow INFO")
}

// TestDoctorCountsAddedShards: a gateway connects to them as well.
func TestDoctorCountsAddedShards(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	store := "--store=sqlite:" + filepath.Join(folder, "kith.db")
	for _, args := range [][]string{{"migrate"}, {"shards", "add", filepath.Join(folder, "more.db")}} {
		done(t, append(args, store)...)
	}
	found, _ := diagnosed(t, store, "--shard-conns=100")
	expect(t, found, doctor.OK, "open files", "need up to 550", "") // 100 connections of clients, 125 to each shard, 200 others
}

// The command changes nothing: if there is no store, there is none afterwards.
func TestDoctorOnSQLite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "data", "kith.db")
	found, _ := diagnosed(t, "--store=sqlite:"+path)
	expect(t, found, doctor.OK, "file", "none yet", "")
	expect(t, found, doctor.OK, "disk", "free in "+folder, "")
	left, err := os.ReadDir(folder)
	check.That(t, err == nil && len(left) == 0, "it has made %v: %v", left, err)
	done(t, "migrate", "--store=sqlite:"+path)
	found, _ = diagnosed(t, "--store=sqlite:"+path)
	expect(t, found, doctor.OK, "file", "journal mode wal", "")
	expect(t, found, doctor.OK, "tables", "version", "")
	must.OK(t, os.WriteFile(path+"2", bytes.Repeat([]byte("no database "), 500), 0o600))
	found, _ = diagnosed(t, "--store=sqlite:"+path+"2")
	expect(t, found, doctor.Fail, "file", "not a database", "")
}

// Instead of starting, it reports wrong settings, even several at once, each with its flag and variable.
func TestDoctorChecksSettings(t *testing.T) {
	t.Parallel()
	found, _ := diagnosed(t, "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--feed=push", "--only-trusted=on", "--token-ttl=0s")
	for _, flag := range []string{"feed", "only-trusted", "token-ttl"} {
		expect(t, found, doctor.Fail, "settings", "--"+flag+" (KITH_", "correct the setting")
	}
	found, _ = diagnosed(t, "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--max-connections=2000000000", "--cache-bytes=1000TiB")
	expect(t, found, doctor.Warn, "open files", "", "--max-connections")
	expect(t, found, doctor.Warn, "caches", "--cache-bytes is 1000 TiB", "--cache-bytes")

	keys, issuers := filepath.Join(t.TempDir(), "jwks.json"), filepath.Join(t.TempDir(), "issuers.json")
	found, _ = diagnosed(t, "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--jwt-secret="+strings.Repeat("0", 64))
	expect(t, found, doctor.Fail, "settings", "openssl rand -hex 32", "correct the setting")
	public := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))[ed25519.SeedSize:]
	key := `{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "` + base64.RawURLEncoding.EncodeToString(public) + `"}]}`
	must.OK(t, os.WriteFile(keys, []byte(key), 0o600))
	list := fmt.Sprintf(`[{"issuer": "a", "jwks": %[1]q, "audience": ["kith"], "subjects": "mapped", "scopes": ["act-as", "admin"]}, {"issuer": "b", "jwks": %[1]q, "audience": ["kith"], "subjects": "ids"}]`, keys)
	must.OK(t, os.WriteFile(issuers, []byte(list), 0o600))
	found, _ = diagnosed(t, "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--identity="+issuers)
	expect(t, found, doctor.OK, "scopes", "may have act-as and admin", "")
	expect(t, found, doctor.Warn, "scopes", "may have none; it names users by their ids: it acts as any user", "mapped")

	secret := filepath.Join(t.TempDir(), "secret")
	must.OK(t, os.WriteFile(secret, []byte("c0ffee51deadbeef4a1b9d7e3f60825ac0ffee51deadbeef4a1b9d7e3f60825b"), 0o604))
	found, _ = diagnosed(t, "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--jwt-secret=", "--jwt-secret-file="+secret)
	expect(t, found, doctor.Warn, "secrets", "can read the file", "chmod o= "+secret)
	for text, warnings := range map[string]int{"": 0, "jwt-secret: " + hidden: 1, "redis: redis://:" + hidden + "@127.0.0.1:1": 1, "cors-origin: https://a.example": 0} {
		config := filepath.Join(t.TempDir(), "kith.yaml")
		must.OK(t, os.WriteFile(config, []byte(text), 0o604))
		found, _ = diagnosed(t, "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--config="+config)
		found = slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.Mend != "chmod o= "+config })
		check.That(t, found.Count(doctor.Warn) == warnings, "with %q in a file that all can read, it says %+v", text, found)
	}

	code, out, complaints := ran(t, "doctor", "--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
	check.Equal(t, "the code of doctor that says "+complaints, code, 0)
	check.Has(t, "what is printed", out, "ok    settings: ", "warn  secrets: no secret", "\n      → set KITH_JWT_SECRET", ", failures: ")
}
