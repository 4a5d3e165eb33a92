package graphfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kith/accounts"
	"kith/graph/declared"
	"kith/storage"
)

// maxMediaText is how many bytes the media of a post may take in a file: enough for the longest names and
// URLs, with every character escaped.
const maxMediaText = 1 << 16

var (
	errListNumber = fmt.Errorf("list is at most %d", storage.MaxListNumber)
	errNoComment  = fmt.Errorf("text has 1 to %d characters", storage.MaxCommentLength)
	errSelf       = errors.New("nobody is in a relation to itself")
	errNoThings   = errors.New("relations of this kind lead to users")
	errMedia      = errors.New(`media must be a JSON array of {"name", "url", "kind"}`)
	errLongMedia  = fmt.Errorf("media take up to %d bytes", maxMediaText)
)

// mediaKinds are the words for what a file is, from [storage.Image] on.
var mediaKinds = []string{"image", "video", "audio", "cover"}

// mediaText is how a file holds the media of a post.
type mediaText struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Kind string `json:"kind"`
}

// PostFormat is the format of posts.
var PostFormat = Format[storage.PostRow]{Posts, func(p *storage.PostRow) []column {
	return []column{
		id("author", &p.Author), number("post", &p.Number), key("key", &p.Key), moment("created_at", &p.At), orEmpty(&p.EditedAt, moment("edited_at", &p.EditedAt)),
		truth("deleted", &p.Deleted, true), text("text", &p.Text, storage.MaxPostLength), value("media", &p.Media, parseMedia, textOfMedia), attributes(&p.Attributes),
	}
}, func(p *storage.PostRow) error {
	if p.Deleted && (p.Text != "" || p.Media != nil || p.Attributes != "") {
		return errors.New("a deleted post has neither text, media nor attributes")
	}
	return nil
}}

// CommentFormat is the format of comments.
var CommentFormat = Format[storage.Comment]{Comments, func(c *storage.Comment) []column {
	return []column{
		id("author", &c.Author), number("post", &c.Post), number("comment", &c.Number), id("user", &c.By), key("key", &c.Key), moment("created_at", &c.CreatedAt),
		text("text", &c.Text, storage.MaxCommentLength),
	}
}, func(c *storage.Comment) error {
	if c.Text == "" { // the column may be empty, a comment may not
		return errNoComment
	}
	return nil
}}

// FavoriteFormat is the format of favorites, and of mentions, which are in the same table. A favorite that was taken back has the type
// [storage.None].
var FavoriteFormat = Format[storage.Edge]{Favorites, func(e *storage.Edge) []column {
	return []column{
		id("user", &e.From), id("author", &e.To), number("post", &e.Item), moment("at", &e.UpdateTime), word("favorited", &e.Type, []string{"false", "true", "mention"}),
	}
}, nil}

// ListFormat is the format of the lists of users. Their members are relations.
var ListFormat = Format[storage.UserList]{Lists, func(l *storage.UserList) []column {
	name := checked("name", &l.Name, func(what, name string) (string, error) { return accounts.CheckName(what, name, 1, storage.MaxListName) })
	return []column{id("owner", &l.Owner), number("list", &l.Number), name, truth("public", &l.Public, true)}
}, func(l *storage.UserList) error {
	if l.Number > storage.MaxListNumber {
		return errListNumber
	}
	return nil
}}

// RelationFormat is the format of relations of declared kinds. One that has ended is of type [storage.None]. things says of kinds
// that are known, by their numbers, whether they lead to things: a number alone is a thing's then.
func RelationFormat(things map[int64]bool) Format[storage.RelationRow] {
	return Format[storage.RelationRow]{Related, func(r *storage.RelationRow) []column {
		return []column{
			id("from", &r.From), end("to", &r.To), number("kind", &r.Item), moment("at", &r.UpdateTime), word("related", &r.Type, truths),
			orEmpty(&r.EndsAt, moment("ends_at", &r.EndsAt)), attributes(&r.Attributes),
		}
	}, func(r *storage.RelationRow) error {
		toThings, known := things[r.Item]
		switch known = known || r.Item < declared.FirstKind || r.Item > declared.LastKind; {
		case toThings && r.To <= storage.MaxUserID:
			r.To = storage.Foreign(int64(r.To))
		case known && !toThings && r.To > storage.MaxUserID:
			return errNoThings
		case r.From == r.To:
			return errSelf
		}
		return nil
	}}
}

// thing is ahead of the product's id of an end that is no user.
const thing = "thing:"

func end(name string, v *storage.UserID) column {
	return value(name, v, func(text string) (storage.UserID, error) {
		number, isThing := strings.CutPrefix(text, thing)
		id, err := ParseID([]byte(number))
		if id > storage.MaxUserID {
			err = ErrIDRange
		} else if isThing {
			id = storage.Foreign(int64(id))
		}
		return id, err
	}, func(id storage.UserID) (string, bool) {
		if id > storage.MaxUserID {
			return fmt.Sprint(thing, id.ForeignID()), true
		}
		return id.String(), id > 0
	})
}

func textOfMedia(media []storage.Media) (string, bool) {
	if len(media) == 0 {
		return "", true
	}
	list := make([]mediaText, len(media))
	for i, m := range media {
		if m.Kind < storage.Image || m.Kind > storage.Cover {
			return "", false
		}
		list[i] = mediaText{m.Name, m.URL, mediaKinds[m.Kind-storage.Image]}
	}
	text, err := storage.CompactJSON(list)
	return text, err == nil
}

func parseMedia(text string) ([]storage.Media, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxMediaText {
		return nil, errLongMedia
	}
	var list []mediaText
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&list); err != nil || decoder.More() {
		return nil, errMedia
	}
	var media []storage.Media
	for _, m := range list {
		kind := slices.Index(mediaKinds, m.Kind)
		if kind < 0 {
			return nil, fmt.Errorf("the kind of media is one of %s", strings.Join(mediaKinds, ", "))
		}
		media = append(media, storage.Media{Name: accounts.SeenOnly(m.Name), URL: accounts.SeenURL(m.URL), Kind: storage.Image + storage.MediaKind(kind)})
	}
	return media, accounts.CheckMedia(media)
}

// besides are the kinds of files of what lies beside edges.
var besides = [len(storage.AnnotationKinds)]Kind{storage.AnnotationMark: Marks, storage.AnnotationMessage: Messages, storage.AnnotationFirst: Firsts}

// errEmpty: a row beside an edge that says nothing.
var errEmpty = errors.New("it says nothing")

// AnnotationKind is the kind of a file of rows beside edges.
func AnnotationKind(b storage.AnnotationKind) Kind { return besides[b] }

// Annotation is what lies beside edges in files of a kind; false for another kind.
func (k Kind) Annotation() (storage.AnnotationKind, bool) {
	i := slices.Index(besides[:], k)
	return storage.AnnotationKind(max(i, 0)), i >= 0
}

// AnnotationFormat is the format of rows beside edges.
func AnnotationFormat(kind storage.AnnotationKind) Format[storage.Annotation] {
	said := func(row *storage.Annotation) []column {
		switch kind {
		case storage.AnnotationMark:
			return []column{truth("special", &row.Special, true), text("remark", &row.Text, storage.MaxRemarkLength), attributes(&row.Attributes)}
		case storage.AnnotationMessage:
			return []column{text("message", &row.Text, storage.MaxMessageLength)}
		}
		return []column{moment("first_followed_at", &row.At)}
	}
	return Format[storage.Annotation]{AnnotationKind(kind), func(row *storage.Annotation) []column {
		return append([]column{id("from", &row.From), id("to", &row.To)}, said(row)...)
	}, func(row *storage.Annotation) error {
		if kind < storage.AnnotationFirst && *row == (storage.Annotation{Pair: row.Pair}) {
			return errEmpty
		}
		return nil
	}}
}

var errIdentity = fmt.Errorf("issuer and subject have 1 to %d bytes each, and no control characters", storage.MaxIdentityText)

// IdentityFormat is the format of identities. Issuer and subject are taken as they are, blanks included.
var IdentityFormat = Format[storage.LinkedIdentity]{Identities, func(l *storage.LinkedIdentity) []column {
	subject := plain("subject", &l.Subject)
	subject.write = func() (string, bool) { return l.Subject, l.Valid() }
	return []column{id("user", &l.User), plain("issuer", &l.Issuer), subject, moment("linked_at", &l.At)}
}, func(l *storage.LinkedIdentity) error {
	if !l.Valid() {
		return errIdentity
	}
	return nil
}}

var (
	moderationActions = []string{storage.Suspended: "suspended", storage.Reinstated: "reinstated", storage.PostRemoved: "post removed", storage.CommentRemoved: "comment removed", storage.UserReported: "user reported", storage.PostReported: "post reported"}
	errEntry          = errors.New("an entry says who has done what, and why: until when a user is suspended, or the number of what was removed or reported")
)

// maxOperatorText is how many bytes the name of an operator has at most: an issuer, a blank and a subject.
const maxOperatorText = 2*storage.MaxIdentityText + 1

// ModerationFormat is the format of the moderation log.
var ModerationFormat = Format[storage.ModerationEntry]{Moderation, func(e *storage.ModerationEntry) []column {
	return []column{
		id("owner", &e.Owner), moment("at", &e.At), id("user", &e.User), word("action", &e.Action, moderationActions), plain("by", &e.By),
		text("reason", &e.Reason, storage.MaxReasonLength), orEmpty(&e.Until, moment("until", &e.Until)), orEmpty(&e.Number, number("number", &e.Number)),
	}
}, func(e *storage.ModerationEntry) error {
	isBy := e.By != "" && len(e.By) <= maxOperatorText && utf8.ValidString(e.By) && !strings.ContainsFunc(e.By, unicode.IsControl)
	if !isBy || e.Action == 0 || e.Reason == "" || (e.Action == storage.Suspended) != (e.Until > 0) || e.Action.HasNumber() != (e.Number > 0) {
		return errEntry
	}
	return nil
}}
