// Kith is a GraphQL gateway to a sharded social graph.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"kith/cli"
	"kith/storage"
)

// program is the command line: settings for all commands, then the commands.
type program struct {
	cli.Settings

	Serve     ServeCmd         `cmd:"" default:"withargs" help:"Serve the graph over GraphQL. This is what the program does when no command is given."`
	Migrate   cli.MigrateCmd   `cmd:"" help:"Bring the tables of every shard up to date."`
	Import    cli.ImportCmd    `cmd:"" help:"Import follows and users from files."`
	Replicate cli.ReplicateCmd `cmd:"" help:"Bring what follows write to the inverse side, in the mode binlog, in a process of its own."`
	Reconcile cli.ReconcileCmd `cmd:"" help:"Find where the two sides of edges and the counts disagree, and repair it."`
	Bench     cli.BenchCmd     `cmd:"" help:"Make large graphs and measure a gateway."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: its exit code is 0, or 1 after one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := runCommand(ctx, args, stdout, stderr); err != nil {
		line := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(stderr, "kith: %s\n", line)
		return 1
	}
	return 0
}

// helped ends the program after --help, which has been printed.
type helped struct{}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helped); !ok {
				panic(r)
			}
		}
	}()
	var p program
	parser, err := kong.New(&p,
		kong.Name("kith"),
		kong.Description("A GraphQL gateway to a sharded social graph."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { panic(helped{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		cli.Vars,
	)
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return named(err)
	}
	if err := p.Check(); err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(&p.Settings)
	if ready, ok := command.Selected().Target.Addr().Interface().(cli.Preparer); ok {
		if err := ready.Prepare(&p.Settings, command); err != nil {
			return err
		}
	}
	if name := command.Command(); name != "serve" && !strings.HasPrefix(name, "bench ") {
		store, err := p.OpenStore(ctx, nil)
		if err != nil {
			return err
		}
		defer store.Close()
		command.Bind(store)
		command.BindTo(store, (*storage.Store)(nil))
	}
	return command.Run()
}

// named adds to an error about a flag's value the variable of the environment that
// may hold it instead.
func named(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	for _, flag := range parse.Context.Flags() {
		reason, ok := strings.CutPrefix(err.Error(), "--"+flag.Name)
		if ok && len(flag.Envs) > 0 && strings.IndexAny(reason, ": ") == 0 {
			return cli.Misset(flag.Name, errors.New(strings.TrimLeft(reason, ": ")))
		}
	}
	return err
}
