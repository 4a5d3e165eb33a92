package demo

import (
	"fmt"
	"strings"
	"time"

	"kith/storage"
)

// second, day and year are spans of the graph's times.
const (
	second = storage.Micros(1e6)
	day    = 24 * 3600 * second
	year   = 365 * day
)

// people makes the users: they joined in the order of their ids, in the third
// year before the base, ahead of every follow.
func people(d dice, communities []int, base time.Time) []storage.User {
	users := make([]storage.User, Users)
	// The first two users are those of the examples.
	taken := map[string]bool{"maya_okafor": true, "mateo_silva": true}
	for i := range users {
		given, family := names(d, communities[i])
		joined := storage.MicrosOf(base) - 3*year + year/Users*storage.Micros(i)
		users[i] = storage.User{
			ID:        storage.UserID(i + 1),
			Handle:    handle(d, taken, fold(given), fold(family)),
			Name:      given + " " + family,
			Bio:       bio(d),
			AvatarURL: fmt.Sprintf("/faces/%d.svg", i+1),
			CreatedAt: joined - joined%second,
			UpdatedAt: joined - joined%second,
		}
	}
	users[0].Handle, users[0].Name, users[0].Bio = "maya_okafor", "Maya Okafor", "Architect in Lagos. City trees and night trains."
	users[1].Handle, users[1].Name, users[1].Bio = "mateo_silva", "Mateo Silva", "Sound engineer in Buenos Aires. Mostly folk songs."
	return users
}

// names draws a name that is common in the user's community.
func names(d dice, community int) (given, family string) {
	home := cultures[(community+d.under(2))%len(cultures)]
	if d.percent(20) {
		home = pick(d, cultures)
	}
	given, family = pick(d, home.given), pick(d, home.family)
	if d.percent(8) { // families mix
		family = pick(d, pick(d, cultures).family)
	}
	return given, family
}

// handle makes a handle of the kind that people make from their names. It is not taken.
func handle(d dice, taken map[string]bool, given, family string) string {
	forms := []string{given + "_" + family, given + family, given + "_" + family[:1], given[:1] + family, family + "_" + given}
	if !d.percent(75) {
		at := 1 + d.under(len(forms)-1)
		forms[0], forms[at] = forms[at], forms[0]
	}
	for n := 0; ; n++ {
		form := forms[min(n, len(forms)-1)]
		if n >= len(forms) {
			form = fmt.Sprintf("%s_%s%d", given, family, 70+d.under(30))
		}
		if len(form) >= 4 && len(form) <= storage.MaxHandleLength && !taken[form] {
			taken[form] = true
			return form
		}
	}
}

func fold(name string) string {
	var b strings.Builder
	for _, letter := range strings.ToLower(name) {
		if folded, known := folds[letter]; known {
			b.WriteString(folded)
		} else {
			b.WriteRune(letter)
		}
	}
	return b.String()
}

func bio(d dice) string {
	one, other := pick(d, interests), pick(d, interests)
	switch {
	case d.percent(25) || one == other:
		return ""
	case d.percent(30):
		return fmt.Sprintf("%s in %s.", pick(d, roles), pick(d, cities))
	case d.percent(60):
		return fmt.Sprintf("%s in %s. %s and %s.", pick(d, roles), pick(d, cities), upper(one), other)
	}
	return fmt.Sprintf("Mostly %s, sometimes %s.", one, other)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
