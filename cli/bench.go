package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/alecthomas/kong"
)

// BenchCmd is `kith bench`: another program, kith-bench, reads the rest of the command line.
type BenchCmd struct {
	Args []string `arg:"" optional:"" help:"See kith bench --help."`
}

// Run starts kith-bench, from the folder of this program, with the same command line. If kith-bench has
// reported what is wrong, the error is an [exec.ExitError].
func (c *BenchCmd) Run(ctx context.Context, k *kong.Context) error {
	program, err := benchProgram()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, k.Args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // so that it ends the processes it has started
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, k.Stdout, k.Stderr
	err = command.Run()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("bench: there is no %s: go build -C bench -o %[1]s ./kith-bench makes it", program)
	}
	return err
}

// benchProgram is where kith-bench has to be.
func benchProgram() (string, error) {
	self, err := os.Executable()
	return filepath.Join(filepath.Dir(self), "kith-bench"), err
}
