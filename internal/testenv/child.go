package testenv

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// child is one running server program.
type child struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when the program has ended and been waited for
}

// startChild starts program with its output in the file log. The program dies
// with this process, kill -9 included (see childAttr).
func startChild(log, program string, args []string) (*child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(program, args...), gone: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = childAttr()

	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the *thread* that made the
		// child ends, so this thread is kept, unused, for as long as the child lives.
		runtime.LockOSThread()
		defer out.Close()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // how it ended is in its log
			close(c.gone)
		}
	}()
	return c, <-started
}

// running reports whether the program has not ended yet.
func (c *child) running() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

// signal sends s; a program that has ended already is not an error.
func (c *child) signal(s os.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
