// Package metered reads in tests what metrics show.
package metered

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/must"
)

// All are the values of all gauges and counters, by name and by the values of labels in the order of the labels' names.
func All(t must.T, metrics prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	must.OK(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				name = append(name, label.GetValue())
			}
			values[strings.Join(name, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// Sum is the sum of a gauge or counter over its labels, and whether there is one.
func Sum(t must.T, metrics prometheus.Gatherer, name string) (sum float64, found bool) {
	t.Helper()
	for of, value := range All(t, metrics) {
		if of == name || strings.HasPrefix(of, name+" ") {
			sum, found = sum+value, true
		}
	}
	return sum, found
}

// Value is [Sum], and ends the test if there is no such metric.
func Value(t must.T, metrics prometheus.Gatherer, name string) float64 {
	t.Helper()
	sum, found := Sum(t, metrics, name)
	must.That(t, found, "there is no metric %s", name)
	return sum
}
