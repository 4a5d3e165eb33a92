package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// childAttr makes a child die with its parent, and puts it in a process group of
// its own so that Ctrl-C reaches the tests first.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

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
