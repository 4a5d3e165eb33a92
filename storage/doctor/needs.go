package doctor

import (
	"fmt"
	"slices"
	"strings"
)

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
