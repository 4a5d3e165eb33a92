package doctor

import (
	"kith/internal/check"
	"slices"
	"testing"
)

func TestLacking(t *testing.T) {
	needed, later := []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER"}, []string{"INDEX", "DROP"}
	for name, c := range map[string]struct {
		lines  []string
		lacks  []string
		on     string // where more has to be granted; "" means the database
		byRole bool
	}{
		"nothing":                   {[]string{"GRANT USAGE ON *.* TO `a`@`%`"}, slices.Concat(needed, later), "", false},
		"everything":                {[]string{"GRANT ALL PRIVILEGES ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*X'"}, nil, "", false},
		"the database":              {[]string{"GRANT ALL PRIVILEGES ON `kith_0`.* TO `a`@`%`"}, nil, "", false},
		"another database":          {[]string{"GRANT ALL PRIVILEGES ON `kith_1`.* TO `a`@`%`"}, slices.Concat(needed, later), "", false},
		"a pattern":                 {[]string{"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON `kith\\_%`.* TO `a`@`%`"}, nil, `kith\_%`, false},
		"a pattern of others":       {[]string{"GRANT ALL ON `kith\\__0`.* TO `a`@`%`"}, slices.Concat(needed, later), "", false},
		"in two lines":              {[]string{"GRANT SELECT, INSERT ON *.* TO a", "GRANT UPDATE, DELETE, CREATE, ALTER ON `k%`.* TO a"}, later, "k%", false},
		"a table":                   {[]string{"GRANT SELECT ON `kith_0`.`users` TO `a`@`%`"}, slices.Concat(needed, later), "", false},
		"in ANSI_QUOTES":            {[]string{`GRANT ALL ON "kith\_0".* TO "a"@"%"`}, nil, `kith\_0`, false},
		"a role":                    {[]string{"GRANT `writers` TO `a`@`%`"}, slices.Concat(needed, later), "", true},
		"as MySQL says it":          {[]string{"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER ON `kith_0`.* TO `a`@`%`", "GRANT BINLOG_ADMIN ON *.* TO `a`@`%`"}, later, "", false},
		"both, one of which counts": {[]string{"GRANT SELECT, INSERT, UPDATE, DELETE, DROP, INDEX, ALTER ON `kith\\_%`.* TO `a`@`%`", "GRANT CREATE ON `kith_0`.* TO `a`@`%`"}, slices.Concat(needed, later), "kith_0", false},
		"all but what is revoked":   {[]string{"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON *.* TO `a`@`%`", "REVOKE INDEX, DROP ON `kith_0`.* FROM `a`@`%`"}, later, "", false},
		"revoked elsewhere":         {[]string{"GRANT ALL PRIVILEGES ON *.* TO `a`@`%`", "REVOKE INSERT ON `kith%`.* FROM `a`@`%`"}, nil, "", false}, // where one may revoke, names are no patterns
		"both have all":             {[]string{"GRANT ALL ON `kith\\_%`.* TO `a`@`%`", "GRANT ALL ON `kith_0`.* TO `a`@`%`"}, nil, `kith\_%`, false},
	} {
		lacks, on, byRole := (&Server{Grants: c.lines}).Lacking("kith_0", slices.Concat(needed, later))
		if c.on == "" {
			c.on = "kith_0"
		}
		if !slices.Equal(lacks, c.lacks) || on != c.on || byRole != c.byRole {
			t.Errorf("%s: it lacks %v on %s, by a role %v; want %v on %s, %v", name, lacks, on, byRole, c.lacks, c.on, c.byRole)
		}
	}
	for line, lacks := range map[string]bool{
		"GRANT REPLICATION SLAVE ON *.* TO `a`@`%`": false, "GRANT ALL PRIVILEGES ON *.* TO `a`@`%`": false, "GRANT ALL PRIVILEGES ON `%`.* TO `a`@`%`": true,
	} {
		list, _, _ := (&Server{Grants: []string{line}}).Lacking("", []string{"REPLICATION SLAVE"})
		check.That(t, len(list) > 0 == lacks, "%s: it lacks %q", line, list)
	}
}

// A check of several settings has a finding for each that does not fit, or one that says that all do.
func TestNeeds(t *testing.T) {
	needs := []Need{
		{Level: Fail, Check: "a", Setting: "x", Value: "'ROW'", Why: "why"},
		{Level: Warn, Check: "a", Setting: "y", Value: "1", Fits: OneOf("1", ""), Mend: "mend"},
		{Level: Warn, Check: "b", Setting: "z", Value: "ON", Why: "none"},
	}
	for _, c := range []struct {
		have map[string]string
		want List
	}{
		{map[string]string{"x": "row", "y": "1", "z": "on"}, List{{OK, "a", "s", "x is row, y is 1", ""}, {OK, "b", "s", "z is on", ""}}},
		{map[string]string{"x": "mixed", "y": "2"}, List{
			{Fail, "a", "s", "x is mixed: why", "run: SET GLOBAL x = 'ROW'; and set it in the server's configuration"},
			{Warn, "a", "s", "y is 2: ", "mend"},
			{Warn, "b", "s", "z is missing: none", "run: SET GLOBAL z = ON; and set it in the server's configuration"},
		}},
	} {
		var got List
		got.Needs("s", c.have, needs)
		check.That(t, slices.Equal(got, c.want), "%v: %+v, want %+v", c.have, got, c.want)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	for have, want := range map[string]Level{"10.4.9-MariaDB": Fail, "10.5.0": Warn, "10.10": Warn, "10.11.19-MariaDB": OK, "11.0": OK, "x": Warn, "": Warn} {
		var got List
		got.Version("version", "s", have, [2]int{10, 5}, [2]int{10, 11})
		check.That(t, len(got) == 1 && got[0].Level == want, "%s: %+v, want %s", have, got, want)
	}
}
