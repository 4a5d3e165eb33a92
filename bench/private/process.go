// Package private runs programs for the benchmark alone: gateways, and database servers with their data in a folder of the run, on loopback
// ports that were free. They end with the run, however it ends, if the system allows that.
package private

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// patience bounds every wait. It is generous, because it is only reached if something is wrong.
const patience = 90 * time.Second

// Process is a program that runs.
type Process struct {
	cmd  *exec.Cmd
	log  string        // the file that its output goes to
	gone chan struct{} // closed when it has ended
}

// Start runs a program with its output in a file. env is added to PATH and HOME; other
// variables of the caller's environment do not reach the program.
func Start(log string, env []string, program string, args ...string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(program, args...), log: log, gone: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = childAttr()
	started := make(chan error)
	go func() {
		// If a program dies with its parent, it dies with the parent's thread.
		runtime.LockOSThread()
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its log
			close(p.gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop asks the program to end and waits until it has ended. If it does not end, it is killed.
func (p *Process) Stop() error {
	select {
	case <-p.gone:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.gone
		return fmt.Errorf("%s did not end within %s", p.cmd.Path, patience)
	}
}

// Kill ends the program at once, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.gone
}

// Answers waits until the program answers, as ask sees it.
func (p *Process) Answers(ctx context.Context, ask func(context.Context) error) error {
	deadline := time.Now().Add(patience)
	for {
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := ask(asking)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.gone:
			return fmt.Errorf("%s has ended: %s", p.cmd.Path, p.tail())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer: %w: %s", p.cmd.Path, err, p.tail())
		}
	}
}

// tail is the end of the program's output.
func (p *Process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Find returns the path of a program, in the PATH or in the folders of servers, which are not in every user's PATH.
func Find(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, folder := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(folder + "/" + name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: %w", name, err)
}

// FreeAddress is a loopback address, host:port, that was free a moment ago.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
