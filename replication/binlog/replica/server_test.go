package replica_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication/binlog/replica"
	"kith/storage/doctor"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// isMySQL reports whether the server is MySQL's, where some statements differ.
func isMySQL() bool { return testenv.Engine() == "mysql" }

// server is a server with the database kith.
type server struct {
	*testenv.MariaDBServer
	t     *testing.T
	dsn   string
	db    *sql.DB
	start replica.Set // what was written before the test did anything
}

func newServer(t *testing.T, options ...string) *server {
	t.Helper()
	testenv.NeedsBinlog(t)
	s := &server{MariaDBServer: testenv.MariaDB(t, append(options, "--max-allowed-packet=64M")...), t: t}
	s.dsn = s.CreateDatabase(t, "kith")
	s.db = s.Open(t, "kith")
	s.db.SetMaxOpenConns(1) // so that variables of the session hold
	s.start = s.end()
	return s
}

func (s *server) do(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.db.Exec(statement); err != nil {
			s.t.Fatalf("%.200s: %v", statement, err)
		}
	}
}

// end is what the server has written.
func (s *server) end() replica.Set {
	s.t.Helper()
	variable := "gtid_binlog_pos"
	if isMySQL() {
		variable = "gtid_executed"
	}
	var text string
	must.OK(s.t, s.db.QueryRow("SELECT @@GLOBAL."+variable).Scan(&text))
	set, err := replica.ParseSet(text)
	must.OK(s.t, err)
	return set
}

// open signs in by a DSN.
func (s *server) open(dsn string) (*replica.Conn, error) {
	s.t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	must.OK(s.t, err)
	raw, err := net.Dial(cfg.Net, cfg.Addr)
	must.OK(s.t, err)
	s.t.Cleanup(func() { raw.Close() })
	must.OK(s.t, raw.SetDeadline(time.Now().Add(time.Minute)))
	return replica.Open(s.t.Context(), raw, cfg)
}

const heartbeatEvent = 27

// begins reports whether a transaction begins with the event.
func begins(e replica.Event) bool {
	return e.Kind == replica.GTIDEvent || e.Kind == replica.TaggedEvent || e.Kind == replica.MariaGTIDEvent
}

// written reads what was written after a set, up to the first heartbeat after all of it. Events of compressed transactions are
// among the others. take may keep nothing of an event.
func (s *server) written(from replica.Start, take func(replica.Event)) {
	s.t.Helper()
	c, err := s.open(s.dsn)
	must.OK(s.t, err)
	from.ID, from.Heartbeat = 1<<31+7, 100*time.Millisecond
	seen, end := from.After.Clone(), s.end()
	must.OK(s.t, c.Start(from))
	for {
		e, err := c.Next()
		must.OK(s.t, err)
		if e.Kind == heartbeatEvent && seen.Contains(end) {
			return
		}
		if begins(e) {
			b, err := e.Begin()
			must.OK(s.t, err)
			seen.Add(b.GTID)
		}
		take(e)
		if e.Kind == replica.PayloadEvent {
			for inner, err := range e.Payload() {
				must.OK(s.t, err)
				take(inner)
			}
		}
	}
}

// image is a row as far as tests look at it: id, v and last.
type image [3]replica.Value

func num(n int64) replica.Value { return replica.Value{N: n, OK: true} }

// change is what an event says about a row.
type change struct {
	what        replica.Operation
	table       string
	before, row image
}

func slot(name string) int { return slices.Index([]string{"id", "v", "last"}, name) }

// changes reads the rows that were written after a set.
func (s *server) changes(after replica.Set) (all []change, kinds map[replica.Kind]int) {
	s.t.Helper()
	tables := map[uint64]*replica.Table{}
	kinds = map[replica.Kind]int{}
	s.written(replica.Start{After: after}, func(e replica.Event) {
		kinds[e.Kind]++
		if e.Kind != replica.TableEvent && e.Operation() == 0 {
			return
		}
		id, err := e.TableID()
		must.OK(s.t, err)
		if e.Kind == replica.TableEvent {
			tables[id], err = e.Table(slot)
			must.OK(s.t, err)
			return
		}
		rows, err := tables[id].Rows(e)
		must.OK(s.t, err)
		for {
			c := change{what: rows.Kind, table: tables[id].Name}
			more, err := rows.Next(c.before[:], c.row[:])
			must.OK(s.t, err)
			if !more {
				return
			}
			all = append(all, c)
		}
	})
	return all, kinds
}

// columnTypes are those of tables that others may have, with a value of each, and with the integer that is read of it.
func columnTypes() map[string]struct {
	value string
	read  replica.Value
} {
	type kind = struct {
		value string
		read  replica.Value
	}
	all := map[string]kind{
		"TINYINT": {"-128", num(-128)}, "TINYINT UNSIGNED": {"255", num(255)}, "BOOL": {"TRUE", num(1)},
		"SMALLINT": {"-32768", num(-32768)}, "SMALLINT UNSIGNED": {"65535", num(65535)},
		"MEDIUMINT": {"-8388608", num(-8388608)}, "MEDIUMINT UNSIGNED": {"16777215", num(16777215)},
		"INT": {"-2147483648", num(-2147483648)}, "INT UNSIGNED": {"4294967295", num(4294967295)},
		"BIGINT": {"-9223372036854775808", num(-9223372036854775808)}, "BIGINT UNSIGNED": {"9223372036854775807", num(9223372036854775807)},
		"BIGINT UNSIGNED NULL": {"9223372036854775808", replica.Value{}}, // more than an id can be
	}
	for name, value := range map[string]string{
		"FLOAT": "1.5", "DOUBLE": "-2.5", "DECIMAL(30,4)": "12345678901234567890.1234", "DECIMAL(5,5)": "0.12345", "DECIMAL(18,9)": "-1.5", "DECIMAL(65,30)": "7",
		"BIT(1)": "b'1'", "BIT(7)": "b'101'", "BIT(8)": "b'101'", "BIT(20)": "b'10101010101010101010'", "BIT(64)": "b'1'",
		"YEAR": "2020", "DATE": "'2020-02-03'",
		"TIME": "'-10:00:00'", "TIME(1)": "'10:00:00.1'", "TIME(3)": "'10:00:00.123'", "TIME(6)": "'10:00:00.123456'",
		"DATETIME": "'2020-02-03 10:00:00'", "DATETIME(2)": "'2020-02-03 10:00:00.12'", "DATETIME(6)": "'2020-02-03 10:00:00.123456'",
		"TIMESTAMP NULL": "'2020-02-03 10:00:00'", "TIMESTAMP(3) NULL": "'2020-02-03 10:00:00.123'",
		"CHAR(10)": "'abc'", "CHAR(200)": "REPEAT('ä', 150)", "BINARY(5)": "'abc'", "BINARY(255)": "'abc'",
		"VARCHAR(20)": "'abc'", "VARCHAR(300)": "REPEAT('ä', 300)", "VARBINARY(255)": "REPEAT('x', 255)", "VARBINARY(256)": "REPEAT('x', 256)",
		"TINYTEXT": "REPEAT('x', 255)", "TEXT": "REPEAT('x', 1000)", "MEDIUMBLOB": "REPEAT('x', 70000)", "LONGTEXT": "'x'",
		"ENUM('x','y')": "'y'", "SET('p','q')": "'p,q'", "GEOMETRY": "POINT(1, 2)", "JSON": `'{"a": [1, 2, "x"]}'`,
	} {
		all[name] = kind{value: value}
	}
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("'v%d'", i))
	}
	all["ENUM("+strings.Join(many, ",")+")"] = kind{value: "'v299'"}
	all["SET("+strings.Join(many[:40], ",")+")"] = kind{value: "'v1,v39'"}
	own := map[string]string{"BLOB COMPRESSED": "REPEAT('z', 1000)", "VARCHAR(100) COMPRESSED": "REPEAT('y', 90)", "UUID": "UUID()", "INET6": "'::1'", "INET4": "'127.0.0.1'"}
	if isMySQL() {
		own = map[string]string{"VECTOR(3)": "TO_VECTOR('[1,2,3]')"}
	}
	for name, value := range own {
		all[name] = kind{value: value}
	}
	return all
}

// Rows of every type are read to their end by real servers' events, in every kind of event about rows.
func TestRowsOfEveryType(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	want := map[string][]change{}
	n := 0
	for definition, kind := range columnTypes() {
		n++
		table := fmt.Sprintf("t%d", n)
		s.do("CREATE TABLE "+table+" (first TINYINT DEFAULT 1, v "+definition+", last SMALLINT, id BIGINT PRIMARY KEY)",
			"INSERT INTO "+table+" (id, v, last) VALUES (1, "+kind.value+", -7), (2, NULL, 300)",
			"UPDATE "+table+" SET last = last + 1",
			"DELETE FROM "+table+" WHERE id = 1")
		a, b := image{num(1), kind.read, num(-7)}, image{num(2), {}, num(300)}
		a2, b2 := image{num(1), kind.read, num(-6)}, image{num(2), {}, num(301)}
		want[table] = []change{{replica.Inserted, definition, image{}, a}, {replica.Inserted, definition, image{}, b},
			{replica.Updated, definition, a, a2}, {replica.Updated, definition, b, b2}, {replica.Deleted, definition, image{}, a2}}
	}
	got := map[string][]change{}
	all, _ := s.changes(s.start)
	for _, c := range all {
		got[c.table] = append(got[c.table], c)
	}
	for table, list := range want {
		for i := range list {
			definition := list[i].table
			if list[i].table = table; i >= len(got[table]) || got[table][i] != list[i] {
				t.Errorf("%.60s: %+v, want change %d to be %+v", definition, got[table], i, list[i])
				break
			}
		}
	}
}

// A transaction is known by its GTID, and a stream begins after a set.
func TestTransactions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.do("CREATE TABLE a (id BIGINT PRIMARY KEY)")
	created := s.end()
	began := time.Now().Unix()
	s.do("INSERT INTO a VALUES (1)", "BEGIN", "INSERT INTO a VALUES (2)", "SAVEPOINT s", "INSERT INTO a VALUES (3)", "COMMIT")
	s.do("XA START 'x'", "INSERT INTO a VALUES (4)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
	if isMySQL() {
		s.do("SET SESSION gtid_next = 'AUTOMATIC:tagged'", "INSERT INTO a VALUES (5)", "SET SESSION gtid_next = 'AUTOMATIC'")
	} else {
		s.do("SET SESSION gtid_domain_id = 3", "INSERT INTO a VALUES (5)", "SET SESSION gtid_domain_id = 0")
	}
	beforeLast := s.end()
	s.do("INSERT INTO a VALUES (6)")
	read := func(after replica.Set) (set replica.Set, alone []bool, text []string) {
		set = after.Clone()
		s.written(replica.Start{After: after}, func(e replica.Event) {
			switch {
			case begins(e):
				b, err := e.Begin()
				must.OK(t, err)
				again, err := replica.ParseGTID(b.GTID.String())
				check.That(t, err == nil && again == b.GTID, "%s is read as %s: %v", b.GTID, again, err)
				at := b.Committed / 1e6
				check.That(t, (!isMySQL() || at >= began-1 && at <= time.Now().Unix()) && int64(e.Time) >= began-1, "%s was committed at %d", b.GTID, b.Committed)
				set.Add(b.GTID)
				alone = append(alone, b.Alone)
			case e.IsQuery():
				schema, statement, err := e.Query()
				check.That(t, err == nil && (schema == "kith" || schema == ""), "in %q %q: %v", schema, statement, err)
				text = append(text, string(statement))
			}
		})
		return set, alone, text
	}
	set, _, text := read(created)
	end := s.end()
	check.That(t, set.Equal(end) && set.String() == end.String() && set.Contains(beforeLast) && !beforeLast.Contains(set), "%s was read, the server is at %s", set, end)
	if !slices.Contains(text, "BEGIN") && isMySQL() || !slices.ContainsFunc(text, func(s string) bool { return strings.Contains(s, "SAVEPOINT") }) ||
		!slices.ContainsFunc(text, func(s string) bool { return strings.HasPrefix(s, "XA COMMIT") }) {
		t.Errorf("statements: %q", text)
	}
	set, alone, _ := read(beforeLast)
	check.That(t, len(alone) == 1 && set.Equal(s.end()), "%d transactions after %s, to %s", len(alone), beforeLast, set)
	_, alone, text = read(s.start)
	check.That(t, len(text) != 0 && strings.HasPrefix(text[0], "CREATE TABLE a") && (isMySQL() || alone[0]), "%v %q", alone, text)
}

// A file begins with what is before it, and a stream may begin with a file.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.do("CREATE TABLE a (id BIGINT PRIMARY KEY)")
	before := s.end()
	s.do("FLUSH BINARY LOGS", "INSERT INTO a VALUES (1)")
	files, err := doctor.Rows(t.Context(), s.db, "SHOW BINARY LOGS")
	must.OK(t, err)
	rows, rotated := 0, false
	s.written(replica.Start{File: files[len(files)-1]["Log_name"], After: before}, func(e replica.Event) {
		switch {
		case e.Kind == replica.MariaGTIDListEvent:
			last, err := e.Last()
			check.That(t, err == nil && last.Equal(before), "%s, %v; want %s", last, err, before)
		case e.Kind == replica.RotateEvent && e.Time > 0:
			rotated = true
		case e.Operation() == replica.Inserted:
			rows++
		}
	})
	check.That(t, rows == 1 && !rotated, "%d events about rows", rows)
	s.written(replica.Start{After: s.start}, func(e replica.Event) { rotated = rotated || e.Kind == replica.RotateEvent && e.Time > 0 })
	check.That(t, rotated, "the next file is not announced")
	c, err := s.open(s.dsn)
	must.OK(t, err)
	must.OK(t, c.Start(replica.Start{ID: 8, File: "nothing.000001"}))
	var refused *mysql.MySQLError
	for err = nil; err == nil; {
		_, err = c.Next()
	}
	check.That(t, errors.As(err, &refused) && refused.Number == 1236, "%v", err)
}

// Rows and transactions that servers have compressed are read, and events of more than 16 MB, which come in several packets.
func TestLargeAndCompressed(t *testing.T) {
	t.Parallel()
	options := []string{"--log-bin-compress=ON", "--log-bin-compress-min-len=10"}
	if isMySQL() {
		options = []string{"--binlog-transaction-compression=ON", "--binlog-row-value-options=PARTIAL_JSON"}
	}
	s := newServer(t, options...)
	s.do("CREATE TABLE a (t LONGTEXT, j JSON, k JSON, last INT, id BIGINT PRIMARY KEY)",
		`INSERT INTO a VALUES (REPEAT('x', 17 << 20), '{"a": 1, "b": "some text that is longer than what replaces it"}', '{"c": 2}', 5, 1)`,
		`UPDATE a SET last = 6, j = JSON_SET(j, '$.a', 2)`,
		`UPDATE a SET last = 7, k = JSON_SET(k, '$.c', 3), t = 'y'`,
		"BEGIN", "INSERT INTO a VALUES (NULL, NULL, NULL, NULL, 2)", "DELETE FROM a WHERE id = 1", "COMMIT")
	var parts []string // that compress badly, over many blocks
	for i := range 3000 {
		parts = append(parts, fmt.Sprintf("(SHA2(%d, 256), NULL, NULL, %d, %d)", i, i, 10+i))
	}
	if isMySQL() {
		s.do("SET SESSION binlog_transaction_compression_level_zstd = 19")
	}
	s.do("INSERT INTO a VALUES " + strings.Join(parts, ","))
	s.do("SET SESSION binlog_row_image = 'FULL'")
	if isMySQL() {
		s.do("SET SESSION binlog_transaction_compression = OFF", "INSERT INTO a VALUES (REPEAT('x', 17 << 20), NULL, NULL, 1, 4000)")
	}
	all, kinds := s.changes(s.start)
	first := func(last int64) image { return image{num(1), {}, num(last)} }
	want := []change{
		{replica.Inserted, "a", image{}, first(5)}, {replica.Updated, "a", first(5), first(6)}, {replica.Updated, "a", first(6), first(7)},
		{replica.Inserted, "a", image{}, image{num(2), {}, {}}}, {replica.Deleted, "a", image{}, first(7)},
	}
	for i := range int64(3000) {
		want = append(want, change{replica.Inserted, "a", image{}, image{num(10 + i), {}, num(i)}})
	}
	if isMySQL() {
		want = append(want, change{replica.Inserted, "a", image{}, image{num(4000), {}, num(1)}})
	}
	if !slices.Equal(all, want) {
		t.Errorf("%d changes, the first %v; want %d, %v", len(all), all[:min(len(all), 6)], len(want), want[:6])
	}
	compressed, partial := kinds[166]+kinds[169], kinds[39]
	if isMySQL() {
		compressed = kinds[replica.PayloadEvent]
	}
	check.That(t, compressed != 0 && (!isMySQL() || partial != 0), "nothing was compressed: %v", kinds)
}

// All ways of signing in that the driver for statements has, with and without TLS.
func TestSignIn(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	s := newServer(t, "--ssl-cert="+cert, "--ssl-key="+key)
	plain := strings.Replace(s.dsn, "app:app@", "USER@", 1)
	accounts := []string{
		"CREATE USER nothing IDENTIFIED BY ''",
		"CREATE USER native IDENTIFIED BY 'native'",
		"CREATE USER hidden IDENTIFIED BY 'hidden' REQUIRE SSL",
	}
	if isMySQL() {
		accounts = append(accounts, "CREATE USER sha IDENTIFIED WITH sha256_password BY 'sha'")
	} else if _, err := s.db.Exec("INSTALL SONAME 'auth_ed25519'"); err == nil {
		accounts = append(accounts, "CREATE USER ed IDENTIFIED VIA ed25519 USING PASSWORD('ed')")
	}
	for _, account := range accounts {
		name := strings.Fields(account)[2]
		if _, err := s.db.Exec(account); err != nil && name == "sha" {
			t.Log(err) // removed in some version
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		s.do("GRANT REPLICATION SLAVE ON *.* TO " + name)
		password := ":" + name
		if name == "nothing" {
			password = ""
		}
		for _, with := range []string{"?tls=false", "?tls=skip-verify", "?tls=preferred", "?tls=false"} { // the second time, the server remembers
			for _, again := range []bool{false, true} {
				if isMySQL() && !again {
					s.do("FLUSH PRIVILEGES") // it forgets whom it has recognised
				}
				c, err := s.open(strings.Replace(plain, "USER", name+password, 1) + with)
				if err == nil {
					err = c.Start(replica.Start{ID: 9, Heartbeat: 50 * time.Millisecond, After: s.end()})
				}
				if err == nil {
					_, err = c.Next()
				}
				var e *mysql.MySQLError
				switch refused := errors.As(err, &e) && e.Number == 1045; {
				case name == "hidden" && with == "?tls=false" && refused:
				case err != nil || name == "hidden" && with == "?tls=false":
					t.Errorf("%s%s again=%v: %v", name, with, again, err)
				}
			}
		}
		var e *mysql.MySQLError
		for _, with := range []string{"?tls=false", "?tls=skip-verify"} {
			_, err := s.open(strings.Replace(plain, "USER", name+":wrong", 1) + with)
			check.That(t, errors.As(err, &e) && e.Number == 1045, "%s by a wrong password: %v", name, err)
		}
	}
	_, err := s.open(s.dsn + "?tls=true")
	check.Says(t, "a certificate that nobody knows is trusted", err, "certificate")
	s.do("CREATE USER poor IDENTIFIED BY 'poor'")
	c, err := s.open(strings.Replace(plain, "USER", "poor:poor", 1))
	if err == nil {
		err = c.Start(replica.Start{ID: 9})
	}
	if err == nil {
		_, err = c.Next()
	}
	var e *mysql.MySQLError
	check.That(t, errors.As(err, &e) && (e.Number == 1227 || e.Number == 1045), "somebody who may not read the binlog: %v", err)
	socket, _ := mysql.ParseDSN(s.dsn)
	socket.Net, socket.Addr = "unix", s.Socket()
	_, err = s.open(socket.FormatDSN())
	check.Is(t, "by a socket", err, nil)
}

// certificate makes one that its own key has signed.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must.OK(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must.OK(t, err)
	folder := t.TempDir()
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(folder, name)
		must.OK(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o644))
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", encoded)
}
