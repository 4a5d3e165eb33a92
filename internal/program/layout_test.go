package program_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

func migrate(t *testing.T, shards ...database) kithtest.End {
	t.Helper()
	return kithtest.Run(t, kithtest.Args("migrate", "--store", location(shards...)))
}

// laidOut makes a store from the databases.
func laidOut(t *testing.T, shards ...database) []database {
	t.Helper()
	must.Equal(t, "the code of migrate", migrate(t, shards...).Code, 0)
	return shards
}

func TestMigrateReportsVersions(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		shards := make(t, 2)
		for range 2 { // the second time it has nothing to do
			end := migrate(t, shards...)
			lines := strings.Split(strings.TrimSuffix(end.Stdout, "\n"), "\n")
			must.That(t, end.Code == 0 && end.Stderr == "" && len(lines) == len(shards), "%+v", end)
			for i, d := range shards {
				version := d.text(t, "SELECT MAX(version_id) FROM kith_migrations")
				if !strings.HasPrefix(lines[i], fmt.Sprintf("shard %d  ", i)) || !strings.HasSuffix(lines[i], "  version "+version) || version == "0" {
					t.Errorf("%q, the tables of shard %d are at version %s", lines[i], i, version)
				}
				for _, table := range []string{"users", "handles", "following", "follower", "user_counts"} {
					check.Equal(t, "rows of "+table, d.text(t, "SELECT COUNT(*) FROM "+table), "0")
				}
			}
		}
	})
}

func TestOtherShardsAreRefused(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		all := make(t, 8)
		s, other, empty := laidOut(t, all[:4]...), laidOut(t, all[4:6]...), all[6]
		layout := func() string {
			found := ""
			for _, d := range s {
				found += d.text(t, "SELECT store_uuid FROM kith_meta") + d.text(t, "SELECT ordinal FROM kith_meta") + "\n"
			}
			return found
		}
		before := layout()
		for name, c := range map[string]struct {
			shards []database
			text   string
		}{
			"last two swapped":       {[]database{s[0], s[1], s[3], s[2]}, "is shard 3 of the store, but it is given as number 2"},
			"first two swapped":      {[]database{s[1], s[0], s[2], s[3]}, "is shard 1 of the store, but it is given as number 0"},
			"turned round":           {[]database{s[3], s[2], s[1], s[0]}, "given as number"},
			"one less":               {s[:3], "the store has 4 shards, 3 are given"},
			"first one less":         {s[1:], "the store has 4 shards, 3 are given"},
			"only one":               {s[:1], "the store has 4 shards, 1 are given"},
			"one more":               {[]database{s[0], s[1], s[2], s[3], empty}, "there is no store at"},
			"one twice":              {[]database{s[0], s[1], s[2], s[2]}, "shards 2 and 3 are the same database"},
			"one twice besides":      {[]database{s[0], s[1], s[2], s[3], s[0]}, "shards 0 and 4 are the same database"},
			"another store's":        {[]database{s[0], s[1], s[2], other[1]}, "belongs to another store"},
			"another store's first":  {[]database{other[0], s[1], s[2], s[3]}, "2 shards, 4 are given"},
			"a new one first":        {[]database{empty, s[1], s[2], s[3]}, "there is no store at"},
			"a new one at the place": {[]database{s[0], s[1], s[3], empty}, "there is no store at"},
		} {
			for _, command := range []string{"serve", "migrate"} {
				t.Run(name+", "+command, func(t *testing.T) {
					end := kithtest.Run(t, kithtest.Args(command, "--store", location(c.shards...)), kithtest.Env("KITH_ADDR=127.0.0.1:0"))
					refused(t, end, "--store (KITH_STORE): ", c.text)
					// A shard that is missing may yet be restored, or made by another process.
					check.Equal(t, "may a new start help", end.Code != misused, c.text == "there is no store at")
				})
			}
		}
		check.Equal(t, "the layout", layout(), before)
		kithtest.Start(t, kithtest.Args("--store", location(s...)))
	})
}

// TestSameDatabaseByTwoNames: if two shards are the same database, the database itself shows that,
// not its address.
func TestSameDatabaseByTwoNames(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		d := newSQLite(t, 2)
		laidOut(t, d[0])
		must.OK(t, os.Symlink(d[0].address, d[1].address))
		refused(t, migrate(t, d...), "--store (KITH_STORE): ", "shards 0 and 1 are the same database")
	})
	t.Run("mariadb", func(t *testing.T) {
		server := testenv.SharedMariaDB(t, 1)
		d := database{"mysql", server.FreshDatabases(t, 1)[0]}
		again := database{"mysql", strings.Replace(d.address, "tcp("+server[0].Addr()+")", "unix("+server[0].Socket()+")", 1)}
		refused(t, migrate(t, d, again), "--store (KITH_STORE): ", "shards 0 and 1 are the same database")
	})
}

// TestNewerStoresAreRefused: a program that is older than the store does not change it.
func TestNewerStoresAreRefused(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		for name, c := range map[string]struct{ change, text string }{
			"layout": {"UPDATE kith_meta SET layout = 2", "has layout 2, this program knows 1: start a newer one"},
			"tables": {"INSERT INTO kith_migrations (version_id, is_applied) VALUES (999, 1)", "its tables are at version 999, this program knows "},
		} {
			t.Run(name, func(t *testing.T) {
				shards := laidOut(t, make(t, 2)...)
				shards[1].exec(t, c.change)
				for _, command := range []string{"serve", "migrate"} {
					end := kithtest.Run(t, kithtest.Args(command, "--store", location(shards...)), kithtest.Env("KITH_ADDR=127.0.0.1:0"))
					refused(t, end, "--store (KITH_STORE): ", c.text)
				}
			})
		}
	})
}

// TestGatewaysStartingAtOnce has two programs create the tables of new stores at the same time.
func TestGatewaysStartingAtOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		for range 3 {
			shards := make(t, 4)
			options := kithtest.Args("serve", "--addr", "127.0.0.1:0", "--store", location(shards...))
			launched := []*kithtest.Command{kithtest.Launch(t, options), kithtest.Launch(t, options)}
			for _, c := range launched {
				g := kithtest.Announced(t, c)
				status, body := g.Get(t, "/readyz")
				check.That(t, status == 200, "/readyz: %d %s", status, body)
			}
			store := shards[0].text(t, "SELECT store_uuid FROM kith_meta")
			for i, d := range shards {
				for query, want := range map[string]string{
					"SELECT store_uuid FROM kith_meta":                                  store,
					"SELECT ordinal FROM kith_meta":                                     fmt.Sprint(i),
					"SELECT shards FROM kith_meta":                                      "4",
					"SELECT COUNT(*) FROM kith_meta":                                    "1",
					"SELECT COUNT(*) - COUNT(DISTINCT version_id) FROM kith_migrations": "0",
				} {
					check.Equal(t, fmt.Sprintf("shard %d: %s", i, query), d.text(t, query), want)
				}
			}
			for _, c := range launched {
				endedWell(t, c.Interrupt(t))
			}
		}
	})
}
