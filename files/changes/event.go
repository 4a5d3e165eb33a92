package changes

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"kith/files/graphfile"
	"kith/replication"
	"kith/storage"
	"kith/storage/contents"
)

// A Kind is what has changed.
type Kind string

// The kinds.
const (
	Users     Kind = "users"    // a user was made, or its profile or state has changed, or it is gone, with its posts
	Counts    Kind = "counts"   // a user's counts, and perhaps something beside its edges, such as a mark
	Posts     Kind = "posts"    // a post was published or edited, its comments have changed, or it is gone
	Comments  Kind = "comments" // a comment was written, or is gone
	Follows   Kind = "follows"
	Requests  Kind = "requests"
	Favorites Kind = "favorites"
	Relations Kind = "relations"
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{Users, Counts, Posts, Comments, Follows, Requests, Favorites, Relations}
}

// ofSides are the kinds of the tables that are the source of truth.
var ofSides = map[storage.Side]Kind{storage.Forward: Follows, storage.Requests: Requests, storage.Favorites: Favorites, storage.Relations: Relations}

// Event is one change in the JSON form of CloudEvents 1.0 (structured mode). An ID is that of the same change whenever it is read, and
// is unique in its Source.
type Event struct {
	SpecVersion     string            `json:"specversion"`
	ID              string            `json:"id"`
	Source          string            `json:"source"` // the store and its log
	Type            string            `json:"type"`   // "kith." and a kind, or [Position]
	Subject         string            `json:"subject,omitempty"`
	Time            time.Time         `json:"time,omitzero"`
	DataContentType string            `json:"datacontenttype,omitempty"`
	Data            map[string]string `json:"data,omitempty"`   // the columns of the files of an export; those that are empty are left out
	Cursor          string            `json:"cursor,omitempty"` // where reading goes on after the event; empty if more of the same transaction follows
}

// Position is the type of events that only have a cursor.
const Position = "kith.position"

// describer makes the events of what a log has.
type describer struct {
	store  Store
	source string
	kinds  map[Kind]bool
	id     string
	events []Event
}

// firsts are the keys of those in a list that have one, each once.
func firsts[T any, K comparable](list []T, key func(T) (K, bool)) (keys []K) {
	seen := make(map[K]bool)
	for _, one := range list {
		if k, has := key(one); has && !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// describe makes the events of one transaction. Users, posts, comments, and the ends and attributes of relations are as they are when this
// is called.
func (d *describer) describe(ctx context.Context, c replication.Changed) ([]Event, error) {
	d.id, d.events = c.ID, nil
	d.store.Look(ctx)
	users, counts := []storage.UserID{}, []storage.UserChange{}
	for _, u := range c.Users {
		if u.What.Has(storage.Whole | storage.Standing) {
			users = append(users, u.User)
		}
		if u.Counts.Version > 0 {
			counts = append(counts, u)
		}
	}
	if err := d.users(ctx, users); err != nil {
		return nil, err
	}
	for _, u := range counts {
		d.counts(u)
	}
	if err := d.posts(ctx, c.Posts); err != nil {
		return nil, err
	}
	if err := d.comments(ctx, c.Comments); err != nil {
		return nil, err
	}
	err := d.rows(ctx, c.Rows)
	return d.events, err
}

// add adds an event, unless its kind is not wanted.
func (d *describer) add(kind Kind, at storage.Micros, data map[string]string, keys ...string) {
	if !d.kinds[kind] {
		return
	}
	subject := strings.Join(keys, "/")
	e := Event{
		SpecVersion: "1.0", ID: d.id + "/" + string(kind) + "/" + subject, Source: d.source, Type: "kith." + string(kind), Subject: subject,
		DataContentType: "application/json", Data: data,
	}
	if at > 0 {
		e.Time = at.Time()
	}
	d.events = append(d.events, e)
}

func (d *describer) users(ctx context.Context, ids []storage.UserID) error {
	if !d.kinds[Users] || len(ids) == 0 {
		return nil
	}
	states := storage.StateLookups.Read(ctx, d.store, ids...)
	for i, u := range storage.UserLookups.Read(ctx, d.store, ids...) {
		if err := cmp.Or(u.Err, states[i].Err); err != nil {
			return err
		}
		key := ids[i].String()
		if !u.Found {
			d.add(Users, 0, map[string]string{"id": key, "state": "deleted"}, key)
			continue
		}
		data := fields(graphfile.UserFormat, contents.Account{User: u.Value, State: states[i].Value.State})
		if until := states[i].Value.Until; until > 0 { // an export has it in the moderation log
			data["suspended_until"] = string(graphfile.AppendTime(nil, until))
		}
		d.add(Users, u.Value.UpdatedAt, data, key)
	}
	return nil
}

func (d *describer) counts(u storage.UserChange) {
	n, key := u.Counts, u.User.String()
	data := map[string]string{"user": key}
	for name, value := range map[string]int64{
		"following": n.Following, "follower": n.Follower, "friend": n.Friend, "posts": n.Posts, "favorites": n.Favorites, "favorited": n.Favorited, "version": n.Version,
	} {
		data[name] = strconv.FormatInt(value, 10)
	}
	d.add(Counts, 0, data, key)
}

func (d *describer) posts(ctx context.Context, changed []storage.ChangedPost) error {
	if !d.kinds[Posts] {
		return nil
	}
	ids := firsts(changed, func(p storage.ChangedPost) (storage.PostID, bool) { return p.PostID, p.Number != 0 }) // 0 is all of a user who is gone
	for i, r := range storage.PostLookups.Read(ctx, d.store, ids...) {
		if r.Err != nil {
			return r.Err
		}
		p, author, number := r.Value, ids[i].Author.String(), strconv.FormatInt(ids[i].Number, 10)
		if !r.Found {
			d.add(Posts, 0, map[string]string{"author": author, "post": number, "deleted": "true"}, author, number)
			continue
		}
		row := storage.PostRow{PostID: p.PostID, Text: p.Text, Media: p.Media, At: p.CreatedAt, Attributes: p.Attributes, EditedAt: p.EditedAt}
		data := fields(graphfile.PostFormat, row)
		data["comments"], data["favorites"] = strconv.FormatInt(p.Counts.Comments, 10), strconv.FormatInt(p.Counts.Favorites, 10)
		d.add(Posts, max(p.CreatedAt, p.EditedAt), data, author, number)
	}
	return nil
}

func (d *describer) comments(ctx context.Context, ids []storage.CommentID) error {
	if !d.kinds[Comments] {
		return nil
	}
	for i, r := range storage.CommentLookups.Read(ctx, d.store, ids...) {
		if r.Err != nil {
			return r.Err
		}
		c, author, number := r.Value, ids[i].Author.String(), strconv.FormatInt(ids[i].Number, 10)
		data := map[string]string{"author": author, "comment": number, "deleted": "true"}
		if r.Found {
			data = fields(graphfile.CommentFormat, c)
		}
		d.add(Comments, c.CreatedAt, data, author, number)
	}
	return nil
}

// rows adds the rows of the tables that are the source of truth; the others are derived from those.
func (d *describer) rows(ctx context.Context, rows []storage.Row) error {
	last := make(map[storage.Row]int) // by row, without what it says: only the end of the transaction counts
	for i, r := range rows {
		last[storage.Row{Side: r.Side, Edge: r.Edge.Pair().Edge(0, 0)}] = i
	}
	relations := firsts(rows, func(r storage.Row) (storage.Pair, bool) {
		return r.Edge.Pair(), r.Side == storage.Relations && d.kinds[Relations]
	})
	details := make(map[storage.Pair]storage.Detail, len(relations))
	for i, detail := range storage.DetailLookups.Read(ctx, d.store, relations...) {
		if details[relations[i]] = detail.Value; detail.Err != nil {
			return detail.Err
		}
	}
	for i, r := range rows {
		if last[storage.Row{Side: r.Side, Edge: r.Edge.Pair().Edge(0, 0)}] == i && ofSides[r.Side] != "" {
			d.row(r, details[r.Edge.Pair()])
		}
	}
	return nil
}

func (d *describer) row(r storage.Row, detail storage.Detail) {
	kind, e := ofSides[r.Side], r.Edge
	keys := []string{e.From.String(), e.To.String()}
	var data map[string]string
	switch kind {
	case Favorites:
		data = fields(graphfile.FavoriteFormat, e)
	case Relations:
		data = fields(graphfile.RelationFormat(nil), storage.RelationRow{Edge: e, Detail: detail})
		keys[1] = data["to"] // which may be no user
	default:
		relation, _ := graphfile.RelationOf(r.Side, e.Type)
		data = map[string]string{"relation": string(relation), "from": keys[0], "to": keys[1], "at": string(graphfile.AppendTime(nil, e.UpdateTime))}
	}
	if r.Side.HasItem() {
		keys = append(keys, strconv.FormatInt(e.Item, 10))
	}
	d.add(kind, e.UpdateTime, data, keys...)
}

// fields are the columns of a row as an export has them, without those that are empty. Of a damaged row they say so.
func fields[T any](format graphfile.Format[T], row T) map[string]string {
	record, err := format.Record(row)
	if err != nil {
		return map[string]string{"damaged": err.Error()}
	}
	data := make(map[string]string, len(record))
	for i, name := range format.Kind.Header() {
		if record[i] != "" {
			data[name] = record[i]
		}
	}
	return data
}
