package main

import (
	"context"
	"fmt"
	"net"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"kith/bench/baseline"
	"kith/bench/report"
	"kith/cli"
)

// BenchReportCmd is `kith bench report FILE…`.
type BenchReportCmd struct {
	Files []string `arg:"" name:"file" help:"Files that kith bench has written with --output json, in the order of the page."`
	Page  string   `placeholder:"PATH" help:"Page whose generated part is replaced; charts go into a folder next to it. Default: print the tables."`
}

// Run writes the page, or prints the tables.
func (c *BenchReportCmd) Run(k *kong.Context) error {
	var reports []*report.Report
	for _, file := range c.Files {
		r, err := report.Read(file)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if c.Page != "" {
		return report.WritePage(c.Page, reports...)
	}
	for _, r := range reports {
		r.WriteTables(k.Stdout)
	}
	return nil
}

// BenchBaselineCmd is `kith bench baseline`.
type BenchBaselineCmd struct {
	Addr string `default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Address to listen on. Default: ${default}."`
}

// Run answers from the store of the settings until the context is done.
func (c *BenchBaselineCmd) Run(ctx context.Context, settings *cli.Settings, k *kong.Context) error {
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return cli.Misset("addr", err)
	}
	var inboxes redis.UniversalClient
	if settings.Redis != "" {
		options, err := redis.ParseURL(settings.Redis)
		if err != nil {
			return cli.Misset("redis", err)
		}
		inboxes = redis.NewClient(options)
		defer inboxes.Close()
	}
	fmt.Fprintf(k.Stdout, "the baseline answers at http://%s/graphql\n", listener.Addr())
	return baseline.Serve(ctx, settings.Store, inboxes, listener)
}
