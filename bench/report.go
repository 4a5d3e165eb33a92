package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// WriteTable writes results as an aligned table, times in milliseconds.
func WriteTable(w io.Writer, results []Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "question\treq/s\tp50 ms\tp99 ms\tmax ms\trequests\terrors\tgateway cores\tload cores\t")
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.0f\t%.2f\t%.2f\t%.1f\t%d\t%d\t%s\t%s\t\n", r.Question, r.PerSecond(),
			millis(r.Percentile(50)), millis(r.Percentile(99)), millis(r.Percentile(100)),
			r.Requests, r.Errors, cores(r.Cores(r.Gateway)), cores(r.Cores(r.Load)))
	}
	return table.Flush()
}

// MarshalJSON writes a result with times in milliseconds; unknown cores are
// null.
func (r Result) MarshalJSON() ([]byte, error) {
	known := func(cores float64) *float64 {
		if cores < 0 {
			return nil
		}
		return &cores
	}
	message := ""
	if r.Error != nil {
		message = r.Error.Error()
	}
	return json.Marshal(struct {
		Question  string   `json:"question"`
		PerSecond float64  `json:"perSecond"`
		P50       float64  `json:"p50Ms"`
		P99       float64  `json:"p99Ms"`
		Max       float64  `json:"maxMs"`
		Requests  int      `json:"requests"`
		Errors    int      `json:"errors"`
		Error     string   `json:"firstError,omitempty"`
		Seconds   float64  `json:"seconds"`
		ServerCPU *float64 `json:"gatewayCores"`
		ClientCPU *float64 `json:"loadCores"`
	}{
		r.Question, r.PerSecond(), millis(r.Percentile(50)), millis(r.Percentile(99)), millis(r.Percentile(100)),
		r.Requests, r.Errors, message, r.Elapsed.Seconds(), known(r.Cores(r.Gateway)), known(r.Cores(r.Load)),
	})
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func cores(n float64) string {
	if n < 0 {
		return "?"
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}
