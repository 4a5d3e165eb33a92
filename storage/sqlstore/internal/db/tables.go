package db

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kith/storage"
)

// MarkSide is one more number beside the sides: it stands for the marks on follows.
const MarkSide = storage.Side(len(storage.AllSides))

// Follows are the two sides of follows.
var Follows = []storage.Side{storage.Forward, storage.Inverse}

// WithMarks are the sides of users, and the marks.
var WithMarks = slices.Concat(storage.Sides[:], []storage.Side{MarkSide})

// Counted are the sides that user_counts counts.
var Counted = []storage.Side{storage.Forward, storage.Inverse, storage.Favorites, storage.FavoriteInbox}

// Text is a statement that the dialects write differently. Where only the MySQL family takes a word
// (`FORCE INDEX`, `FOR UPDATE`), the statement is one string, with that word in an executable
// comment, `/*! … */`: SQLite skips it. A word that only TiDB takes is in `/*T! … */`.
type Text struct{ MySQL, SQLite string }

// Text is a statement in this dialect.
func (d *Dialect) Text(t Text) string {
	if d == sqliteDialect {
		return t.SQLite
	}
	return t.MySQL
}

// inMySQL are the words of SQLite for which the MySQL family has others.
var inMySQL = []struct {
	sqlite *regexp.Regexp
	mysql  string
}{
	{regexp.MustCompile(`INSERT OR IGNORE`), `INSERT IGNORE`},
	{regexp.MustCompile(`ON CONFLICT \(.*?\) DO UPDATE SET`), `ON DUPLICATE KEY UPDATE`},
	{regexp.MustCompile(`excluded\.(\w+)`), `VALUES($1)`},
	{regexp.MustCompile(`MAX\((\w+), `), `GREATEST($1, `},
	{regexp.MustCompile(`INDEXED BY sqlite_autoindex_[\w{}]+_1`), `FORCE INDEX (PRIMARY)`},
	{regexp.MustCompile(`mix_of_edges\(.*\)`), `BIT_XOR(
    ((from_user_id ^ (to_user_id << 21) ^{ (post_id << 32) ^ (post_id >> 32) ^} update_time ^ 7640891576956012809) % 4093082899) *
    ((to_user_id ^ (from_user_id << 13) ^{ post_id ^} (update_time << 7) ^ (type << 50)) % 3367900313))`},
	{regexp.MustCompile(`(GROUP_CONCAT\(.*\) FROM .*)`), `$1 FORCE INDEX (PRIMARY)`},
	{regexp.MustCompile(` \|\| `), `, `},
}

// wanted matches a statement that joins a list of keys: SQLite does not search a list of row values by index, and a join from it is.
// The MySQL family gets the list.
var (
	wanted = regexp.MustCompile(`(?s)^\nWITH wanted\([^)]*\) AS \(VALUES (\([^)]*\))\)(.*)\nFROM wanted\nCROSS JOIN ([^\n]*) ON ([^\n]*)(\n(?:LEFT )?JOIN [^\n]*)?(\nWHERE .*)?$`)
	ofAKey = regexp.MustCompile(` = [a-z]\b`)
)

// Both is a statement in both dialects, from the words of SQLite.
func Both(sqlite string) Text {
	t := Text{MySQL: sqlite, SQLite: sqlite}
	if m := wanted.FindStringSubmatch(sqlite); m != nil {
		columns := strings.ReplaceAll(ofAKey.ReplaceAllString(m[4], ""), " AND ", ", ")
		t.MySQL = m[2] + "\nFROM " + m[3] + " FORCE INDEX (PRIMARY)" + m[5] + "\nWHERE (" + columns + ") IN (" + m[1] + ")" + strings.Replace(m[6], "\nWHERE", " AND", 1)
	}
	for _, w := range inMySQL {
		t.MySQL = w.sqlite.ReplaceAllString(t.MySQL, w.mysql)
	}
	return t
}

// A statement for several tables of edges is written once, with words in braces: {table}, {owner} and {peer}; {list}, the index in
// the order of lists; {count}, the column of user_counts; {side}, the number; {whole}, see package packed; {JOIN post}, for favorites
// of posts that exist, if they are to be counted. {type, update_time} are zeros for marks. Anything else in braces stands only where
// edges name an item: {, post_id}, which is {, kind} where the item is a kind.
var inBraces = regexp.MustCompile(`\{[^}]*\}`)

// OfSide is such a statement for one table.
func OfSide(text string, side storage.Side) string {
	table, owner, peer, columns, items := "edge_marks", "from_user_id", "to_user_id", "0, 0", false
	if side != MarkSide {
		table, columns, items = side.String(), "type, update_time", side.HasItem()
	}
	if side.IsInverse() {
		owner, peer = peer, owner
	}
	post := ""
	if side == storage.FavoriteInbox {
		post = " CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0"
	}
	words := map[string]string{
		"table": table, "owner": owner, "peer": peer, "list": "idx_" + table + "_list", "type, update_time": columns,
		"count": counts[side], "side": strconv.Itoa(int(side)), "whole": strconv.Itoa(4 << side), "JOIN post": post,
	}
	return inBraces.ReplaceAllStringFunc(text, func(word string) string {
		word = word[1 : len(word)-1]
		if known, ok := words[word]; ok {
			return known
		}
		if !items {
			return ""
		}
		return strings.ReplaceAll(word, "post_id", side.Item())
	})
}

// counts are the columns of user_counts and, for relations, of relation_counts.
var counts = [MarkSide + 1]string{
	storage.Forward: "following_count", storage.Inverse: "follower_count", storage.Favorites: "favorite_count", storage.FavoriteInbox: "total_favorited",
	storage.Relations: "outgoing", storage.RelationInbox: "incoming",
}

// BySide is a statement for each side, "" where there is none.
type BySide [MarkSide + 1]string

// ForSides writes a statement for some sides.
func ForSides(text string, sides ...storage.Side) (all BySide) {
	for _, side := range sides {
		all[side] = OfSide(text, side)
	}
	return all
}

// ForSides writes a statement for some sides.
func (t Text) ForSides(sides ...storage.Side) (all [MarkSide + 1]Text) {
	for _, side := range sides {
		all[side] = Text{MySQL: OfSide(t.MySQL, side), SQLite: OfSide(t.SQLite, side)}
	}
	return all
}
