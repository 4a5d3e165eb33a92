// kith-bench is `kith bench`, a program beside kith, so that kith does not contain the code that measures a gateway.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"kith/bench"
	"kith/bench/report"
	"kith/cli"
)

// program is the part of kith's command line that measures, with the settings of all commands.
type program struct {
	cli.Settings

	Bench BenchCmd `cmd:"" help:"Generate large graphs and benchmark a gateway."`
}

var vars = kong.Vars{
	"bench_questions":  strings.Join(bench.QuestionNames(), ", "),
	"bench_operations": strings.Join(append([]string{bench.AppName}, bench.AppOperations()...), ","),
	"bench_engines":    strings.Join(report.Engines, ","),
	"bench_states":     "baseline,cold,warm", "bench_rounds": "2", "bench_heat": "30s", "bench_duration": "2s",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	var p program
	os.Exit(cli.RunAs(ctx, &p, &p.Settings, os.Args[1:], os.Stdout, os.Stderr, vars))
}
