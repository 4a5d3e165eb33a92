package social_test

import (
	"fmt"
	"testing"

	"kith/social"
)

// TestHandles: each form in which other networks write accounts.
func TestHandles(t *testing.T) {
	const file = "\ufeffAccount address,Show boosts,Notify on new posts,Languages\r\nAna@example.org,true,false,\"en,de\"\r\n\n# said\n@bob\n@carl@example.org\n" +
		"dora.bsky.social\n\"eve@example.org\",true\nmaya_9\n  finn  \n@\na b\nlast"
	var got string
	for line, handle := range social.Handles(file) {
		got += fmt.Sprintf("%d %q ", line, handle)
	}
	if want := `2 "ana" 5 "bob" 6 "carl" 7 "dora" 8 "eve" 9 "maya_9" 10 "finn" 11 "" 12 "a b" 13 "last" `; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
