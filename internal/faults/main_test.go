// Package faults_test writes to a whole deployment, as it would run in production: two MariaDB
// servers with two databases each, Redis, two gateways, and replicators. All of them are separate
// processes, which are killed while users follow each other. The answers are then compared with the tables.
package faults_test

import (
	"testing"

	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// modes are the redundancy modes.
var modes = []string{"sync", "stream", "binlog"}

// notSimulated are the modes in which a schedule runs that internal/sim runs in all others, on virtual time and with faults at every
// step. The long tests run all modes.
func notSimulated() []string {
	switch {
	case testenv.AllTests():
		return modes
	case !testenv.HasBinlog():
		return []string{"stream"} // so that there is one
	}
	return []string{"binlog"}
}

// inEach runs a test in some modes, at once.
func inEach(t *testing.T, modes []string, test func(t *testing.T, mode string)) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) { t.Parallel(); test(t, mode) })
	}
}
