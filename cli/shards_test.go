package cli

import (
	"testing"

	"kith/storage"
)

func TestBucketsAreParsed(t *testing.T) {
	for text, want := range map[string]storage.BucketRange{"0-1023": {First: 0, Last: 1023}, "7": {First: 7, Last: 7}, "3 - 4": {First: 3, Last: 4}} {
		var got bucketRange
		if err := got.UnmarshalText([]byte(text)); err != nil || storage.BucketRange(got) != want {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "a-b", "5-", "9-3", "-1-4", "0-1024", "1-2-3", "99999999999999999999"} {
		var got bucketRange
		if got.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
