package db

import (
	"regexp"
	"slices"
	"strings"

	"kith/storage"
)

// A Table is one whose rows move with their buckets. Packed lists do not: they are made again where
// the rows have gone.
type Table struct {
	Name    string
	Kind    RowKind
	Keys    []string // of the primary key: a user, or a handle or digest, and perhaps another user or a post, or both
	Columns []string // the others that are copied
}

// All are the keys and the columns.
func (t Table) All() []string { return slices.Concat(t.Keys, t.Columns) }

// Some columns of users.
var (
	texts   = storage.Each(storage.UserTexts[:], func(t storage.UserText) string { return t.Column })
	times   = []string{"created_at", "updated_at"}
	choices = []string{"followings_visibility", "followers_visibility", "undiscoverable", "locked"}
)

// Tables are all such tables.
var Tables = []Table{
	{"users", UserRows, []string{"user_id"}, slices.Concat([]string{"handle"}, texts, []string{"password_hash"}, times, choices, []string{"attributes"})},
	{"user_counts", UserRows, []string{"user_id"}, []string{"following_count", "follower_count", "version", "friend_count", "active_day", "post_count",
		"favorite_count", "total_favorited"}},
	{"user_words", UserRows, []string{"user_id", "word"}, nil},
	{"seen", UserRows, []string{"user_id", "kind"}, []string{"seen_at"}},
	{"user_list", UserRows, []string{"owner", "number"}, []string{"name", "public"}},
	{"import_part", UserRows, []string{"owner", "number", "part"}, []string{"kind", "line", "size", "made", "refused", "done", "due_at", "content"}},
	{"user_states", UserRows, []string{"user_id"}, []string{"state", "changed_at", "password_at", "suspended_at"}},
	{"moderation_log", UserRows, []string{"owner_id", "at"}, []string{"user_id", "action", "operator", "reason", "ends_at", "number"}},
	{"handles", HandleRow, []string{"handle"}, []string{"user_id", "claimed_at"}},
	{"identities", IdentityRow, []string{"digest"}, []string{"user_id", "issuer", "subject", "linked_at"}},
	{"following", KindOf(storage.Forward), []string{"from_user_id", "to_user_id"}, []string{"type", "update_time", "first_at"}},
	{"follower", KindOf(storage.Inverse), []string{"to_user_id", "from_user_id"}, []string{"type", "update_time"}},
	{"friend_request", KindOf(storage.Requests), []string{"from_user_id", "to_user_id"}, []string{"type", "update_time", "message"}},
	{"friend_request_inbox", KindOf(storage.Inbox), []string{"to_user_id", "from_user_id"}, []string{"type", "update_time"}},
	{"edge_marks", MarkRow, []string{"from_user_id", "to_user_id"}, []string{"special", "remark", "attributes"}},
	{"post", PostRows, []string{"author_id", "post_id"}, []string{"client_key", "text", "media", "created_at", "edited_at", "state", "attributes"}},
	{"post_counts", PostRows, []string{"author_id", "post_id"}, []string{"comment_count", "favorite_count", "version"}},
	{"favorite", KindOf(storage.Favorites), []string{"from_user_id", "to_user_id", "post_id"}, []string{"type", "update_time"}},
	{"favorite_inbox", KindOf(storage.FavoriteInbox), []string{"to_user_id", "from_user_id", "post_id"}, []string{"type", "update_time"}},
	{"relation", KindOf(storage.Relations), []string{"from_user_id", "to_user_id", "kind"}, []string{"type", "update_time", "ends_at", "attributes"}},
	{"relation_inbox", KindOf(storage.RelationInbox), []string{"to_user_id", "from_user_id", "kind"}, []string{"type", "update_time"}},
	{"relation_counts", CountRow, []string{"owner", "kind"}, []string{"outgoing", "incoming"}},
	{"comment", CommentRow, []string{"author_id", "comment_id"}, []string{"post_id", "user_id", "client_key", "text", "created_at"}},
}

// InOrder are the statements that read the rows of a table by owner and key: what is left of an owner's rows behind a key, and
// the rows of the owners behind it. Together this is one range of the primary key, but no engine takes it for one.
type InOrder struct {
	Rest   string // its arguments are the owner, the key and the limit
	Behind Text   // the owner and the limit
}

// ReadInOrder makes them for some columns of a table, and rows under a condition. Without the hints SQLite takes a list index, and sorts.
func ReadInOrder(columns, table, condition string) InOrder {
	keys := Tables[slices.IndexFunc(Tables, func(t Table) bool { return t.Name == table })].Keys
	read := func(hint, behind string, order []string) string {
		return WithColumns("\nSELECT " + columns + "\nFROM " + table + hint + "\nWHERE " + behind + " > ?" + condition + "\nORDER BY " + strings.Join(order, ", ") + " LIMIT ?")
	}
	return InOrder{
		read(" /*! FORCE INDEX (PRIMARY) */", keys[0]+" = ? AND "+keys[1], keys[1:]),
		Both(read(" INDEXED BY sqlite_autoindex_"+table+"_1", keys[0], keys)),
	}
}

// lists are the columns of tables and other lists of columns that several statements have, by the words for them.
var lists = func() map[string][]string {
	all := map[string][]string{
		"texts": texts, "times": times, "choices": choices,
		"counts": {"following_count", "follower_count", "friend_count", "post_count", "favorite_count", "total_favorited"},
	}
	for _, t := range Tables {
		all[t.Name] = t.All()
	}
	return all
}()

var (
	listed    = regexp.MustCompile(`\{(?:(\w+)\.)?(\w+)(?: but ([\w, ]+))?\}`)
	allValues = regexp.MustCompile(`\(([^()]*)\)\nVALUES \(\{\?\}\)`)
)

// WithColumns writes the columns of a statement, for which there are words in braces: {post} is all columns of a table, {p.post} the same
// as they are called by p, and {post but state, attributes} leaves some out. {?} is a value for each column of an INSERT.
func WithColumns(text string) string {
	text = listed.ReplaceAllStringFunc(text, func(word string) string {
		part := listed.FindStringSubmatch(word)
		all, known := lists[part[2]]
		if !known {
			return word
		}
		var columns []string
		for _, c := range all {
			if slices.Contains(strings.Split(part[3], ", "), c) {
				continue
			}
			if part[1] != "" {
				c = part[1] + "." + c
			}
			columns = append(columns, c)
		}
		return strings.Join(columns, ", ")
	})
	return allValues.ReplaceAllStringFunc(text, func(insert string) string {
		return strings.Replace(insert, "{?}", strings.Repeat("?, ", strings.Count(insert, ","))+"?", 1)
	})
}
