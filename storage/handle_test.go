package storage_test

import (
	"strings"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

func TestHandles(t *testing.T) {
	for text, want := range map[string]string{"Maya_9": "maya_9", "\u212aelvin": "\u212aelvin", "ÄB": "Äb"} {
		check.Equal(t, text, storage.FoldHandle(text), want)
	}
	for handle, want := range map[string]bool{
		"a": true, "maya_9": true, strings.Repeat("x", 30): true,
		"": false, "Maya": false, "a b": false, "a-b": false, "äb": false, "a\x00b": false, "ab\n": false, strings.Repeat("x", 31): false,
	} {
		check.Equal(t, handle, storage.ValidHandle(handle), want)
	}
	for handle, want := range map[string]bool{"u1": false, "u0": false, "u007": false, "u7": true, "u": true, "u1a": true, "1u": true, "user1": true} {
		got := storage.UserID(7).MayUse(handle)
		check.That(t, got == want && storage.UserID(0).MayUse(handle) == (want && handle != "u7"), "MayUse(%q) = %t", handle, got)
	}
}
