package report

import (
	"fmt"
	"io"
	"math"
)

// writeSeveral writes a line for each time that several gateways were asked: before and after one of them was killed and
// started again.
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
