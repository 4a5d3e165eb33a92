package suite

import (
	"os"
	"regexp"
	"runtime"
	"strconv"

	"kith/bench/report"
)

// describeMachine reports what is known of the machine without asking a server. Of Linux these are the processor and the load average
// of the last minute; of others they are unknown.
func describeMachine() report.Machine {
	load, _ := strconv.ParseFloat(first("/proc/loadavg", `^(\S+)`), 64) // 0 if there is none
	return report.Machine{CPU: first("/proc/cpuinfo", `model name\s*: (.*)`), Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Load: load}
}

// first is what the group of a pattern finds in a file.
func first(path, pattern string) string {
	text, _ := os.ReadFile(path) // a file that cannot be read holds nothing
	if found := regexp.MustCompile(pattern).FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return "unknown"
}
