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
	needed = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER"}
	later  = []string{"INDEX", "DROP"}
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
	have, on, byRole := granted(lines, database)
	lacks := func(rights []string) (list []string, mend string) {
		for _, r := range rights {
			if !have[r] {
				list = append(list, r)
			}
		}
		return list, fmt.Sprintf("GRANT %s ON %s.* TO '%s'@'%s';", strings.Join(list, ", "), quoted(on), user, host)
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

// granted returns the rights on a database that the lines give, the name on which more should be granted, and whether there is a
// role that may give more. If several names match the database, a server uses one of them, and servers differ in which one. Then
// only rights on all of the names count, and a right that is granted on a further name can take away those on the others.
func granted(lines []string, database string) (have map[string]bool, on string, byRole bool) {
	everywhere, names, of := map[string]bool{}, []string(nil), map[string]map[string]bool{}
	for _, line := range lines {
		m := grantOn.FindStringSubmatch(line)
		if m == nil {
			byRole = byRole || grantTo.MatchString(line)
			continue
		}
		name := strings.ReplaceAll(m[3], "``", "`") + m[4]
		have := everywhere
		if m[2] == "" {
			if !like(name, database) {
				continue
			}
			if of[name] == nil {
				names, of[name] = append(names, name), map[string]bool{}
			}
			have = of[name]
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
	have, on = everywhere, database
	if len(names) > 0 {
		have, on = shared(everywhere, names, of)
	}
	return have, on, byRole
}

// shared are the rights that are given everywhere or on each of the names, and a name that lacks some, if there is one.
func shared(everywhere map[string]bool, names []string, of map[string]map[string]bool) (have map[string]bool, on string) {
	have, on = map[string]bool{}, names[0]
	for _, right := range slices.Concat(needed, later) {
		lacking := slices.IndexFunc(names, func(name string) bool { return !everywhere[right] && !of[name][right] })
		if have[right] = lacking < 0; lacking >= 0 {
			on = names[lacking]
		}
	}
	return have, on
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
