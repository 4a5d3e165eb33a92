package db

import (
	"slices"
	"testing"
)

func TestGranted(t *testing.T) {
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
		"a role":                    {[]string{"GRANT `writers` TO `a`@`%`"}, slices.Concat(needed, later), "", true},
		"as MySQL says it":          {[]string{"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER ON `kith_0`.* TO `a`@`%`", "GRANT BINLOG_ADMIN ON *.* TO `a`@`%`"}, later, "", false},
		"both, one of which counts": {[]string{"GRANT SELECT, INSERT, UPDATE, DELETE, DROP, INDEX, ALTER ON `kith\\_%`.* TO `a`@`%`", "GRANT CREATE ON `kith_0`.* TO `a`@`%`"}, slices.Concat(needed, later), "kith_0", false},
		"both have all":             {[]string{"GRANT ALL ON `kith\\_%`.* TO `a`@`%`", "GRANT ALL ON `kith_0`.* TO `a`@`%`"}, nil, `kith\_%`, false},
	} {
		have, on, byRole := granted(c.lines, "kith_0")
		var lacks []string
		for _, right := range slices.Concat(needed, later) {
			if !have[right] {
				lacks = append(lacks, right)
			}
		}
		if c.on == "" {
			c.on = "kith_0"
		}
		if !slices.Equal(lacks, c.lacks) || on != c.on || byRole != c.byRole {
			t.Errorf("%s: it lacks %v on %s, by a role %v; want %v on %s, %v", name, lacks, on, byRole, c.lacks, c.on, c.byRole)
		}
	}
}
