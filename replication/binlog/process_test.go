package binlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"kith/internal/child"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sqlstore"
)

// This is a replicator in a process of its own, which can be killed: this test binary, started again
// with an environment variable.

// childVariable makes this test binary a replicator. Its value is the DSNs.
const childVariable = "KITH_TEST_REPLICATE"

// childStopsVariable makes the replicator stop when a follow ends on the inverse side, see stuck.
const childStopsVariable = "KITH_TEST_REPLICATE_STUCK"

func replicate(dsns []string) int {
	ctx := context.Background()
	store, err := sqlstore.Open(ctx, sqlstore.Config{Location: "mysql:" + strings.Join(dsns, ";")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var to storage.EdgeWriter = store
	if os.Getenv(childStopsVariable) != "" {
		to = stuck{store}
	}
	applier := replication.New(replication.Config{Store: to, Shards: len(dsns)})
	go applier.Run(ctx)
	if err := binlog.New(binlog.Config{DSNs: dsns, Applier: applier, Store: store, Checkpoints: store}).Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var errNotYet = errors.New("not yet")

// process is a replicator in a process of its own.
type process struct {
	*child.Process
	log *logged.Text
}

// launch starts a process. It is killed when t ends, and when this process ends.
func (w *world) launch(t testing.TB, environment ...string) *process {
	t.Helper()
	cmd, log := exec.Command(os.Args[0]), &logged.Text{}
	cmd.Env = append(append(os.Environ(), childVariable+"="+strings.Join(w.dsns, ";")), environment...)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := child.Start(cmd)
	must.OK(t, err)
	t.Cleanup(p.Kill)
	return &process{p, log}
}
