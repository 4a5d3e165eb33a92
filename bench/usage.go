package bench

import (
	"bufio"
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"kith/storage/sleep"
)

// Usage is what the counted part of a load has used. A figure that is not known is NaN.
type Usage struct {
	Gateway    float64 // CPU seconds of the gateway's process
	Databases  float64 // CPU seconds of the processes behind it
	Statements float64 // SQL statements that the gateway sent
	Allocated  float64 // bytes that the gateway allocated
}

func unknownUsage() Usage { return Usage{math.NaN(), math.NaN(), math.NaN(), math.NaN()} }

// plus adds another usage, so many times.
func (u Usage) plus(v Usage, times float64) Usage {
	return Usage{u.Gateway + times*v.Gateway, u.Databases + times*v.Databases, u.Statements + times*v.Statements, u.Allocated + times*v.Allocated}
}

// meter reads what processes have used: the gateway's by its /metrics, the databases' from Linux's /proc.
type meter struct {
	page      string // the gateway's /metrics
	databases []int
}

// measure returns what is used between two moments.
func (m *meter) measure(ctx context.Context, begin, end time.Time) Usage {
	if sleep.For(ctx, time.Until(begin)) != nil {
		return unknownUsage()
	}
	before := m.read(ctx)
	if sleep.For(ctx, time.Until(end)) != nil {
		return unknownUsage()
	}
	return m.read(ctx).plus(before, -1)
}

// read reads the gateway's own account, and the processor time of the databases. What no series counts is not known.
func (m *meter) read(ctx context.Context) Usage {
	u := unknownUsage()
	metrics, _ := Metrics(ctx, m.page) // without an answer nothing is known
	for name, into := range map[string]*float64{
		"process_cpu_seconds_total": &u.Gateway, "go_memstats_alloc_bytes_total": &u.Allocated, "kith_sql_statement_duration_seconds_count": &u.Statements,
	} {
		if value, known := metrics[name]; known {
			*into = value
		}
	}
	for i, pid := range m.databases {
		if i == 0 {
			u.Databases = 0
		}
		u.Databases += processCPU(pid)
	}
	return u
}

// Metrics reads a page in Prometheus's text format, and adds up all series of a name.
func Metrics(ctx context.Context, page string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, value, ok := cutSample(lines.Text()); ok {
			sums[name] += value
		}
	}
	return sums, lines.Err()
}

// cutSample splits a line of Prometheus's text format into the name, without its labels, and the value.
func cutSample(line string) (name string, value float64, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 || line[0] == '#' {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(line[at+1:], 64)
	name, _, _ = strings.Cut(line[:at], "{")
	return name, value, err == nil
}

// processCPU is how many seconds of CPU a process has used, by Linux's /proc; NaN elsewhere.
func processCPU(pid int) float64 {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return math.NaN()
	}
	stat, err := process.Stat()
	if err != nil {
		return math.NaN()
	}
	return stat.CPUTime()
}
