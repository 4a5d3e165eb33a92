package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// stopped reports whether every thread of process pid has come to a stop after SIGSTOP.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		// "pid (name) state …", and the name may hold anything
		if i := bytes.LastIndexByte(stat, ')'); i+2 >= len(stat) || stat[i+2] != 'T' {
			return false
		}
	}
	return len(threads) > 0
}
