package ids

import (
	"testing"

	"kith/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// MachineID is the machine id with which ids are made at the moment.
func (g *Generator) MachineID() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flake.machine
}
