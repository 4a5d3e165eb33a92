package accounts

import (
	_ "embed"
	"strings"

	"kith/graph/apierr"
	"kith/storage"
)

// Handles that would pass for the product, its operators, or one of its addresses: one a line.
//
//go:embed reserved.txt
var reservedHere string

// Reserved are handles that nobody gets by registering; nil: those of reserved.txt.
func Reserved(handles []string) map[string]bool {
	if handles == nil {
		handles = strings.Fields(reservedHere)
	}
	all := make(map[string]bool, len(handles))
	for _, handle := range handles {
		all[handle] = true
	}
	return all
}

// newHandle folds and checks the handle of a new user; none of reserved.
func newHandle(handle string, reserved map[string]bool) (string, error) {
	handle = storage.FoldHandle(handle)
	switch {
	case !storage.ValidHandle(handle):
		return "", apierr.HandleMalformed.Error("a handle is 1 to %d of the characters a to z, 0 to 9 and _", storage.MaxHandleLength).In("handle")
	case !storage.UserID(0).MayUse(handle):
		return "", apierr.HandleReserved.Error("handles of u and digits belong to imported users").In("handle")
	case reserved[handle]:
		return "", apierr.HandleReserved.Error("the handle %q is reserved", handle).In("handle")
	}
	return handle, nil
}
