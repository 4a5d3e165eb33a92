package cli

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// TestErrorsInPlainWords: what stops a command is told without the names of system calls.
func TestErrorsInPlainWords(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	addr := listener.Addr().String()
	listener.Close()
	for says, args := range map[string][]string{
		"--config (KITH_CONFIG): " + gone + ": no such file or directory":                                                     {"serve", "--config", gone},
		"--relations (KITH_RELATIONS): " + gone + ": no such file or directory":                                               {"schema", "--relations", gone},
		gone + ": no such file or directory":                                                                                  {"import", gone, "--store", "sqlite:" + gone + ".db"},
		"--addr (KITH_ADDR): " + addr + ": connection refused":                                                                {"healthcheck", "--addr", addr},
		"--store (KITH_STORE): shard 0: " + addr + "/kith: connection refused (kith doctor says what to do)":                  {"migrate", "--store", "mysql:root@tcp(" + addr + ")/kith"},
		"--store (KITH_STORE): shard 0: there is no store at " + gone + ": kith serve, kith import and kith migrate make one": {"settings", "get", "--store", "sqlite:" + gone},
		`expected "<to>" (kith copy --help)`:                                                                                  {"copy"},
	} {
		_, _, complaints := ran(t, args...)
		check.Equal(t, fmt.Sprint("what is said by kith ", args), complaints, "kith: "+says+"\n")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestALostReportIsAFailure: a script must not take what was not written for a success.
func TestALostReportIsAFailure(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	done(t, "migrate", "--store", store)
	for _, args := range [][]string{{"shards", "status"}, {"shards", "status", "--output", "json"}, {"reconcile", "full"}, {"doctor", "--quiet"}, {"export", filepath.Join(t.TempDir(), "export")}} {
		var complaints bytes.Buffer
		code := Run(t.Context(), append(args, "--store", store), fullDisk{}, &complaints)
		check.That(t, code == 1 && strings.Contains(complaints.String(), "no space left on device"), "kith %v ends with %d: %s", args, code, complaints.String())
	}
}
