package bench

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// The counters of a load are the differences between two readings.
func TestMeterReadsWhatIsUsed(t *testing.T) {
	readings := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		readings++
		text := "# HELP process_cpu_seconds_total CPU\nprocess_cpu_seconds_total 1.5\ngo_memstats_alloc_bytes_total 1e+06\n" +
			"kith_sql_statement_duration_seconds_count{lookup=\"a\",shard=\"0\"} 10\nkith_sql_statement_duration_seconds_count{lookup=\"b\",shard=\"0\"} 5\n"
		if readings > 1 {
			text = "process_cpu_seconds_total 2\ngo_memstats_alloc_bytes_total 3e+06\n" +
				"kith_sql_statement_duration_seconds_count{lookup=\"a\",shard=\"0\"} 40\nkith_sql_statement_duration_seconds_count{lookup=\"b\",shard=\"0\"} 15\n"
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	m := meter{page: server.URL + "/metrics", databases: []int{os.Getpid()}}
	used := m.measure(t.Context(), time.Now(), time.Now().Add(10*time.Millisecond))
	if used.Gateway != 0.5 || used.Allocated != 2e6 || used.Statements != 40 {
		t.Errorf("%+v", used)
	}
	if used.Databases < 0 {
		t.Errorf("%+v", used)
	}
}

func TestWhatIsUnknownStaysSo(t *testing.T) {
	known := Usage{1, 2, 3, 4}
	if got := known.plus(unknownUsage(), -1); !math.IsNaN(got.Gateway) || !math.IsNaN(got.Statements) {
		t.Errorf("%+v", got)
	}
	if got := known.plus(known, 1); got != (Usage{2, 4, 6, 8}) {
		t.Errorf("%+v", got)
	}
	if got := processCPU(1 << 30); !math.IsNaN(got) {
		t.Errorf("a process that is not there has used %v s", got)
	}
}

func TestMerge(t *testing.T) {
	ms := time.Millisecond
	one := Result{Question: "q1", Requests: 3, Errors: 1, Elapsed: time.Second, Latencies: Latencies{1 * ms, 4 * ms}, Usage: Usage{1, math.NaN(), 6, 1}}
	two := Result{Question: "q1", Requests: 2, Elapsed: time.Second, Latencies: Latencies{2 * ms, 3 * ms}, Usage: Usage{2, math.NaN(), 4, 1}}
	got := Merge([]Result{one, two})
	if got.Question != "q1" || got.Requests != 5 || got.Errors != 1 || got.PerSecond() != 2 || got.Percentile(50) != 2*ms || got.Percentile(100) != 4*ms {
		t.Errorf("%+v", got)
	}
	if got.Gateway != 3 || !math.IsNaN(got.Databases) || got.Statements != 10 {
		t.Errorf("%+v", got.Usage)
	}
}
