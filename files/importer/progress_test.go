package importer

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// An import shows how far it is while one chunk is being written, and counts only edges as edges.
func TestProgressWithinAChunk(t *testing.T) {
	const users, some = 100, 2*addedAtOnce + 1
	for name, tt := range map[string]struct {
		head, line string // the line of user %[1]d and number %[2]d
		lines      int
		edges      int64
	}{
		"edges":      {"", "%[1]d %[2]d\n", 2 * edgesAtOnce, 2 * edgesAtOnce},
		"relations":  {"from,to,kind,at,related,ends_at,attributes\n", "%[1]d,thing:%[2]d,100,50,true,90,\n", some, 0},
		"posts":      {"author,post,key,created_at,edited_at,deleted,text,media,attributes\n", "%[1]d,%[2]d,k%[2]d,50,,false,x,,\n", some, 0},
		"comments":   {"author,post,comment,user,key,created_at,text\n", "1,1,%[2]d,%[1]d,k%[2]d,60,x\n", some, 0},
		"favorites":  {"user,author,post,at,favorited\n", "%[1]d,100,%[2]d,70,true\n", some, 0},
		"identities": {"user,issuer,subject,linked_at\n", "%[1]d,https://a,s%[2]d,80\n", some, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper()
			for id := range storage.UserID(users) {
				k.CreateUsers(ctx, []storage.User{{ID: id + 1, Handle: (id + 1).ImportedHandle()}})
			}
			_, _, err := k.Publish(ctx, storage.PostRow{PostID: storage.PostID{Author: 1, Number: 1}, Key: "a", Text: "a"})
			must.OK(t, err)
			text := strings.Builder{}
			text.WriteString(tt.head)
			for i := range tt.lines {
				fmt.Fprintf(&text, tt.line, i%users+1, i+1_000)
			}
			var seen []int64
			var last Progress
			mustRun(t, k, Config{Files: []string{file(t, "long.csv", text.String())}, OnProgress: func(p Progress) {
				check.That(t, p.Edges <= tt.edges && p.Bytes >= last.Bytes, "%+v after %+v", p, last)
				if len(seen) == 0 || p.Bytes > last.Bytes {
					seen = append(seen, p.Bytes)
				}
				last = p
			}})
			check.That(t, len(seen) >= 4 && last.Bytes == int64(text.Len()) && last.Edges == tt.edges, "seen: %v of %d, %+v", seen, text.Len(), last)
		})
	}
}
