// Package doctor is the form of what `kith doctor` finds: each part of the program examines what it depends on, and
// reports in these words. Findings hold no passwords.
package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
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

// Version compares the first two numbers of a version with the least one that works and the oldest that the tests run on.
func (l *List) Version(check, of, have string, least, tested [2]int) {
	var is [2]int
	if _, err := fmt.Sscanf(have, "%d.%d", &is[0], &is[1]); err != nil {
		l.Warn(check, of, fmt.Sprintf("%q is not known", have), "docs/reference/engines.md has the servers that the tests run on")
		return
	}
	below := func(x [2]int) bool { return is[0] < x[0] || is[0] == x[0] && is[1] < x[1] }
	mend := fmt.Sprintf("update it to %d.%d or later", tested[0], tested[1])
	switch {
	case below(least):
		l.Fail(check, of, have+" is too old", mend)
	case below(tested):
		l.Warn(check, of, have+" is older than what the tests run on", mend)
	default:
		l.OK(check, of, "%s", have)
	}
}

// ClocksApart is by how much clocks may differ without a warning. Edges have the time of the gateway that wrote them: of two changes
// of a pair by two gateways, the one with the later time counts.
const ClocksApart = time.Second

// Clock compares two clocks, as exactly as is known.
func (l *List) Clock(check, of string, ahead, exact time.Duration, other string) {
	says := fmt.Sprintf("%s ahead of %s", ahead.Round(time.Millisecond), other)
	if ahead.Abs() > ClocksApart+exact {
		l.Warn(check, of, "it is "+says, "have NTP set the clocks of all machines")
		return
	}
	l.OK(check, of, "%s", says)
}

// Encryption warns of passwords and rows that cross a network in the clear. by is empty for a connection without it.
func (l *List) Encryption(check, of, by string, local bool, mend string) {
	switch {
	case by != "":
		l.OK(check, of, "%s", by)
	case local:
		l.OK(check, of, "none, on this machine")
	default:
		l.Warn(check, of, "the connection is not encrypted", mend+", unless nobody can eavesdrop on that network")
	}
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

// A Need is what a setting of a server has to be.
type Need struct {
	Level   Level
	Check   string // several needs may be one check
	Setting string
	Value   string            // to set it to
	Fits    func(string) bool // "" is the value of a setting that the server does not have; nil: only Value will do
	Why     string            // what is wrong with other values
	Mend    string            // by default, to set it on a server of the MySQL family
}

// OneOf are values that will do, in any case.
func OneOf(values ...string) func(string) bool {
	return func(have string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, have) })
	}
}

// Needs compares the settings of a server with what is needed. A check without a finding is one finding that nothing is wrong.
func (l *List) Needs(of string, have map[string]string, needs []Need) {
	var checks []string
	fits, wrong := map[string][]string{}, map[string]bool{}
	for _, n := range needs {
		if !slices.Contains(checks, n.Check) {
			checks = append(checks, n.Check)
		}
		value := have[n.Setting]
		ok := n.Fits
		if ok == nil {
			ok = OneOf(strings.Trim(n.Value, "'"))
		}
		if ok(value) {
			if said := n.Setting + " is " + value; value != "" && !slices.Contains(fits[n.Check], said) {
				fits[n.Check] = append(fits[n.Check], said)
			}
			continue
		}
		wrong[n.Check] = true
		if value == "" {
			value = "missing"
		}
		if n.Mend == "" {
			n.Mend = fmt.Sprintf("run: SET GLOBAL %s = %s; and set it in the server's configuration", n.Setting, n.Value)
		}
		*l = append(*l, Finding{n.Level, n.Check, of, n.Setting + " is " + value + ": " + n.Why, n.Mend})
	}
	for _, check := range checks {
		if !wrong[check] {
			l.OK(check, of, "%s", strings.Join(fits[check], ", "))
		}
	}
}
