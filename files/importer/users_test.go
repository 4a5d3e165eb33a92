package importer

import (
	"errors"
	"strings"
	"testing"

	"kith/files/graphfile"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func TestUsersFile(t *testing.T) {
	k := newKeeper()
	k.CreateUsers(ctx, []storage.User{{ID: 8, Handle: "zoe", Name: "Zoe"}})
	users := file(t, "people.csv", strings.Join([]string{
		`ID,Handle,name,bio,avatar_url`,
		`1,Maya_Okafor,Maya Okafor,"Rivers, maps",https://maya.example/a/1.png`,
		`2,li,"Li ""Lee"" 李"`,
		`# nobody`,
		`3,u3`,
		`4,u5,steals a handle`,
		`5,Ünï,bad handle`,
		`0,zero`,
		`8,zoe2,exists`,
		`9,zoe,taken`,
		`10,` + strings.Repeat("x", 31),
		`11,eleven,` + strings.Repeat("é", 101),
		`12,twelve,` + strings.Repeat("é", 100),
		`13,"bad"quote,x`,
		`14,last,"of` + "\n" + `two lines"`,
		`15,fifteen,a,b,c,d`,
		`16,caf` + "\xe9",
		`17,seventeen,caf` + "\xe9",
		`18,eighteen,Eve,,javascript:alert(1)`,
		`19,nineteen,Eve,,/a/1.png`,
		"20,twenty,\x1b[2JEve",
		"21,twentyone,Eve,\u202egro.live",
		`22,twentytwo,Eve,` + strings.Repeat("é", 501),
		`23,twentythree,Eve,,https://` + strings.Repeat("é", 493),
		`24,twentyfour,Eve,` + strings.Repeat("é", 500) + `,https://` + strings.Repeat("é", 492),
	}, "\n"))
	edges := file(t, "edges.txt", "9 1\n1 2\n")
	problems := map[int64]error{}
	got := mustRun(t, k, Config{Files: []string{edges, users}, Chunk: 3, Problems: 50, OnProblem: func(p Problem) { problems[p.Line] = p.Reason }})
	if want := (Report{Lines: 25, UsersMade: 7, UsersExisted: 1, Edges: 2, Malformed: 15, Refused: 1}); bare(got) != want {
		t.Errorf("%+v, want %+v", bare(got), want)
	}
	for line, want := range map[int64]error{
		6: graphfile.ErrHandleOfID, 7: graphfile.ErrHandle, 8: graphfile.ErrIDRange, 10: storage.ErrHandleTaken, 11: graphfile.ErrHandle, 17: graphfile.ErrColumns, 18: graphfile.ErrHandle,
	} {
		check.That(t, errors.Is(problems[line], want), "line %d: %v, want %v", line, problems[line], want)
	}
	for line, want := range map[int64]string{
		12: "name has 1 to 100 characters", 19: "name holds characters", 20: "https://", 21: "https://", 22: "name holds characters",
		23: "bio holds characters", 24: "bio has 0 to 500 characters", 25: "avatarUrl has 0 to 500 characters",
	} {
		check.That(t, problems[line] != nil && strings.Contains(problems[line].Error(), want), "line %d: %v, want %q", line, problems[line], want)
	}
	check.That(t, problems[14] != nil, "the wrong quoting of line 14 is not reported: %v", problems)
	for id, want := range map[storage.UserID]storage.User{
		1:  {Handle: "maya_okafor", Name: "Maya Okafor", Bio: "Rivers, maps", AvatarURL: "https://maya.example/a/1.png"},
		2:  {Handle: "li", Name: `Li "Lee" 李`},
		3:  {Handle: "u3", Name: "u3"},
		8:  {Handle: "zoe", Name: "Zoe"},
		9:  {Handle: "u9", Name: "u9"}, // by the edge, which came later
		12: {Handle: "twelve", Name: strings.Repeat("é", 100)},
		14: {Handle: "last", Name: "of two lines"},
	} {
		u := storage.UserLookups.Read(ctx, k, id)[0].Value
		check.That(t, u.Handle == want.Handle && u.Name == want.Name && u.Bio == want.Bio && u.AvatarURL == want.AvatarURL, "user %d: %+v, want %+v", id, u, want)
	}
}

// TestTheFirstLineThatIsAcceptedMakesAUser, also if the lines are in one chunk. Lines behind it are of a user who exists.
func TestTheFirstLineThatIsAcceptedMakesAUser(t *testing.T) {
	for _, chunk := range []int{1, 2, 100} {
		k := newKeeper()
		k.CreateUsers(ctx, []storage.User{{ID: 8, Handle: "zoe", Name: "Zoe"}})
		users := file(t, "users.csv", "id,handle\n1,zoe\n1,ada\n1,ada2\n2,zoe\n2,zoe\n")
		got, want := bare(mustRun(t, k, Config{Files: []string{users}, Chunk: chunk})), (Report{Lines: 5, UsersMade: 1, UsersExisted: 1, Refused: 3})
		check.That(t, got == want, "%d lines a chunk: %+v, want %+v", chunk, got, want)
		check.Equal(t, "handle", storage.UserLookups.Read(ctx, k, 1)[0].Value.Handle, "ada")
	}
}

// TestUsersAreForgottenAndFoundAgain: an import knows a bounded number of users at a time, and counts as if it knew all.
func TestUsersAreForgottenAndFoundAgain(t *testing.T) {
	files := []string{file(t, "users.csv", "id,handle\n1,ada\n2,grace\n3,alan\n1,again\n8,u9\n"), file(t, "e.txt", "1 2\n2 3\n3 1\n4 1\n4 2\n1 5\n")}
	for _, most := range []int{0, 3, mostKnown} {
		im, err := Open(Config{Files: files, Chunk: 1})
		must.OK(t, err)
		im.mostKnown = most
		got, err := im.Run(ctx, newKeeper())
		must.OK(t, err)
		check.Equal(t, "the report", bare(got), Report{Lines: 11, UsersMade: 5, UsersExisted: 1, Edges: 6, Malformed: 1})
		check.Most(t, "known at the end", len(im.users), most+2)
	}
}

// A name may begin with what begins a comment elsewhere: no line is left out that is not reported.
func TestNamesThatBeginLikeComments(t *testing.T) {
	k := newKeeper()
	users := file(t, "users.csv", "# of the fan club\nname,id,handle\n#1 fan,1,ada\n# nobody\nGrace,2,grace\n#3,3,alan\n")
	if got := mustRun(t, k, Config{Files: []string{users}, Chunk: 2}); got.Malformed != 1 || got.UsersMade != 3 {
		t.Errorf("%+v", bare(got))
	}
	for id, want := range map[storage.UserID]string{1: "#1 fan", 2: "Grace", 3: "#3"} {
		u := storage.UserLookups.Read(ctx, k, id)[0].Value
		check.That(t, u.Name == want, "%+v", u)
	}
}

// A quote that does not end takes the lines behind it along. The report says up to where: nothing else tells that they are missing.
func TestAQuoteThatDoesNotEnd(t *testing.T) {
	users := file(t, "users.csv", "id,handle,name\n1,ada,Ada\n2,grace,\"Grace\n3,alan,Alan\n4,joan,Joan\n")
	var problem Problem
	got := mustRun(t, newKeeper(), Config{Files: []string{users}, Problems: 1, OnProblem: func(p Problem) { problem = p }})
	if got.Malformed != 1 || got.UsersMade != 1 || problem.Line != 3 || !strings.Contains(problem.Reason.Error(), "the lines up to 5, which are left out") {
		t.Errorf("%+v: %+v", bare(got), problem)
	}
}

func TestSniff(t *testing.T) {
	tests := []struct {
		name, text string
		want       graphfile.Kind
	}{
		{"a.txt", "1 2\n", ""},
		{"a.csv", "1,2\n", ""},
		{"a.csv", "1,2,1709212455\n", ""},
		{"a.csv", "from,to\n1,2\n", ""},
		{"a.csv", "", ""},
		{"a.csv", "# only a comment", ""},
		{"a.csv.gz", "1,maya,Maya\n", graphfile.Users},
		{"a.csv", "1,maya\n", graphfile.Users},
		{"a.csv", "\"1\",\"maya\"\n", graphfile.Users},
		{"a.csv", "1,2,1700000000000\n3,4,1700000000001\n", ""},
		{"a.csv", "1,2,2026-11-20 08:15:30\n", ""},
		{"a.csv", "1,2,2026-11-20\n", ""},
		{"a.csv", "1,2,-1\n3,4,1700000000\n", ""},
		{"a.csv", "1,2,x\n3,4\n5,six\n7,8\n", ""},
		{"a.csv", "1,2,Two\n3,maya,Maya\n4,liam,Liam\n", graphfile.Users},
		{"a.csv", "\"1\",\"2\",\"2026-11-20 08:15:30\"\n", ""},
		{"a.csv", "1,maya,Maya,\"liked:\n3 4\n5 6\"\n2,liam,Liam,\"\n1,2\n1,3\n\"\n7,noor,Noor,\"one line, and \"\"3 4\"\"\"\n", graphfile.Users},
		{"a.csv", "# a \"quote\n1 2\n3 x\"\n\"4\" \"5\"\n", ""},
		{"a.txt", "1,maya\n", ""},
		{"a.txt", "\n# people\n id , HANDLE \n1,maya\n", graphfile.Users},
		{"a.csv", "name,handle,id\nMaya,maya,1\n", graphfile.Users},
		{"a.csv", "\xef\xbb\xbfid,handle\n1,maya\n", graphfile.Users},
	}
	for _, tt := range tests {
		in, err := probe(file(t, tt.name, tt.text), nil)
		must.OK(t, err)
		check.That(t, in.kind == tt.want, "%s with %q: kind %q, want %q", tt.name, tt.text, in.kind, tt.want)
	}
	// What may be either is not guessed.
	for _, text := range []string{"1,2,-1\n", "1,2,x\n3,4,y\n", "1,2\n3,maya\n"} {
		_, err := probe(file(t, "a.csv", text), nil)
		check.Says(t, text, err, "edges or users")
	}
}

// Names that only users have are no edge list's: the error says what the users lack.
func TestUsersWithoutHandles(t *testing.T) {
	for _, text := range []string{"id,name\n1,Maya\n", "handle,name\nmaya,Maya\n"} {
		_, err := probe(file(t, "a.csv", text), nil)
		check.Says(t, text, err, "need the columns id and handle")
	}
}

// TestHeadersThatAreNotWhole: other files than users' have all columns in one order, and the error says which.
func TestHeadersThatAreNotWhole(t *testing.T) {
	posts := strings.Join(graphfile.Posts.Header(), ",")
	for text, want := range map[string]string{
		strings.TrimSuffix(posts, ",attributes"):       "posts have the columns " + posts + ", and it has author,post,key",
		posts + ",views":                               "posts have the columns " + posts,
		"author,post,key,created,text,attributes":      "posts have the columns " + posts,
		"post,author,user,comment,created_at,key,text": "comments have the columns author,post,comment,user",
		"from,to,special,remark":                       "marks have the columns from,to,special,remark,attributes, and it has from,to,special,remark",
		"from,to,kind,at":                              "relations have the columns from,to,kind,at",
	} {
		for _, name := range []string{"a.csv", "a.csv.gz", "a"} {
			_, err := probe(file(t, name, text+"\n1,2,3,4\n"), nil)
			check.That(t, err != nil && strings.Contains(err.Error(), want), "%s, %q: %v", name, text, err)
		}
	}
	_, err := probe(file(t, "a.csv", "user_id,username,name,bio,avatar_url\n1,maya,Maya\n"), nil)
	check.Is(t, "columns of users", err, nil)
}

func TestColumnsInAnyOrder(t *testing.T) {
	k := newKeeper()
	mustRun(t, k, Config{Files: []string{file(t, "p.csv", "name,handle,id\nMaya,maya,1\n")}})
	u := storage.UserLookups.Read(ctx, k, 1)[0].Value
	check.That(t, u.Handle == "maya" && u.Name == "Maya", "%+v", u)
	for _, header := range []string{"id,handle,id\n", "id,handle,likes\n"} {
		_, err := probe(file(t, "p.csv", header), nil)
		check.That(t, err != nil, "the header %q is taken", header)
	}
}

func TestSameFilesElsewhereHaveTheSameKey(t *testing.T) {
	key := func(name, text string, relation ...graphfile.Kind) string {
		in, err := probe(file(t, name, text), nil)
		must.OK(t, err)
		return checkpointKey([]*input{in}, append(relation, graphfile.Follows)[0])
	}
	here, there := key("a.txt", "1 2\n"), key("a.txt", "1 2\n")
	check.That(t, here == there, "the folder matters")
	check.That(t, here != key("b.txt", "1 2\n") && here != key("a.txt", "1 3\n") && here != key("a.txt", "1 2\n\n"), "different files share a key")
	blocks, requests := key("a.txt", "1 2\n", graphfile.Blocks), key("a.txt", "1 2\n", graphfile.Requests)
	check.That(t, here != blocks && here != requests && blocks != requests, "different relations share a key")
}

// The id of a deleted user makes no user, neither in a users file nor at an end of an edge, and takes no handle. Nor does one that is not a user's.
func TestIDsThatAreNobodysAreRefused(t *testing.T) {
	k := newKeeper()
	gone := storage.UserID(55)
	k.CreateUsers(ctx, []storage.User{{ID: gone, Handle: "gone", Name: "G"}})
	_, err := k.SetState(ctx, gone, storage.Deleting, 1)
	must.OK(t, err)
	must.OK(t, k.Erase(ctx, gone, 2))
	var reasons []error
	r := mustRun(t, k, Config{
		Files:    []string{file(t, "u.csv", "id,handle\n55,back\n4611686018427387909,show\n1,ada\n"), file(t, "e.txt", "55 1\n1 4611686018427387909\n1 2\n")},
		Problems: 9, OnProblem: func(p Problem) { reasons = append(reasons, p.Reason) },
	})
	check.That(t, r.UsersMade == 2 && r.Edges == 1 && r.Refused == 4 && len(reasons) == 4, "%+v, %v", r, reasons)
	for _, err := range reasons {
		check.That(t, errors.Is(err, storage.ErrIDUnusable), "%v", err)
	}
	for _, handle := range storage.HandleLookups.Read(ctx, k, "back", "show", "u55") {
		check.That(t, !handle.Found, "%d has a handle", handle.Value)
	}
}
