package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// printable makes one line of a text, and writes control characters, and those that turn the direction of
// text, as escapes: a terminal would obey them, and names of files may hold any.
func printable(text string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\n", "; ") {
		if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Output is the flag of all commands that end with a report. Lists of it are never null in JSON.
type Output struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORM" help:"Report format: text or json. Default: ${default}."`
}

// JSON reports whether the report is for programs.
func (o Output) JSON() bool { return o.Output == "json" }

// WriteJSON writes a report for programs.
func WriteJSON(out io.Writer, report any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
