package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"kith/bench/quality"
	"kith/cli"
)

// BenchQualityCmd is `kith bench quality FILE`.
type BenchQualityCmd struct {
	File  string `arg:"" help:"Edge list as kith import reads it; gzipped if it ends in .gz."`
	Users int    `default:"1000" placeholder:"N" help:"Users to ask about, among those who follow at least 10. Default: ${default}."`
	Share int    `default:"20" placeholder:"PERCENT" help:"Follows of each user to hold out, 1 to 99. Default: ${default}."`
	Seed  uint64 `default:"1" placeholder:"N" help:"Random seed of the users to ask about. Default: ${default}."`
	cli.Output
}

// Run prints recall@20 of each order.
func (c *BenchQualityCmd) Run(ctx context.Context, k *kong.Context) error {
	if c.Users < 1 || c.Share < 1 || c.Share > 99 {
		return fmt.Errorf("--users is at least 1, and --share from 1 to 99")
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	edges := io.Reader(file)
	if strings.HasSuffix(c.File, ".gz") {
		if edges, err = gzip.NewReader(file); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	r, err := quality.Measure(ctx, edges, quality.Config{Users: c.Users, Share: c.Share, Seed: c.Seed})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", c.File, err)
	case c.JSON():
		return cli.WriteJSON(k.Stdout, r)
	}
	_, err = fmt.Fprintf(k.Stdout, "recall@20 of %d users: SHARED_COUNT %.3f, BEST %.3f\n", r.Users, r.SharedCount, r.Best)
	return err
}
