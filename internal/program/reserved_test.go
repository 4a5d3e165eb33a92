package program_test

import (
	"testing"

	"kith/internal/kithtest"
)

// TestReservedHandlesOfAServer: Kith's own list holds from the start, and a file replaces it.
func TestReservedHandlesOfAServer(t *testing.T) {
	t.Parallel()
	file := written(t, "handles", "reservedHandles:\n  - Acme\n")
	for _, c := range []struct {
		reserved, free string
		option         kithtest.Option
	}{
		{"admin", "acme", kithtest.Args()}, {"acme", "admin", kithtest.Env("KITH_RELATIONS=" + file)},
	} {
		g := kithtest.Start(t, kithtest.Args("--store", location(newSQLite(t, 1)...)), c.option)
		textAs(t, g, "", `mutation { register(handle: "`+c.reserved+`", name: "N", password: "correct horse") { token } }`, `"HANDLE_RESERVED"`)
		tokenOf(t, g, "", `register(handle: "`+c.free+`", name: "N", password: "correct horse")`)
	}
}
