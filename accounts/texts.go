package accounts

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"kith/graph/apierr"
	"kith/storage"
)

// CheckText trims a text, with line ends as \n, and checks that it may be shown beside texts of others. It
// must have no control characters except line ends, because a terminal would obey them, and no characters
// that change the direction of the text after them; marks, which keyboards for Hebrew and Arabic have, do
// not. If it must not be empty, it has something to see. This applies to all texts that users write. The
// error is BAD_USER_INPUT.
func CheckText(what, text string, least, most int) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if !utf8.ValidString(text) || strings.ContainsFunc(text, isUnprintable) {
		return "", apierr.TextInvisible.Error("%s holds characters that cannot be shown", what).In(what)
	}
	if n := utf8.RuneCountInString(text); n < least || n > most || least > 0 && !strings.ContainsFunc(text, isSeen) {
		return "", apierr.TextLength.Error("%s has %d to %d characters", what, least, most).In(what)
	}
	return text, nil
}

// CheckName is [CheckText] for names, by which people are told apart, in one line and Unicode's form NFC. It takes
// directional marks out, and refuses what is not seen, by which two names would look alike; except joiners and variation
// selectors where emoji and scripts need them.
func CheckName(what, name string, least, most int) (string, error) {
	return checkSeen(what, norm.NFC.String(withoutMarks.Replace(name)), least, most)
}

// checkSeen is [CheckName] for addresses, of which only one form may be right.
func checkSeen(what, text string, least, most int) (string, error) {
	text = strings.TrimSpace(withoutMarks.Replace(text))
	if strings.ContainsFunc(text, isIgnorable) {
		rest := joined.ReplaceAllString(text, "-")
		_, misplaced := joiners.ToUnicode(rest)
		unseen := func(r rune) bool { return isIgnorable(r) && (r != '\u200c' && r != '\u200d' || misplaced != nil) }
		if strings.ContainsFunc(rest, unseen) || separatesNothing(rest) {
			return "", apierr.TextInvisible.Error("%s holds characters that cannot be seen", what).In(what)
		}
	}
	return CheckText(what, text, least, most)
}

// separatesNothing reports whether a non-joiner has no letter behind it, which [joiners] allow before blanks, digits and the like. Only that of
// a virama may be needed there.
func separatesNothing(text string) bool {
	parts := strings.Split(text, "\u200c")
	for i, part := range parts[1:] {
		before, _ := utf8.DecodeLastRuneInString(parts[i])
		next, _ := utf8.DecodeRuneInString(part)
		if norm.NFC.PropertiesString(string(before)).CCC() != virama && !unicode.In(next, unicode.L, unicode.M) {
			return true
		}
	}
	return false
}

// virama is the combining class of signs that take the vowel off a consonant.
const virama = 9

// SeenOnly is a name as [CheckName] accepts it, without the characters that are not seen if it
// refuses them: names that are imported may have some.
func SeenOnly(name string) string {
	if _, err := checkSeen("", name, 0, math.MaxInt); err != nil {
		name = strings.Join(strings.FieldsFunc(name, isIgnorable), "") // not by strings.Map, see withoutMarks
	}
	return strings.TrimSpace(name)
}

// SeenURL is SeenOnly for addresses, which may have quotes and blanks.
func SeenURL(text string) string { return escaped.Replace(SeenOnly(text)) }

var escaped = strings.NewReplacer(`"`, "%22", "'", "%27", "`", "%60", `\`, "%5C", " ", "%20")

// joined matches emoji, which joiners join, numbers on keys, and characters that have variants.
var joined = regexp.MustCompile(strings.NewReplacer(
	"E", `[©®‼⁉™ℹ←-⟿⤀-⯿〰〽㊗㊙\x{1f000}-\x{1faff}]`, "V", `[\x{fe0e}\x{fe0f}]`,
	"S", `[\p{Han}\p{Mongolian}\p{Myanmar}][\x{180b}-\x{180f}\x{fe00}-\x{fe0f}\x{e0100}-\x{e01ef}]`,
).Replace(`(EV?\x{200d})*EV?|[0-9#*]\x{fe0f}\x{20e3}|S`))

// joiners has the rules of RFC 5892 A.1 and A.2: where scripts need joiners.
var joiners = idna.New(idna.CheckJoiners(true))

func isUnprintable(r rune) bool {
	return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) && !isMark(r)
}

// isMark is for the left-to-right, right-to-left and Arabic letter marks.
func isMark(r rune) bool { return r == '\u200e' || r == '\u200f' || r == '\u061c' }

// withoutMarks makes one line, too. It leaves bytes that are no UTF-8 as they are, so that they are refused; [strings.Map] would not.
var withoutMarks = strings.NewReplacer("\u200e", "", "\u200f", "", "\u061c", "", "\r\n", " ", "\n", " ")

// isIgnorable is for Unicode's Default_Ignorable_Code_Point, other characters of format, such as tags, and the
// Braille pattern without dots.
func isIgnorable(r rune) bool {
	return r > unicode.MaxASCII && (r == '\u2800' || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r))
}

// isSeen is false for blanks, too.
func isSeen(r rune) bool { return !unicode.In(r, unicode.Z, unicode.Cc) && !isIgnorable(r) }

// checkURL is an address that pages link to and show: a scheme and a host, in one form, without a user before it. Quotes
// are refused, which would end the attribute of a page that does not escape them.
func checkURL(what, text string, least, most int, schemes ...string) (string, error) {
	text, err := checkSeen(what, text, least, most)
	if err != nil || text == "" {
		return text, err
	}
	u, err := url.Parse(text) // has no control characters
	if err != nil || !slices.Contains(schemes, u.Scheme) || u.User != nil || escaped.Replace(text) != text {
		return "", apierr.URLMalformed.Error("%s begins with %s:// and a host, without a user, quotes and blanks", what, strings.Join(schemes, ":// or ")).In(what)
	}
	named := u.Hostname()
	host, err := hosts.ToUnicode(named)
	rest, found := strings.CutPrefix(text[len(u.Scheme):], "://"+u.Host) // not if it is written with %
	host = strings.Replace(u.Host, named, host, 1)
	if err != nil || !found || !hostForm.MatchString(host) {
		return "", apierr.URLMalformed.Error("%s names no host after %s://", what, u.Scheme).In(what)
	}
	return checkSeen(what, u.Scheme+"://"+host+rest, least, most) // Punycode may have hidden something in the host
}

var (
	hosts    = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false)) // hosts with _ are in use
	hostForm = regexp.MustCompile("^([^\x00-,/:-^`{-\x7f]+|\\[[0-9a-f:.]+\\])(:[0-9]+)?$")
)

// CheckProfile trims and checks the given texts of a profile with [CheckText] and [CheckName].
// An avatarUrl is an address for [checkURL], or the path of a face that the gateway draws.
func CheckProfile(change storage.ProfileChange) (storage.ProfileChange, error) {
	var refused []error
	for i, c := range change.Texts() {
		if *c == nil || c == &change.AvatarURL && facePath.MatchString(**c) {
			continue
		}
		t := storage.UserTexts[i]
		check := CheckText
		switch {
		case t.IsName:
			check = CheckName
		case t.Schemes != nil:
			check = func(what, text string, least, most int) (string, error) {
				return checkURL(what, text, least, most, t.Schemes...)
			}
		}
		text, err := check(t.Field, **c, t.Least, t.Most)
		refused = append(refused, err)
		*c = &text
	}
	return change, apierr.All(refused...)
}

// facePath matches the path of a picture that every gateway draws, see kith/web. No other path is allowed: a
// page would send a request to it with the credentials of the viewer.
var facePath = regexp.MustCompile(`^/faces/(0|[1-9][0-9]{0,17})\.svg$`)

// CheckClientKey checks a client key of a post or a comment. The error is BAD_USER_INPUT.
func CheckClientKey(key string) error {
	printable := !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
	if key == "" || len(key) > storage.MaxClientKeyLength || !printable {
		return apierr.InvalidValue.Error("clientKey has 1 to %d printable ASCII characters, without blanks", storage.MaxClientKeyLength).In("clientKey")
	}
	return nil
}

// ErrMedia: a post has too many files. It is BAD_USER_INPUT.
var ErrMedia = apierr.TooLong.Error("a post has at most %d files", storage.MaxMedia).In("media")

// CheckMedia trims and checks the names of the files of a post with [CheckName], and their addresses. The error is BAD_USER_INPUT.
func CheckMedia(files []storage.Media) (err error) {
	if len(files) > storage.MaxMedia {
		return ErrMedia
	}
	for i := range files {
		if files[i].Name, err = CheckName("name", files[i].Name, 0, storage.MaxMediaNameLength); err != nil {
			return apierr.In("media", err)
		}
		if files[i].URL, err = checkURL("url", files[i].URL, 1, storage.MaxMediaURLLength, "https"); err != nil {
			return apierr.In("media", err)
		}
	}
	return nil
}

// farthestEnd is how far ahead an end may lie.
const farthestEnd = 10 * 366 * 24 * time.Hour

// CheckEnd is a time at which something ends by itself: after now, and within ten years; 0: none is given. The error is BAD_USER_INPUT.
func CheckEnd(what string, end *time.Time, now time.Time) (storage.Micros, error) {
	if end == nil {
		return 0, nil
	}
	if !end.After(now) || end.Sub(now) > farthestEnd {
		return 0, apierr.OutOfRange.Error("%s lies ahead, by ten years at most", what).In(what)
	}
	return storage.MicrosOf(*end), nil
}
