// Package doctor is the form of what `kith doctor` finds: each part of the program examines what it depends on, and
// reports in these words. Findings hold no passwords.
package doctor

import (
	"fmt"
	"net"
	"net/netip"
)

// A Level says how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, and may surprise
	Fail Level = "fail" // it does not work
)

// A Finding is what a check has found.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"`          // such as "grants"
	Of    string `json:"of,omitempty"`   // such as "shard 0 (db1:3306/kith_0)"
	Says  string `json:"says"`           // what is so
	Mend  string `json:"mend,omitempty"` // what to do about it; empty if nothing
}

// List gathers findings. It is for one goroutine.
type List []Finding

// OK adds a finding that nothing is wrong.
func (l *List) OK(check, of, format string, args ...any) {
	*l = append(*l, Finding{Level: OK, Check: check, Of: of, Says: fmt.Sprintf(format, args...)})
}

// Warn adds a finding that may surprise, and what to do.
func (l *List) Warn(check, of, says, mend string) {
	*l = append(*l, Finding{Warn, check, of, says, mend})
}

// Fail adds a finding that something does not work, and what to do.
func (l *List) Fail(check, of, says, mend string) {
	*l = append(*l, Finding{Fail, check, of, says, mend})
}

// Count is how many findings have a level.
func (l List) Count(level Level) (n int) {
	for _, f := range l {
		if f.Level == level {
			n++
		}
	}
	return n
}

// IsLocal reports whether an address, host:port, is on this machine: nothing there crosses a network.
func IsLocal(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
