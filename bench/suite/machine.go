package suite

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"kith/bench/report"
)

// describeMachine reports what is known of the machine without asking a server.
func describeMachine() report.Machine {
	return report.Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Load: loadAverage(),
	}
}

// loadAverage is Linux's of the last minute; 0 elsewhere.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}

// cpuModel is what Linux calls the processor; "unknown" elsewhere.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "unknown"
}
