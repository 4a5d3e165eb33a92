package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
)

// TestStoppedAtTheStart: what is to run until it is stopped has done its work when it is stopped early, and blames no setting.
func TestStoppedAtTheStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	store := "--store=mysql:kith@tcp(127.0.0.1:1)/kith"
	for _, args := range [][]string{{"serve", "--addr=127.0.0.1:0"}, {"replicate", "--redundancy=binlog"}} {
		var complaints bytes.Buffer
		code := Run(ctx, append(args, store), &bytes.Buffer{}, &complaints)
		check.That(t, code == 0 && complaints.Len() == 0, "kith %s ends with %d: %s", args[0], code, complaints.String())
	}
}

// TestCtrlCEndsAnImportOfNothingYet: from a pipe to which nobody writes, or a terminal.
func TestCtrlCEndsAnImportOfNothingYet(t *testing.T) {
	folder := t.TempDir()
	store, pipe := "--store=sqlite:"+filepath.Join(folder, "kith.db"), filepath.Join(folder, "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	done(t, "import", graph(t, "1 2\n"), store)
	for _, args := range [][]string{{"import", pipe, store}, {"import", "--user=u1", pipe, store}} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		var complaints bytes.Buffer
		go func() { ended <- Run(ctx, args, &bytes.Buffer{}, &complaints) }()
		time.AfterFunc(100*time.Millisecond, stop)
		select {
		case code := <-ended:
			check.That(t, code == 1 && strings.Contains(complaints.String(), "interrupted"), "kith %v ends with %d: %s", args, code, complaints.String())
		case <-time.After(10 * time.Second):
			t.Errorf("kith %v goes on", args)
		}
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // so that the reader ends as well
		must.OK(t, err)
		must.OK(t, writer.Close())
	}
}
