package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// cpuMeter tells how many cores were used between two moments.
type cpuMeter struct{ server, client float64 }

func (m *cpuMeter) measure(ctx context.Context, at *url.URL, begin, end time.Time) {
	m.server, m.client = -1, -1
	if !sleepUntil(ctx, begin) {
		return
	}
	began := time.Now()
	server, errBegin := serverCPU(ctx, at)
	client := ownCPU()
	if !sleepUntil(ctx, end) {
		return
	}
	took := time.Since(began).Seconds()
	if used := ownCPU() - client; used >= 0 {
		m.client = used / took
	}
	if now, err := serverCPU(ctx, at); err == nil && errBegin == nil {
		m.server = (now - server) / took
	}
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// serverCPU reads the CPU seconds of the gateway's process from its metrics.
func serverCPU(ctx context.Context, at *url.URL) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.ResolveReference(&url.URL{Path: "/metrics"}).String(), nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("%s has no process_cpu_seconds_total", request.URL)
}
