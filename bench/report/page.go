package report

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The part of the page that is made from reports is between these lines.
const (
	begin = "<!-- kith bench report: from here on it is generated -->\n"
	end   = "<!-- kith bench report: up to here -->\n"
)

// Page puts reports into a page, in place of the text between the marks. It returns the
// page, and its charts by name, which belong into a folder beside the page.
func Page(page []byte, chartFolder string, reports ...*Report) ([]byte, map[string]string, error) {
	before, rest, opened := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !opened || !closed {
		return nil, nil, errors.New("the page has no lines that say what is generated")
	}
	charts := map[string]string{}
	var made bytes.Buffer
	for _, r := range reports {
		fmt.Fprintf(&made, "\n## %s\n\n", r.heading())
		names := r.addCharts(charts)
		r.WriteTables(&made)
		for _, name := range names {
			fmt.Fprintf(&made, "\n![%s](%s/%s)\n", strings.TrimSuffix(name, ".svg"), chartFolder, name)
		}
	}
	made.WriteString("\n")
	return slices.Concat(before, []byte(begin), made.Bytes(), []byte(end), after), charts, nil
}

// heading says what kind of run it was.
func (r *Report) heading() string {
	switch last := r.Sizes[len(r.Sizes)-1]; {
	case r.Kind == Standard:
		return "Standard run"
	case last.Shards > 1:
		return "By number of shards"
	case len(last.Cells) == 0 && len(last.Stores) > 0 && len(last.Stores[0].Hits) > 0:
		return "Keys in memory"
	}
	return "Growth"
}

// addCharts draws all charts of a report, and returns their names in order.
func (r *Report) addCharts(charts map[string]string) (names []string) {
	add := func(name, chart string) {
		if chart != "" {
			charts[name] = chart
			names = append(names, name)
		}
	}
	for _, engine := range Engines {
		short := strings.ReplaceAll(engine, "+", "-")
		if r.Kind == Standard {
			add("ratio-"+short+".svg", r.Sizes[0].RatioChart(engine))
			continue
		}
		for _, state := range []string{Cold, Warm} {
			add("growth-"+short+"-"+state+".svg", r.GrowthChart(engine, state))
		}
	}
	return names
}

// WritePage does the same with a file; the charts go into a folder beside it that has its
// name: for bench/results/standard.md bench/results/standard/.
func WritePage(path string, reports ...*Report) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	page, charts, err := Page(page, filepath.Base(folder), reports...)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(charts)) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(charts[name]), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(path, page, 0o644)
}
