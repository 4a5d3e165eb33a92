package cli

import (
	"net"
	"path/filepath"
	"testing"
)

// TestErrorsInPlainWords: what stops a command is told without the names of system calls.
func TestErrorsInPlainWords(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	listener.Close()
	for says, args := range map[string][]string{
		"--config (KITH_CONFIG): " + gone + ": no such file or directory":                                                     {"serve", "--config", gone},
		gone + ": no such file or directory":                                                                                  {"import", gone, "--store", "sqlite:" + gone + ".db"},
		"--addr (KITH_ADDR): " + addr + ": connection refused":                                                                {"healthcheck", "--addr", addr},
		"--store (KITH_STORE): shard 0: " + addr + "/kith: connection refused":                                                {"migrate", "--store", "mysql:root@tcp(" + addr + ")/kith"},
		"--store (KITH_STORE): shard 0: there is no store at " + gone + ": kith serve, kith import and kith migrate make one": {"settings", "get", "--store", "sqlite:" + gone},
		`expected "<to>"`: {"copy"},
	} {
		if _, _, complaints := ran(t, args...); complaints != "kith: "+says+"\n" {
			t.Errorf("kith %v says %s, not %s", args, complaints, says)
		}
	}
}
