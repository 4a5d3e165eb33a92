package cli

import (
	"encoding/json"
	"io"
)

// Output is the flag of all commands that end with a report. Lists of it are never null in JSON.
type Output struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORM" help:"How the report is written to the standard output: text or json. Default: ${default}."`
}

// JSON reports whether the report is for programs.
func (o Output) JSON() bool { return o.Output == "json" }

// WriteJSON writes a report for programs.
func WriteJSON(out io.Writer, report any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
