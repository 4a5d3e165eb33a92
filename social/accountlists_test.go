package social_test

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/social"
)

// TestReadAccounts: each form in which other networks write accounts.
func TestReadAccounts(t *testing.T) {
	for kind, c := range map[social.AccountsKind][2]string{
		social.AccountFollows: {
			"\ufeffAccount address,Show boosts,Notify on new posts,Languages\r\nAna@example.org,true,false,\"en,de\"\r\n\n# said\n@bob\n@carl@example.org\n" +
				"dora.bsky.social\n\"eve@example.org\",true\nmaya_9\n  finn  \n@\na b\n\"un\nlast",
			`2 "ana" 5 "bob" 6 "carl" 7 "dora" 8 "eve" 9 "maya_9" 10 "finn" 11 "" 12 "a b" 13 "un" 14 "last" `,
		},
		social.AccountBlocks: {"ana@example.org\nbob\n", `1 "ana" 2 "bob" `},
		social.AccountMutes: {
			"Account address,Hide notifications\nana@example.org,true\nbob@example.org,FALSE\ncarl\n",
			`2 "ana" 3 "bob" posts only 4 "carl" `,
		},
		social.AccountLists: {
			"Friends,ana@example.org\n\"A, b \"\"c\"\"\",bob@example.org\nnobody\n,dora\n# said\n#go,eve\nAccount address,finn\n",
			`1 "ana" on "Friends" 2 "bob" on "A, b \"c\"" 3 "" on "nobody" 4 "dora" 6 "eve" on "#go" 7 "finn" on "Account address" `,
		},
	} {
		var got string
		for a := range social.ReadAccounts(kind, c[0]) {
			got += fmt.Sprintf("%d %q ", a.Line, a.Handle)
			if a.PostsOnly {
				got += "posts only "
			}
			if a.List != "" {
				got += fmt.Sprintf("on %q ", a.List)
			}
		}
		check.Equal(t, kind, got, c[1])
	}
}
