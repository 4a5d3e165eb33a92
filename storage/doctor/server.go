package doctor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Server is what a server of the MySQL family says of itself and of the user who asks.
type Server struct {
	Flavor   string // "MySQL", "MariaDB" or "TiDB"
	Version  string // in full
	Settings map[string]string
	Account  string   // user@host
	Grants   []string // as SHOW GRANTS has them
}

// Ask asks a server.
func Ask(ctx context.Context, pool *sql.DB) (s Server, err error) {
	var said [3][]map[string]string
	for i, query := range []string{`SELECT VERSION() AS version, CURRENT_USER() AS account`, `SHOW GLOBAL VARIABLES`, `SHOW GRANTS`} {
		if said[i], err = Rows(ctx, pool, query); err != nil {
			return s, err
		}
	}
	s = Server{Version: said[0][0]["version"], Account: said[0][0]["account"], Settings: map[string]string{}}
	s.Flavor = FlavorOf(s.Version)
	for _, row := range said[1] {
		s.Settings[row["Variable_name"]] = row["Value"]
	}
	for _, row := range said[2] {
		for _, grant := range row { // the column is named after the user
			s.Grants = append(s.Grants, grant)
		}
	}
	return s, nil
}

// FlavorOf is the flavor of a server with a version.
func FlavorOf(version string) string {
	for _, other := range []string{"MariaDB", "TiDB"} {
		if strings.Contains(version, other) {
			return other
		}
	}
	return "MySQL"
}

// IsError reports whether a server has answered with an error of one of the numbers.
func IsError(err error, numbers ...uint16) bool {
	e, is := errors.AsType[*mysql.MySQLError](err)
	return is && slices.Contains(numbers, e.Number)
}

// Quoted is a name as a quoted identifier.
func Quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Rows are the rows of an answer by column, without the table that columnsWithAlias puts in front. NULL is "".
func Rows(ctx context.Context, pool *sql.DB, query string) (list []map[string]string, err error) {
	rows, err := pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		row := map[string]string{}
		for i, column := range columns {
			row[column[strings.LastIndexByte(column, '.')+1:]] = values[i].String
		}
		list = append(list, row)
	}
	return list, cmp.Or(err, rows.Err())
}

// A line of SHOW GRANTS: rights on *.* or on a database, whose name may hold wildcards, and is quoted as sql_mode says, or a role. MySQL
// may have rights on *.* that are revoked on a database.
var (
	grantOn = regexp.MustCompile("(?i)^(?:GRANT|(REVOKE)) (.+) ON (?:(\\*)|`((?:[^`]|``)+)`|\"((?:[^\"]|\"\")+)\"|([^`\".\\s]+))\\.\\* (?:TO|FROM) ")
	grantTo = regexp.MustCompile("(?i)^GRANT [^ ]+ TO ")
)

// Lacking are those of some rights that the user does not have on a database, the name on which they should be granted, and whether
// there is a role that may give them. Without a database, only rights on all of them count. If several names match the database, a
// server uses one of them, and servers differ in which one: only rights on all of the names count, and a right that is granted
// on a further name can take away those on the others.
func (s *Server) Lacking(database string, rights []string) (lacking []string, on string, byRole bool) {
	var names []string // of which "" is everywhere
	granted, revoked := map[string]string{}, ""
	for _, line := range s.Grants {
		m := grantOn.FindStringSubmatch(line)
		name := ""
		switch {
		case m == nil:
			byRole = byRole || grantTo.MatchString(line)
			continue
		case m[3] == "":
			name = strings.ReplaceAll(m[4], "``", "`") + strings.ReplaceAll(m[5], `""`, `"`) + m[6]
			if m[1] != "" && name == database {
				revoked += rightsOf(m[2])
			}
			if m[1] != "" || database == "" || !like(name, database) {
				continue
			}
			if granted[name] == "" {
				names = append(names, name)
			}
		}
		granted[name] += rightsOf(m[2])
	}
	if on = database; len(names) > 0 {
		on = names[0]
	}
	for _, right := range rights {
		if has(granted[""], right) && !has(revoked, right) {
			continue
		}
		lacks := len(names) == 0
		for _, name := range names {
			if !has(granted[name], right) {
				lacks, on = true, name
			}
		}
		if lacks {
			lacking = append(lacking, right)
		}
	}
	return lacking, on, byRole
}

// rightsOf are the rights that a line names, each between commas.
func rightsOf(named string) string {
	return "," + strings.ReplaceAll(strings.ToUpper(named), ", ", ",") + ","
}

func has(rights, right string) bool {
	return strings.Contains(rights, ","+right+",") || strings.Contains(rights, ",ALL,") || strings.Contains(rights, ",ALL PRIVILEGES,")
}

// wildcards are those of GRANT in the form of regular expressions. They are those of LIKE: % any text, _ any character, \ before one of
// them itself.
var wildcards = strings.NewReplacer(`\\_`, "_", `\\%`, "%", "_", ".", "%", ".*")

func like(pattern, name string) bool {
	matched, err := regexp.MatchString("(?s)^"+wildcards.Replace(regexp.QuoteMeta(pattern))+"$", name)
	return err == nil && matched
}
