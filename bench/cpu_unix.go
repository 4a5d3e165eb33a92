//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownCPU is the CPU seconds of this process.
func ownCPU() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
