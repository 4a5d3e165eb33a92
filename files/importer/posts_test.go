package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

const (
	someUsers = "id,handle\n1,one\n2,two\n3,three\n"
	somePosts = "author,post,key,created_at,edited_at,deleted,text,media,attributes\n" +
		"1,10,a,50,51,false,\"of\ntwo lines\",\"[{\"\"name\"\":\"\"\"\",\"\"url\"\":\"\"https://a\"\",\"\"kind\"\":\"\"image\"\"}]\",\n" +
		"1,11,b,52,,true,,,\n1,10,c,50,,false,again,,\n1,12,a,53,,false,the key is taken,,\n9,13,d,54,,false,nobody's,,\n1,14,e,55,,maybe,x,,\n3,15,f,56,,false,there,,\n"
	someComments = "author,post,comment,user,key,created_at,text\n" +
		"1,10,20,2,a,60,first\n1,10,21,1,a,61,second\n1,11,22,2,b,62,on a deleted post\n1,10,23,9,c,63,nobody's\n1,10,24,2,a,64,the key is taken\n1,10,20,2,a,60,first\n"
	someFavorites = "user,author,post,at,favorited\n" +
		"2,1,10,70,true\n3,1,10,71.000001,True\n1,1,10,72,false\n2,1,11,73,true\n9,1,10,74,true\n2,9,10,75,true\n9,1,11,76,false\n2,1,10,77,true\n2,1,10,78,maybe\n2,1,0,79,true\n"
)

// postFiles are in an order in which they cannot be written.
func postFiles(t *testing.T) []string {
	return []string{file(t, "favorites.csv", someFavorites), file(t, "comments.csv.gz", someComments), file(t, "posts.csv", somePosts), file(t, "users.csv", someUsers)}
}

func postSeed(t *testing.T) *keeper {
	t.Helper()
	k := newKeeper()
	k.CreateUsers(ctx, []storage.User{{ID: 3, Handle: "three"}})
	_, _, err := k.Publish(ctx, storage.PostRow{PostID: storage.PostID{Author: 3, Number: 15}, Key: "mine", Text: "mine"})
	must.OK(t, err)
	return k
}

// checkPosts checks that posts and comments are those of the files and those that existed, with their counts.
func checkPosts(t *testing.T, name string, k *keeper) {
	t.Helper()
	p := storage.PostLookups.Read(ctx, k, storage.PostID{Author: 1, Number: 10})[0].Value
	check.That(t, p.Text == "of\ntwo lines" && len(p.Media) == 1 && p.CreatedAt == 50e6 && p.EditedAt == 51e6 && p.Counts.Comments == 2, "%s: post %+v", name, p)
	if p := storage.PostLookups.Read(ctx, k, storage.PostID{Author: 3, Number: 15})[0].Value; p.Text != "mine" {
		t.Errorf("%s: what was there: %+v", name, p)
	}
	check.Equal(t, name+": the posts of user 1", storage.CountLookups.Read(ctx, k, 1)[0].Value.Posts, 1)
	check.That(t, p.Counts.Favorites == 2, "%s: post %+v", name, p)
	for i, r := range storage.CountLookups.Read(ctx, k, 1, 2, 3, 9) {
		// The favorite of the deleted post counts only for the user.
		got, want := [2]int64{r.Value.Favorites, r.Value.Favorited}, [][2]int64{{0, 2}, {2, 0}, {1, 0}, {0, 0}}[i]
		check.That(t, got == want, "%s: favorites %v, want %v", name, got, want)
	}
	for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
		e := storage.EdgeLookups[side].Read(ctx, k, storage.Pair{From: 1, To: 1, Item: 10})[0].Value
		check.That(t, e.Type == storage.None && e.UpdateTime == 72e6, "%s: %s has %+v", name, side, e)
	}
	_, _, err := k.Publish(ctx, storage.PostRow{PostID: storage.PostID{Author: 1, Number: 99}, Key: "b"})
	check.Is(t, fmt.Sprintf("%s: the key of a deleted post", name), err, storage.ErrPostUnknown)
}

func TestPostsAndComments(t *testing.T) {
	for _, lines := range []int{1, 2, 100} {
		k, problems := postSeed(t), 0
		got := mustRun(t, k, Config{Files: postFiles(t), Chunk: lines, Problems: 50, OnProblem: func(Problem) { problems++ }})
		want := Report{Lines: 26, UsersMade: 2, UsersExisted: 1, Posts: 2, Comments: 2, Favorites: 5, Duplicates: 3, Existed: 1, Malformed: 3, Refused: 7}
		if lines < 100 { // a line that is repeated in another chunk counts as existing
			want.Duplicates, want.Existed = 0, 4
		}
		check.That(t, bare(got) == want, "%d lines: %+v, want %+v", lines, bare(got), want)
		check.That(t, problems == 10, "%d lines: %d problems", lines, problems)
		checkPosts(t, fmt.Sprint(lines, " lines"), k)
	}
}

// An import that is killed writes posts and comments once, and counts them once.
func TestKilledImportWritesPostsOnce(t *testing.T) {
	config := func() Config { return Config{Files: postFiles(t), Chunk: 2, Start: start} }
	killAtEachWrite(t, 12, postSeed, config, func(name string, k *keeper, over bool) {
		got := mustRun(t, k, config())
		check.That(t, over || got.Posts+got.Comments+got.Favorites+got.Existed == 13, "%s: %+v", name, bare(got))
		checkPosts(t, name, k)
	})
}

// A record has a bound, and a chunk of records has a bound for their text, so the content of a file does not
// decide how much memory an import takes.
func TestRecordsHaveBounds(t *testing.T) {
	post := func(n, length int) string {
		return fmt.Sprintf("1,%d,k%d,50,,false,\"%s\",,\n", n, n, strings.Repeat("x", length))
	}
	head, _, _ := strings.Cut(somePosts, "\n")
	users := file(t, "users.csv", someUsers)
	_, err := Run(ctx, newKeeper(), Config{Files: []string{users, file(t, "posts.csv", head+"\n"+post(10, 2000)+post(11, maxRecord+bufferSize))}})
	check.Is(t, "a long record", err, graphfile.ErrLongRecord)
	k := newKeeper()
	got := mustRun(t, k, Config{Files: []string{users, file(t, "posts.csv", head+"\n"+post(10, 2000)+post(11, maxRecord-bufferSize))}})
	check.That(t, got.Posts == 1 && got.Malformed == 1, "a long text: %+v", bare(got))

	inputs, err := probeAll([]string{file(t, "posts.csv", head+"\n"+post(10, 900)+post(11, 900)+post(12, 900)+post(13, 900))}, nil, "")
	must.OK(t, err)
	r := &splitter{inputs: inputs, lines: 100, bytes: 1500}
	var chunks []int
	for r.pos.File < len(inputs) {
		c, err := r.next()
		must.OK(t, err)
		chunks = append(chunks, len(c.rows.(*recordRows[storage.PostRow, storage.PostID]).list))
	}
	check.That(t, slices.Equal(chunks, []int{2, 2}) || slices.Equal(chunks, []int{2, 2, 0}), "chunks of %d posts", chunks)
}

// The import says how many posts are dated in the future.
func TestPostsOfTheFuture(t *testing.T) {
	users := file(t, "users.csv", someUsers)
	posts := file(t, "posts.csv", "author,post,key,created_at,edited_at,deleted,text,media,attributes\n1,10,a,50,,false,past,,\n1,11,b,9999-01-01T00:00:00Z,,false,in the year 9999,,\n")
	r, err := Run(ctx, newKeeper(), Config{Files: []string{users, posts}})
	check.That(t, err == nil && r.Posts == 2 && r.FuturePosts == 1, "%+v, %v", r, err)
}
