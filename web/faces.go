package web

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Faces are drawn here, so that every user has a picture and the app loads nothing from elsewhere.
// /faces/42.svg is always the same face. Each feature is chosen by bits of a hash of the number.

// facePath begins the path of every face.
const facePath = "/faces/"

var (
	faceBackgrounds = []string{"#cfe8e3", "#fde2c8", "#d9e2fb", "#f7d9e3", "#e6e0f8", "#dcedc8", "#fbe9b7", "#d4ecf7", "#eadfd3", "#e3e8ea"}
	faceSkins       = []string{"#f6d3b8", "#eebd98", "#dca27a", "#c68863", "#a86b49", "#8a5236", "#6b3e29"}
	faceHairs       = []string{"#22201f", "#3b2a22", "#5c3a24", "#8a5a2d", "#b98543", "#c9502f", "#9aa1a6", "#2c3550"}
	faceClothes     = []string{"#0b6e66", "#2f6bd8", "#b3402e", "#6a4bb0", "#a4690d", "#3d6b3a", "#3b4650", "#b0487a"}

	// Behind the head, or "" for none: long, wide, a knot, curls.
	faceBacks = []string{
		"",
		`<path d="M13 30c0-14 8-21 19-21s19 7 19 21l3 22H10z"/>`,
		`<circle cx="32" cy="9" r="6"/>`,
		`<path d="M12 34a20 22 0 0 1 40 0l-1 10H13z"/>`,
		`<g><circle cx="16" cy="22" r="8"/><circle cx="48" cy="22" r="8"/><circle cx="14" cy="34" r="7"/><circle cx="50" cy="34" r="7"/></g>`,
	}
	// On the head, or "" for a bald head.
	faceTops = []string{
		`<path d="M17 31c-2-13 5-20 15-20s17 7 15 20c-2-6-5-9-9-10-6 2-14 2-17 1-2 2-3 5-4 9z"/>`,
		`<path d="M17 29c0-12 6-18 15-18s15 6 15 18c-4-5-7-7-15-7s-11 2-15 7z"/>`,
		`<path d="M16 32c-2-15 8-22 18-21 10 0 15 8 14 21-2-8-8-10-14-12-4 5-12 5-15 6-2 2-2 4-3 6z"/>`,
		`<path d="M17 28c-1-6 1-8 4-9-1-4 3-7 6-6 2-4 8-4 9-1 4-1 8 2 7 6 4 2 5 5 4 10-3-5-7-7-15-7s-12 2-15 7z"/>`,
		`<path d="M18 26c0-10 6-15 14-15s14 5 14 15c-3-3-5-6-6-9-5 4-14 5-18 3-2 1-3 3-4 6z"/>`,
		``,
	}
	faceEyes = []string{
		`<g fill="#2b2422"><circle cx="26" cy="33" r="1.9"/><circle cx="38" cy="33" r="1.9"/></g>`,
		`<g fill="none" stroke="#2b2422" stroke-width="1.8" stroke-linecap="round"><path d="M23.5 33.5q2.5-3 5 0M35.5 33.5q2.5-3 5 0"/></g>`,
		`<g fill="#fff"><ellipse cx="26" cy="33" rx="3.2" ry="2.6"/><ellipse cx="38" cy="33" rx="3.2" ry="2.6"/></g><g fill="#2b2422"><circle cx="26.4" cy="33" r="1.7"/><circle cx="38.4" cy="33" r="1.7"/></g>`,
	}
	faceMouths = []string{
		`<path d="M27 41q5 4.5 10 0"/>`,
		`<path d="M28 42h8"/>`,
		`<path d="M26.5 40.5q5.5 7 11 0z" fill="#fff"/>`,
		`<path d="M28 41.5q5 2.5 8.5-1"/>`,
	}
	faceExtras = []string{
		``, ``, ``, ``,
		`<g fill="none" stroke="#3b4650" stroke-width="1.6"><circle cx="26" cy="33" r="5"/><circle cx="38" cy="33" r="5"/><path d="M31 33h2"/></g>`,
		`<g fill="none" stroke="#7a2e2e" stroke-width="1.6"><rect x="20.5" y="29" width="10" height="8" rx="2"/><rect x="33.5" y="29" width="10" height="8" rx="2"/><path d="M30.5 32h3"/></g>`,
		`<g fill="#e0b23c"><circle cx="16.5" cy="38" r="1.5"/><circle cx="47.5" cy="38" r="1.5"/></g>`,
		`<g fill="#0001"><circle cx="22" cy="38.5" r="2.6"/><circle cx="42" cy="38.5" r="2.6"/></g>`,
	}
)

// face draws the face of a number, as SVG of less than two kilobytes.
func face(number uint64) []byte {
	h := fnv.New64a()
	fmt.Fprintf(h, "face %d", number)
	bits := h.Sum64()
	pick := func(from []string) string {
		one := from[bits%uint64(len(from))]
		bits /= uint64(len(from))
		return one
	}
	background, skin, hair, clothes := pick(faceBackgrounds), pick(faceSkins), pick(faceHairs), pick(faceClothes)
	back, top, eyes, mouth, extra := pick(faceBacks), pick(faceTops), pick(faceEyes), pick(faceMouths), pick(faceExtras)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path fill="%s" d="M0 0h64v64H0z"/>`, background)
	fmt.Fprintf(&b, `<g fill="%s">%s</g>`, hair, back)
	fmt.Fprintf(&b, `<path fill="%s" d="M9 64c1-12 10-16 23-16s22 4 23 16z"/>`, clothes)
	fmt.Fprintf(&b, `<g fill="%s"><path d="M27 42h10v9q-5 5-10 0z"/><circle cx="17" cy="34" r="3.5"/><circle cx="47" cy="34" r="3.5"/><ellipse cx="32" cy="32" rx="15" ry="17"/></g>`, skin)
	fmt.Fprintf(&b, `<g fill="%s">%s</g>%s`, hair, top, eyes)
	fmt.Fprintf(&b, `<g fill="none" stroke="#5a2d24" stroke-width="1.8" stroke-linecap="round">%s</g>%s</svg>`, mouth, extra)
	return b.Bytes()
}

// serveFace serves /faces/NUMBER.svg.
func serveFace(w http.ResponseWriter, r *http.Request) {
	digits, isFace := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, facePath), ".svg")
	number, err := strconv.ParseUint(digits, 10, 63)
	if !isFace || err != nil || digits != strconv.FormatUint(number, 10) {
		notFound(w)
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(face(number)))
}
