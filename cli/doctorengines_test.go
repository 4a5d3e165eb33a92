package cli

import (
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/testenv"
	"kith/storage/doctor"
)

// TestDoctorOnEngines: its findings about a server of each kind are right, and the statements with which it repairs things work there.
func TestDoctorOnEngines(t *testing.T) {
	testenv.NotOn(t, "TestDoctorOnMariaDB has more", "mariadb")
	t.Parallel()
	server := testenv.MariaDB(t)
	for _, name := range []string{"kith_a", "kith_b"} {
		server.CreateDatabase(t, name)
	}
	server.Exec(t, "CREATE USER kith IDENTIFIED BY '"+hidden+"'")
	server.Exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE, ALTER, INDEX, DROP ON `kith\\_%`.* TO kith")
	at := func(database string) string { return "kith:" + hidden + "@tcp(" + server.Addr() + ")/" + database }
	store := "--store=mysql:" + at("kith_a") + ";" + at("kith_b")

	// mended runs what repairs the findings, until there are none.
	mended := func(wants ...string) {
		t.Helper()
		found, _ := diagnosed(t, store)
		for _, f := range found {
			if f.Level == doctor.OK {
				continue
			}
			if len(wants) > 0 && strings.HasPrefix(f.Check+": "+f.Says, wants[0]) {
				wants = wants[1:]
			} else {
				t.Errorf("not looked for: %+v", f)
			}
			statement, _, _ := strings.Cut(strings.TrimPrefix(f.Mend, "run: "), ";")
			server.Exec(t, statement)
		}
		check.That(t, len(wants) == 0, "no %q in %+v", wants, found)
		found, code := diagnosed(t, store)
		check.That(t, code == 0 && found.Count(doctor.Warn) == 0, "not mended: %+v", found)
	}
	common := []string{"settings", "secrets", "open files", "version", "isolation", "encryption", "clock", "clocks", "grants", "tables", "connections", "binlog", "redis"}
	if testenv.HasBinlog() {
		server.Exec(t, "SET GLOBAL sync_binlog = 1") // the tests' servers are fast, and not safe
		server.Exec(t, "SET GLOBAL binlog_expire_logs_seconds = 864000")
		server.Exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
		mended("grants: not granted: CREATE", "grants: not granted: CREATE", "binlog: user kith may not read the binlog")
		common = append(common, "durability", "memory")
		for variable, c := range map[string]struct {
			value string
			says  []string
		}{
			"binlog_row_metadata":            {"'MINIMAL'", []string{"binlog: "}},
			"binlog_row_image":               {"'MINIMAL'", []string{"binlog: "}},
			"binlog_expire_logs_seconds":     {"3600", []string{"binlog: it is kept for"}},
			"sync_binlog":                    {"0", []string{"durability: sync_binlog"}},
			"innodb_flush_log_at_trx_commit": {"2", []string{"durability: innodb_flush"}},
		} {
			server.Exec(t, "SET GLOBAL "+variable+" = "+c.value)
			mended(c.says...)
		}
	} else {
		mended("grants: not granted: CREATE", "grants: not granted: CREATE")
		found, code := diagnosed(t, store, "--redundancy=binlog")
		if expect(t, found, doctor.Fail, "binlog", "TiDB has none", "KITH_REDUNDANCY"); code == 0 {
			t.Error("it says that a start would not be refused")
		}
		found, _ = diagnosed(t, store)
		expect(t, found, doctor.OK, "binlog", "the redundancy mode is sync", "")
		expect(t, found, doctor.OK, "version", "TiDB", "")
	}

	found := soundOnceMigrated(t, store, append(common, "layout")...)
	expect(t, found, doctor.OK, "tables", "version", "")
}
