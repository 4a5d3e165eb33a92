// Package cli is the command line: the commands, their settings, and how `kith serve` puts
// its parts together.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"kith/cluster"
	"kith/storage"
	"kith/storage/sqlstore"
)

// Program is the command line: settings for all commands, then the commands.
type Program struct {
	Settings `group:"store"`

	HelpAll     helpAllFlag `name:"help-all" help:"Show all flags, not only the most needed."`
	ShowVersion versionFlag `name:"version" help:"Print the version and exit."`

	Serve     ServeCmd     `cmd:"" group:"serving" default:"withargs" help:"Serve the graph over GraphQL. This is the default command."`
	Replicate ReplicateCmd `cmd:"" group:"serving" help:"Run the replicator (modes stream and binlog) as a separate process."`
	Import    ImportCmd    `cmd:"" group:"files" help:"Import follows and users from files."`
	Export    ExportCmd    `cmd:"" group:"files" help:"Write everything to files that can be imported into any number of shards."`
	Copy      CopyCmd      `cmd:"" group:"files" help:"Copy the store, while in use, to one with any engine and number of shards."`
	Changes   ChangesCmd   `cmd:"" group:"files" help:"Print what changes, a line of JSON in the form of CloudEvents each, for search, analytics and caches."`
	Migrate   MigrateCmd   `cmd:"" group:"care" help:"Bring the tables of every shard up to date."`
	Rules     SettingsCmd  `cmd:"" name:"settings" group:"care" help:"Show and change the settings kept in the store, shared by all its processes."`
	Reconcile ReconcileCmd `cmd:"" group:"care" help:"Find and repair edges whose two rows disagree, and wrong counts."`
	Shards    ShardsCmd    `cmd:"" group:"care" help:"Add shards and move buckets to them, while the store is in use."`
	Doctor    DoctorCmd    `cmd:"" group:"care" help:"Check settings, servers, grants, clocks and versions, and suggest fixes. It changes nothing."`

	Token       TokenCmd       `cmd:"" group:"care" help:"Print a token for an operator, a backend or a user, signed with the configured secret."`
	Healthcheck HealthcheckCmd `cmd:"" group:"care" help:"Exit with 0 if the gateway or replicator is up: for container health checks."`

	Bench   BenchCmd   `cmd:"" group:"about" passthrough:"" help:"Generate large graphs and benchmark a gateway. Needs kith-bench next to kith."`
	Schema  SchemaCmd  `cmd:"" group:"about" help:"Print the GraphQL schema, with descriptions and costs."`
	Version VersionCmd `cmd:"" group:"about" help:"Print the version, commit, Go version and platform."`

	Completion CompletionCmd `cmd:"" group:"about" help:"Print a shell script that completes commands and flags."`
}

// Run is the program: its exit code is 0 or, after one line on stderr, 1, or that of an error that has its own.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var p Program
	return RunAs(ctx, &p, &p.Settings, args, stdout, stderr, Vars)
}

// RunAs is [Run] with other commands: program is a struct in kong's form that holds the settings.
func RunAs(ctx context.Context, program any, settings *Settings, args []string, stdout, stderr io.Writer, vars kong.Vars) int {
	err := runCommand(ctx, program, settings, args, stdout, stderr, vars)
	if err == nil {
		return 0
	}
	if !errors.As(err, new(*exec.ExitError)) { // the other program has shown its error itself, and its exit code is ours
		fmt.Fprintf(stderr, "kith: %s\n", printable(worded(err)))
	}
	if own, ok := errors.AsType[exitCoder](err); ok && own.ExitCode() > 0 { // otherwise a signal has ended it
		return own.ExitCode()
	}
	return 1
}

// exitCoder is an error that has an exit code of its own.
type exitCoder interface {
	error
	ExitCode() int
}

// unusable is an error of what the program was told, or of an address that is taken: the same command fails again. systemd
// does not repeat it (RestartPreventExitStatus), unlike one that a server that is away has caused.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// ExitCode is EX_CONFIG of sysexits.h.
func (unusable) ExitCode() int { return 78 }

// helped ends the program after --help, which has been printed.
type helped struct{}

func runCommand(ctx context.Context, program any, settings *Settings, args []string, stdout, stderr io.Writer, vars kong.Vars) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helped); !ok {
				panic(r)
			}
		}
	}()
	parser, err := kong.New(program,
		kong.Name("kith"),
		kong.Description("A GraphQL gateway to a sharded social graph."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { panic(helped{}) }),
		kong.ConfigureHelp(helpOptions),
		kong.Help(printHelp),
		groups,
		bounded,
		untold,
		configured,
		days,
		vars,
	)
	if err != nil {
		return err
	}
	parser.Model.HelpFlag.Help = "Show this help."
	if len(args) > 0 && args[0] == completeCommand {
		complete(ctx, parser.Model.Node, args[1:], stdout)
		return nil
	}
	addExamples(parser.Model.Node, "")
	command, err := parser.Parse(withNegatives(args))
	if err != nil {
		return unusable{suggest(named(err), parser.Model.Node, args)}
	}
	if child(parser.Model.Node, "serve") != nil {
		checkVariables(parser.Model.Node, stderr)
	}
	name := command.Command()
	if name == "serve" || name == "replicate" {
		defer func() {
			if ctx.Err() != nil && errors.Is(err, context.Canceled) { // it was stopped while it started, so that no setting is to blame
				err = nil
			}
		}()
	}
	if !strings.HasPrefix(name, "settings ") { // it changes what others are told
		settings.noteTold(command)
	}
	if name != "doctor" { // kith doctor reports what is wrong itself
		if err := settings.Check(); err != nil {
			return unusable{err}
		}
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(settings)
	if ready, ok := command.Selected().Target.Addr().Interface().(Preparer); ok {
		if err := unlessStopped(ctx, func() error { return ready.Prepare(settings, command) }); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return unusable{err}
		}
	}
	if name != "serve" && name != "doctor" && name != "healthcheck" && name != "token" && name != "shards status" && !strings.HasPrefix(name, "bench") {
		makes := name == "migrate" || strings.HasPrefix(name, "import ")
		store, err := settings.OpenStore(ctx, sqlstore.Config{MustExist: !makes})
		if err != nil {
			return err
		}
		defer store.Close()
		defer cluster.InBackground(store.Watch)()
		if strings.HasPrefix(name, "import ") || strings.HasPrefix(name, "reconcile ") { // they write rows
			if err := settings.askForRedis(ctx, store); err != nil {
				return err
			}
		}
		command.Bind(store)
		command.BindTo(store, (*storage.Store)(nil))
	}
	out := &output{Writer: command.Stdout}
	if name != "serve" && name != "changes" && !strings.HasPrefix(name, "bench") { // they do not end with a report
		command.Stdout = out
	}
	err = command.Run()
	return cmp.Or(err, out.failed)
}

// negative is a number that Kong takes for a short flag.
var negative = regexp.MustCompile(`^-[0-9.]`)

// withNegatives has flags and the negative numbers behind them as one argument, so that it is the flag that says what it allows.
func withNegatives(args []string) []string {
	var all []string
	for i, arg := range args {
		if i > 0 && negative.MatchString(arg) && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "=") {
			all[len(all)-1] += "=" + arg
		} else {
			all = append(all, arg)
		}
	}
	return all
}

// unlessStopped waits for what may read a file, unless the context ends: the file may be a terminal, or a pipe to which nobody writes.
func unlessStopped(ctx context.Context, read func() error) error {
	done := make(chan error, 1)
	go func() { done <- read() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// output remembers why something could not be written: a report that is lost, as on a full disk, is a failure.
type output struct {
	io.Writer
	failed error
}

func (o *output) Write(text []byte) (n int, err error) {
	n, err = o.Writer.Write(text)
	o.failed = cmp.Or(o.failed, err)
	return n, err
}

// plainer are the words of Kong for a value's kind, and what is said instead.
var plainer = []struct {
	words *regexp.Regexp
	text  string
}{
	{regexp.MustCompile(` \(from envar .*\)$`), ""},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got (".*")`), "$1 is no whole number"},
	{regexp.MustCompile(`expected a float but got (".*") \(.*\)`), "$1 is no number such as 0.5"},
	{regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)`), "its value is missing"},
}

// named adds to an error about a flag's value the environment variable that may hold the value
// instead.
func named(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	for _, p := range plainer {
		if text := err.Error(); p.words.MatchString(text) {
			err = errors.New(p.words.ReplaceAllString(text, p.text))
		}
	}
	for _, flag := range parse.Context.Flags() {
		reason, ok := strings.CutPrefix(err.Error(), "--"+flag.Name)
		if ok && len(flag.Envs) > 0 && strings.IndexAny(reason, ": ") == 0 {
			return Misset(flag.Name, errors.New(strings.TrimLeft(reason, ": ")))
		}
	}
	return err
}
