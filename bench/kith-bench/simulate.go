package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"kith/bench/growth"
	"kith/cli"
)

// BenchSimulateCmd is `kith bench simulate [PLAN]`.
type BenchSimulateCmd struct {
	Plan  string `arg:"" optional:"" help:"JSON file with measured figures, the graph's growth and the servers available; defaults are those of bench/results/scale.md."`
	Print bool   `help:"Print the default plan, as a start for such a file."`
	cli.Output
}

// mostPlan is how many bytes a plan may have.
const mostPlan = 1 << 20

// Run prints a line for each month.
func (c *BenchSimulateCmd) Run(k *kong.Context) error {
	plan := growth.Example()
	if c.Plan != "" {
		if err := readPlan(c.Plan, &plan); err != nil {
			return fmt.Errorf("%s: %w", c.Plan, err)
		}
	}
	months, err := growth.Simulate(plan)
	switch {
	case err != nil:
		return fmt.Errorf("the plan: %w", err)
	case c.Print:
		return cli.WriteJSON(k.Stdout, plan)
	case c.JSON():
		return cli.WriteJSON(k.Stdout, months)
	}
	growth.WriteTable(k.Stdout, months)
	return nil
}

// readPlan reads a file over a plan. An unknown name is an error.
func readPlan(path string, plan *growth.Plan) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostPlan+1))
	if err != nil {
		return err
	}
	if len(text) > mostPlan {
		return fmt.Errorf("it has more than %d bytes", mostPlan)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(plan); err != nil {
		return err
	}
	if in.More() {
		return errors.New("there is more than one plan")
	}
	return nil
}
