package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

// title is how a table or chart calls an engine.
var title = map[string]string{SQLite: "SQLite", MariaDB: "MariaDB", MariaDBRedis: "MariaDB and Redis"}

// WriteTables writes a report's tables as Markdown: where the report comes from, then for each engine
// the rates beside the baseline's and the costs.
func (r *Report) WriteTables(w io.Writer) {
	r.writeOrigin(w)
	if r.Kind == Several {
		r.writeSeveral(w)
		return
	}
	for _, size := range r.Sizes {
		for _, engine := range Engines {
			if slices.ContainsFunc(size.Cells, func(c Cell) bool { return c.Engine == engine }) {
				size.writeRates(w, engine)
				size.writeCosts(w, engine)
			}
		}
	}
}

func (r *Report) writeOrigin(w io.Writer) {
	fmt.Fprintf(w, "`%s`, %s, on %d × %s (%s), %s", r.Command, r.Date, r.Machine.Cores, r.Machine.CPU, r.Machine.System, r.Machine.Go)
	for _, server := range []struct{ name, version string }{{"MariaDB", r.Machine.MariaDB}, {"Redis", r.Machine.Redis}} {
		if server.version != "" {
			fmt.Fprintf(w, ", %s %s", server.name, server.version)
		}
	}
	if r.Machine.Load > 0 {
		fmt.Fprintf(w, "; load average before it %s", short(r.Machine.Load, 1))
	}
	times := "rounds"
	if r.Rounds == 1 {
		times = "round"
	}
	fmt.Fprintf(w, ".\n%d connections, %d %s of %s s a question and subject.\n", r.Connections, r.Rounds, times, short(r.Seconds, 2))
	for _, s := range r.Sizes {
		ids := "dense ids"
		if s.Sonyflake {
			ids = "Sonyflake ids"
		}
		if s.Edges > 0 {
			fmt.Fprintf(w, "Graph of %s users and %s follows, %s.\n", comma(s.Users), comma(s.Edges), ids)
		}
		if s.MixedUsers > 0 {
			fmt.Fprintf(w, "Mixed load on a graph of %s users and %s follows, %s.\n", comma(s.MixedUsers), comma(s.MixedEdges), ids)
		}
	}
}

func (s *Size) writeRates(w io.Writer, engine string) {
	fmt.Fprintf(w, "\n### %s\n\n", title[engine])
	fmt.Fprintln(w, "| | baseline, req/s | p50 / p99 ms | cold, req/s | of the baseline | p50 / p99 ms | warm, req/s | of the baseline | p50 / p99 ms | wrong answers |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	baselines := engine
	if engine == MariaDBRedis {
		baselines = MariaDB
	}
	for _, q := range s.Questions() {
		baseline, cold, warm := s.Find(baselines, Baseline, q), s.Find(engine, Cold, q), s.Find(engine, Warm, q)
		if cold == nil && warm == nil && (baseline == nil || engine == MariaDBRedis) {
			continue
		}
		row := append([]string{q}, baseline.speed()...)
		for _, c := range []*Cell{cold, warm} {
			speed := c.speed()
			row = append(row, speed[0], s.ratioText(c), speed[1])
		}
		row = append(row, wrong(baseline, cold, warm))
		writeRow(w, row)
	}
}

// speed is the rate, and the times that answers took.
func (c *Cell) speed() []string {
	if c == nil {
		return []string{"", ""}
	}
	return []string{comma(int(math.Round(c.PerSecond))), number(c.P50, 2) + " / " + number(c.P99, 2)}
}

func (s *Size) ratioText(c *Cell) string {
	if c == nil || s.Ratio(c) == 0 {
		return ""
	}
	return number(s.Ratio(c), 2) + "×"
}

// wrong counts the wrong answers, and says whose they were.
func wrong(cells ...*Cell) string {
	var text []string
	for _, c := range cells {
		if c != nil && c.Errors > 0 {
			text = append(text, fmt.Sprintf("%s %s of %s", c.State, comma(c.Errors), comma(c.Requests)))
		}
	}
	if text == nil {
		return "0"
	}
	return strings.Join(text, ", ")
}

func (s *Size) writeCosts(w io.Writer, engine string) {
	fmt.Fprintf(w, "\nWhat one request costs on %s:\n\n", title[engine])
	fmt.Fprintln(w, "| | | gateway CPU, µs | database CPU, µs | SQL statements | allocated, kB |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|")
	for _, q := range s.Questions() {
		for _, state := range []string{Baseline, Cold, Warm} {
			if c := s.Find(engine, state, q); c != nil {
				writeRow(w, append([]string{q, state}, c.costs()...))
			}
		}
	}
}

func (c *Cell) costs() []string {
	return []string{cost(c.GatewayCPU, 1, 0), cost(c.DatabaseCPU, 1, 0), cost(c.Statements, 1, 2), cost(c.Allocated, 1e-3, 1)}
}

// cost writes a figure; an unknown one is a dash.
func cost(value *float64, times float64, digits int) string {
	if value == nil {
		return "–"
	}
	return number(*value*times, digits)
}

func writeRow(w io.Writer, cells []string) {
	fmt.Fprintln(w, "| "+strings.Join(cells, " | ")+" |")
}

func comma(n int) string { return humanize.Comma(int64(n)) }

// number writes a number, rounded to a number of digits after the point.
func number(n float64, digits int) string {
	return humanize.FormatFloat("#,###."+strings.Repeat("#", digits), n)
}

// short does the same as number, without zeroes at the end.
func short(n float64, digits int) string {
	text := number(n, digits)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// writeSeveral writes a line for each time that several gateways were asked: before and after one of them was killed and started again.
func (r *Report) writeSeveral(w io.Writer) {
	fmt.Fprintln(w, "\n| | | req/s | p50 / p99 ms | gateway CPU, µs | database CPU, µs | SQL statements | of all requests | wrong answers |")
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, s := range r.Sizes {
		for i := range s.Cells {
			c := &s.Cells[i]
			row := append([]string{c.State, c.Question}, c.speed()...)
			costs := c.costs()
			row = append(row, costs[:3]...)
			all := "–"
			if c.Statements != nil {
				all = comma(int(math.Round(*c.Statements * float64(c.Requests))))
			}
			writeRow(w, append(row, all, wrong(c)))
		}
	}
}
