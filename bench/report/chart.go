package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Charts are SVG without scripts or fonts of their own, readable on light and dark pages.

const (
	coldColor = "#8fb3d9"
	warmColor = "#2468a8"
	ink       = "#777777"
)

// RatioChart draws how many times as fast as the baseline each question is, cold and warm,
// on one engine; "" if nothing was measured beside a baseline. The axis is logarithmic,
// and the line at 1 is the baseline.
func (s *Size) RatioChart(engine string) string {
	const left, right, top, bar, gap = 70, 70, 56, 13, 12
	const plot = 520
	low, high := 0.1, 10.0
	var rows []string
	for _, q := range s.Questions() {
		seen := false
		for _, state := range []string{Cold, Warm} {
			c := s.Find(engine, state, q)
			if c == nil || s.Ratio(c) == 0 {
				continue
			}
			low, high, seen = min(low, decadeBelow(s.Ratio(c))), max(high, decadeAbove(s.Ratio(c))), true
		}
		if seen {
			rows = append(rows, q)
		}
	}
	if rows == nil {
		return ""
	}
	height := top + len(rows)*(2*bar+gap) + 30
	x := func(ratio float64) float64 { return left + plot*math.Log(ratio/low)/math.Log(high/low) }
	d := newDrawing(left+plot+right, height)
	d.text(left, 20, "start", "15", fmt.Sprintf("Kith on %s: requests a second, as a multiple of the hand-written baseline's", title[engine]))
	d.rect(left, 30, 12, 12, coldColor)
	d.text(left+18, 41, "start", "12", "cold")
	d.rect(left+70, 30, 12, 12, warmColor)
	d.text(left+88, 41, "start", "12", "warm")
	for at := low; at <= high*1.001; at *= 10 {
		width := 0.5
		if math.Abs(at-1) < 1e-9 {
			width = 2
		}
		d.line(x(at), top, x(at), float64(height-24), width)
		d.text(x(at), float64(height-8), "middle", "11", short(at, 3)+"×")
	}
	for i, q := range rows {
		y := float64(top + i*(2*bar+gap) + gap/2)
		d.text(left-8, y+bar+4, "end", "12", q)
		for j, state := range []string{Cold, Warm} {
			c := s.Find(engine, state, q)
			if c == nil || s.Ratio(c) == 0 {
				continue
			}
			ratio := s.Ratio(c)
			from, to := min(x(1), x(ratio)), max(x(1), x(ratio))
			d.rect(from, y+float64(j*bar), max(to-from, 1), bar-1, []string{coldColor, warmColor}[j])
			label := to + 4
			d.text(label, y+float64(j*bar)+10, "start", "10", number(ratio, 2))
		}
	}
	return d.String()
}

// GrowthChart draws the CPU that one request costs the gateway, by the number of users,
// with a line for each question; "" if the graphs do not grow.
func (r *Report) GrowthChart(engine, state string) string {
	const left, top, plotWidth, plotHeight, right = 70, 50, 480, 300, 90
	if r.Kind != Growth || r.Sizes[0].Users >= r.Sizes[len(r.Sizes)-1].Users {
		return ""
	}
	lines := map[string][][2]float64{}
	low, high := math.Inf(1), 0.0
	for _, s := range r.Sizes {
		for _, c := range s.Cells {
			if c.Engine == engine && c.State == state && c.GatewayCPU != nil && *c.GatewayCPU > 0 {
				lines[c.Question] = append(lines[c.Question], [2]float64{float64(s.Users), *c.GatewayCPU})
				low, high = min(low, decadeBelow(*c.GatewayCPU)), max(high, decadeAbove(*c.GatewayCPU))
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	first, last := float64(r.Sizes[0].Users), float64(r.Sizes[len(r.Sizes)-1].Users)
	x := func(users float64) float64 { return left + plotWidth*math.Log(users/first)/math.Log(last/first) }
	y := func(micros float64) float64 { return top + plotHeight*(1-math.Log(micros/low)/math.Log(high/low)) }
	d := newDrawing(left+plotWidth+right, top+plotHeight+40)
	d.text(left, 22, "start", "15", fmt.Sprintf("%s, %s: the gateway's CPU for a request, µs, by number of users", title[engine], state))
	for at := low; at <= high*1.001; at *= 10 {
		d.line(left, y(at), left+plotWidth, y(at), 0.5)
		d.text(left-8, y(at)+4, "end", "11", number(at, 0))
	}
	for _, s := range r.Sizes {
		d.line(x(float64(s.Users)), top, x(float64(s.Users)), top+plotHeight, 0.5)
		d.text(x(float64(s.Users)), top+plotHeight+18, "middle", "11", comma(s.Users))
	}
	var labels []label
	for i, q := range r.Sizes[0].Questions() {
		points := lines[q]
		if len(points) == 0 {
			continue
		}
		var path []string
		for _, p := range points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(p[0]), y(p[1])))
		}
		color := lineColors[i%len(lineColors)]
		d.printf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(path, " "), color)
		end := points[len(points)-1]
		labels = append(labels, label{x(end[0]) + 6, y(end[1]) + 4, color, q})
	}
	d.labels(labels)
	return d.String()
}

var lineColors = []string{"#2468a8", "#c2571a", "#3a8f4d", "#8b4fa8", "#b03a5b", "#7a6a1f", "#2a8f8f", "#666666"}

// label is the text at the end of a line.
type label struct {
	x, y        float64
	color, text string
}

// labels writes labels from the top down, each low enough not to overlap those before it.
func (d *drawing) labels(all []label) {
	const apart = 12
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	free := math.Inf(-1)
	for _, l := range all {
		y := max(l.y, free)
		d.colored(l.x, y, l.color, l.text)
		free = y + apart
	}
}

func decadeBelow(n float64) float64 { return math.Pow(10, math.Floor(math.Log10(n))) }
func decadeAbove(n float64) float64 { return math.Pow(10, math.Ceil(math.Log10(n))) }

// drawing is an SVG that is being written.
type drawing struct{ strings.Builder }

func newDrawing(width, height int) *drawing {
	d := &drawing{}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">`, width, height, width, height)
	return d
}

// String ends the drawing.
func (d *drawing) String() string { return d.Builder.String() + "</svg>\n" }

func (d *drawing) printf(format string, args ...any) {
	fmt.Fprintf(&d.Builder, format+"\n", args...)
}

func (d *drawing) text(x, y float64, anchor, size, text string) {
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%s" fill="%s">%s</text>`, x, y, anchor, size, ink, escape(text))
}

func (d *drawing) colored(x, y float64, color, text string) {
	d.printf(`<text x="%.1f" y="%.1f" font-size="12" fill="%s">%s</text>`, x, y, color, escape(text))
}

func (d *drawing) rect(x, y, width, height float64, color string) {
	d.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, width, height, color)
}

func (d *drawing) line(x1, y1, x2, y2, width float64) {
	d.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`, x1, y1, x2, y2, ink, width)
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
