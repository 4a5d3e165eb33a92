package storage

import "strings"

// FoldHandle converts a handle as a user typed it to its stored form: ASCII letters in lower case.
// (strings.ToLower would turn the Kelvin sign into a k.)
func FoldHandle(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, text)
}

// ValidHandle reports whether a folded handle may be stored: [a-z0-9_]{1,30}.
func ValidHandle(handle string) bool {
	return handle != "" && len(handle) <= MaxHandleLength &&
		strings.Trim(handle, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// ImportedHandle is the handle of a user of whom only the id is known.
func ImportedHandle(id UserID) string { return "u" + id.String() }

// ReservedHandle reports whether a handle has the form of [ImportedHandle], which only the user with
// that id may have.
func ReservedHandle(handle string) bool {
	digits, ok := strings.CutPrefix(handle, "u")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
