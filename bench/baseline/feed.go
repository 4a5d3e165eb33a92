package baseline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Two ways to make a page of a home feed by hand: a join of the viewer's followings with their posts,
// and inboxes in Redis, into which another program has put the posts of each reader's followings when
// they were published.

// InboxKey is the key of a reader's inbox: a sorted set with "author:number" by the time of the post.
func InboxKey(reader int64) string { return "inbox:" + strconv.FormatInt(reader, 10) }

const (
	feedPage = 20

	sqlFeed = `
SELECT p.author_id, p.post_id, p.text, p.created_at, u.name
FROM (
  SELECT p.author_id, p.post_id, p.created_at
  FROM following f
  JOIN post p ON p.author_id = f.to_user_id AND p.state = 0
  WHERE f.from_user_id = ? AND f.type = 1
  ORDER BY p.created_at DESC, p.post_id DESC
  LIMIT 20
) newest
JOIN post p ON p.author_id = newest.author_id AND p.post_id = newest.post_id
JOIN users u ON u.user_id = p.author_id
ORDER BY p.created_at DESC, p.post_id DESC`

	sqlPosts = `
SELECT p.author_id, p.post_id, p.text, p.created_at, u.name
FROM post p
JOIN users u ON u.user_id = p.author_id
WHERE (p.author_id, p.post_id) IN (?) AND p.state = 0
ORDER BY p.created_at DESC, p.post_id DESC`
)

// feeds answers with pages of home feeds.
type feeds struct {
	joined, byID *sql.Stmt
	inboxes      redis.UniversalClient // nil: the page is read by a join
}

func (f *feeds) page(ctx context.Context, viewer int64) ([]byte, error) {
	b := append(make([]byte, 0, 8<<10), `{"data":{"viewer":{"feed":{"edges":[`...)
	rows, err := f.rows(ctx, viewer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var author, number, created int64
	var text, name sql.RawBytes
	for first := true; rows.Next(); first = false {
		if err := rows.Scan(&author, &number, &text, &created, &name); err != nil {
			return nil, err
		}
		if !first {
			b = append(b, ',')
		}
		b = append(b, `{"node":{"id":"post_`...)
		b = strconv.AppendInt(b, author, 10)
		b = append(b, '_')
		b = strconv.AppendInt(b, number, 10)
		b = append(b, `","text":`...)
		b = appendText(b, text)
		b = append(b, `,"createdAt":"`...)
		b = appendTime(b, created)
		b = append(b, `","author":`...)
		b = append(appendNode(b, author, name), '}', '}')
	}
	return append(b, `],"complete":true}}}}`...), rows.Err()
}

func (f *feeds) rows(ctx context.Context, viewer int64) (*sql.Rows, error) {
	if f.inboxes == nil {
		return f.joined.QueryContext(ctx, viewer)
	}
	members, err := f.inboxes.ZRevRange(ctx, InboxKey(viewer), 0, feedPage-1).Result()
	if err != nil {
		return nil, err
	}
	if len(members) != feedPage {
		return nil, fmt.Errorf("the inbox of %d has %d posts, want %d", viewer, len(members), feedPage)
	}
	arguments := make([]any, 0, 2*feedPage)
	for _, member := range members {
		author, number, is := strings.Cut(member, ":")
		if !is {
			return nil, errors.New("not a post: " + member)
		}
		arguments = append(arguments, author, number)
	}
	return f.byID.QueryContext(ctx, arguments...)
}
