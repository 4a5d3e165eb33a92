package testenv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"kith/internal/must"
)

// Servers are database servers shared by the tests of one test binary.
type Servers []*MariaDBServer

var shared struct {
	sync.Mutex
	servers Servers
	failed  error // a start that failed is not tried again for every test
}

// databases numbers the fresh databases of this test binary.
var databases atomic.Int64

// SharedMariaDB returns n servers that the tests of this binary share, always the
// same ones in the same order. The first call that asks for a server starts it.
func SharedMariaDB(t testing.TB, n int) Servers {
	t.Helper()
	e := chosenEngine(t)
	shared.Lock()
	defer shared.Unlock()
	if missing := n - len(shared.servers); missing > 0 && shared.failed == nil {
		shared.failed = addShared(missing, e)
	}
	must.OK(t, shared.failed)
	return append(Servers(nil), shared.servers[:n]...)
}

// addShared starts n more servers at once.
func addShared(n int, e *engine) error {
	servers, errs := make(Servers, n), make([]error, n)
	var starts sync.WaitGroup
	for i := range n {
		starts.Go(func() { servers[i], errs[i] = startDatabase(e, nil) })
	}
	starts.Wait()
	for i, err := range errs {
		if err != nil {
			return err
		}
		servers[i].shared = true
		shared.servers = append(shared.servers, servers[i])
	}
	return nil
}

// stopShared removes the shared servers.
func stopShared() {
	shared.Lock()
	defer shared.Unlock()
	for _, server := range shared.servers {
		_ = server.remove()
	}
	shared.servers = nil
}

// FreshDatabases makes perServer empty databases on each server and returns their
// DSNs, server by server. They are dropped when t ends.
func (servers Servers) FreshDatabases(t testing.TB, perServer int) []string {
	t.Helper()
	var dsns []string
	for _, server := range servers {
		for range perServer {
			name := fmt.Sprintf("kith_%d", databases.Add(1))
			dsns = append(dsns, server.CreateDatabase(t, name))
			t.Cleanup(func() { server.Exec(t, "DROP DATABASE IF EXISTS `"+name+"`") })
		}
	}
	return dsns
}
