package db

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rights on the database: those that Kith cannot do without, and those that migrations may need.
var (
	needed = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"}
	later  = []string{"ALTER", "INDEX", "DROP"}
)

// examineGrants compares the user's rights with those that are needed.
func (s *examined) examineGrants(ctx context.Context, database string) {
	var account string
	rows, err := s.shard.Read.QueryContext(ctx, `SHOW GRANTS`)
	if err == nil {
		err = s.shard.Read.QueryRowContext(ctx, `SELECT CURRENT_USER()`).Scan(&account)
		defer rows.Close()
	}
	var lines []string
	for err == nil && rows.Next() {
		var line string
		err = rows.Scan(&line)
		lines = append(lines, line)
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		s.Warn("grants", s.of, fmt.Sprintf("they cannot be read: %v", err), "")
		return
	}
	user, host, _ := strings.Cut(account, "@")
	have, byRole := granted(lines, database)
	lacks := func(rights []string) (list []string, mend string) {
		for _, r := range rights {
			if !have[r] {
				list = append(list, r)
			}
		}
		return list, fmt.Sprintf("GRANT %s ON %s.* TO '%s'@'%s';", strings.Join(list, ", "), quoted(database), user, host)
	}
	list, mend := lacks(needed)
	soon, mendSoon := lacks(slices.Concat(needed, later))
	switch {
	case len(list) > 0 && byRole:
		s.Warn("grants", s.of, strings.Join(list, ", ")+" can only come by a role", mend)
	case len(list) > 0:
		s.Fail("grants", s.of, "not granted: "+strings.Join(list, ", "), mend)
	case len(soon) > 0:
		s.Warn("grants", s.of, strings.Join(soon, ", ")+" may be needed by migrations to come", mendSoon)
	default:
		s.OK("grants", s.of, "all that is needed")
	}
}

// A line of SHOW GRANTS: rights on *.* or on a database, whose name may hold wildcards, or a role.
var (
	grantOn = regexp.MustCompile("(?i)^GRANT (.+) ON (?:(\\*)|`((?:[^`]|``)+)`|([^`.\\s]+))\\.\\* TO ")
	grantTo = regexp.MustCompile("(?i)^GRANT [^ ]+ TO ")
)

// granted are the rights on a database that the lines give, and whether there is a role that may give more.
func granted(lines []string, database string) (have map[string]bool, byRole bool) {
	have = map[string]bool{}
	for _, line := range lines {
		m := grantOn.FindStringSubmatch(line)
		if m == nil {
			byRole = byRole || grantTo.MatchString(line)
			continue
		}
		name := strings.ReplaceAll(m[3], "``", "`") + m[4]
		if m[2] == "" && !like(name, database) {
			continue
		}
		for right := range strings.SplitSeq(strings.ToUpper(m[1]), ",") {
			if right = strings.TrimSpace(right); right != "ALL" && right != "ALL PRIVILEGES" {
				have[right] = true
				continue
			}
			for _, r := range slices.Concat(needed, later) {
				have[r] = true
			}
		}
	}
	return have, byRole
}

// like matches a name with a pattern of LIKE, as GRANT has them: % any text, _ any character, \ before one of them itself.
func like(pattern, name string) bool {
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case c == '%':
			b.WriteString(".*")
		case c == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	matched, err := regexp.MatchString("(?s)"+b.String()+"$", name)
	return err == nil && matched
}
