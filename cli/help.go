package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// groups are the headings of the help, in the order of the fields of [Program] and of the settings.
var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "serving", Title: "Serve the graph:"},
	{Key: "files", Title: "Bring data in and out:"},
	{Key: "care", Title: "Look after a store:"},
	{Key: "about", Title: "Measure, and learn about the program:"},

	{Key: "store", Title: "Store and log, for every command:"},
	{Key: "requests", Title: "Requests:"},
	{Key: "process", Title: "This process:"},
	{Key: "schema", Title: "Schema and documents:"},
	{Key: "connections", Title: "Connections:"},
	{Key: "identity", Title: "Who may ask:"},
})

// commandExamples are shown in the help of a command, by its path; "" is the program. A test parses each of them.
var commandExamples = map[string]string{ //nolint:gosec // a user and a password are examples, too
	"": `
kith --demo                       # serve a demo graph, from data/kith.db
kith import follows.csv           # or import a graph
kith doctor                       # check settings and servers
source <(kith completion bash)    # complete commands and flags on Tab`,
	"serve": `
kith serve --demo
kith serve --addr 0.0.0.0:8080 --store 'mysql:kith:secret@tcp(db1)/kith_0;kith:secret@tcp(db2)/kith_1' --redis redis://cache:6379`,
	"migrate": `
kith migrate --output json`,
	"import": `
kith import follows.csv users.csv
kith import --relation blocking blocks.txt.gz
zcat follows.tsv.gz | kith import -`,
	"export": `
kith export backup-2026-11
kith export --plain --output json backup`,
	"changes": `
kith changes --kinds users,posts
kith changes --until-now --after eyJzdG9yZSI6I`,
	"replicate": `
kith replicate --admin-addr 127.0.0.1:8082`,
	"reconcile": `
kith reconcile full --repair
kith reconcile incremental --output json`,
	"reconcile full": `
kith reconcile full
kith reconcile full --repair --max-load 0.2`,
	"reconcile incremental": `
kith reconcile incremental --repair`,
	"reconcile realtime": `
kith reconcile realtime --dry-run --admin-addr 127.0.0.1:8083`,
	"reconcile watch": `
kith reconcile watch --admin-addr 127.0.0.1:8084 http://10.0.0.5:8080 http://10.0.0.6:8080`,
	"shards": `
kith shards
kith shards add 'tcp(db3:3306)/kith_2'
kith shards split --from 0 --to 2`,
	"shards add": `
kith shards add 'tcp(db3:3306)/kith_2'`,
	"shards move": `
kith shards move --buckets 512-1023 --from 0 --to 1 --dry-run`,
	"shards split": `
kith shards split --from 0 --to 2`,
	"copy": `
kith copy 'mysql:kith:secret@tcp(db1)/kith_0' --store sqlite:data/kith.db`,
	"settings": `
kith settings
kith settings set max-following=8000`,
	"settings get": `
kith settings get max-following`,
	"settings set": `
kith settings set max-following=8000 friend-request-ttl=720h
kith settings set suggest=`,
	"doctor": `
kith doctor
kith doctor --output json`,
	"token": `
kith token --scope admin --for 5m
kith token --user 1`,
	"healthcheck": `
kith healthcheck --addr 127.0.0.1:8080`,
	"bench": `
kith bench --engines sqlite --questions q1,q2
kith bench --output json`,
	"schema": `
kith schema --federation`,
}

// addExamples puts the examples into the help of the commands.
func addExamples(node *kong.Node, path string) {
	if text, ok := commandExamples[path]; ok {
		node.Detail = "Examples:\n" + strings.ReplaceAll(text, "\n", "\n    ")
	}
	for _, c := range node.Children {
		addExamples(c, strings.TrimSpace(path+" "+c.Name))
	}
}

// helpAllFlag is `--help-all`.
type helpAllFlag bool

// BeforeReset prints the help with all flags and ends the program before any setting is read.
func (helpAllFlag) BeforeReset(app *kong.Kong, given *kong.Context) error {
	if err := given.PrintUsage(false); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}

var helpOptions = kong.HelpOptions{Compact: true, FlagsLast: true}

// printHelp leaves out the settings that few need.
func printHelp(options kong.HelpOptions, given *kong.Context) error {
	all := slices.ContainsFunc(given.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "help-all" })
	for _, f := range given.Flags() {
		f.Hidden = f.Hidden || !all && len(f.Envs) > 0 && !f.Tag.Has("basic")
	}
	return kong.DefaultHelpPrinter(options, given)
}

var unexpected = regexp.MustCompile(`^unexpected argument (\S+)$`)

// suggest adds to an error about the command line the command that may have been meant, else which help to ask for. Kong itself suggests
// flags, for one dash the only flag that has one.
func suggest(err error, root *kong.Node, args []string) error {
	node := root
	for i := 0; i >= 0; {
		if i = slices.IndexFunc(node.Children, func(c *kong.Node) bool { return slices.Contains(args, c.Name) }); i >= 0 {
			node = node.Children[i]
		}
	}
	if m := unexpected.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		for _, c := range node.Children {
			if !c.Hidden {
				names = append(names, c.Name)
			}
		}
		if best := nearest(m[1], names); best != "" {
			return fmt.Errorf("%w, did you mean %q?", err, best)
		}
	}
	if text, cut := strings.CutSuffix(err.Error(), `, did you mean "-h"?`); cut {
		err = errors.New(text + ": flags have two dashes")
	}
	if strings.HasPrefix(err.Error(), "--") || strings.Contains(err.Error(), "did you mean") {
		return err
	}
	return fmt.Errorf("%w (%s --help)", err, node.FullPath())
}
