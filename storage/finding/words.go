package finding

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"kith/storage"
)

// Kinds of look-ups of users by the words of their names and handles.
var (
	// WordLookups lists the users of whom a word begins with a prefix, in the order of these words and then of ids; a user is listed
	// for each such word. The list is empty if the prefix is. It asks every shard.
	WordLookups = storage.NewKind[WordQuery, []storage.UserID]("words", nil)

	// UserWordLookups lists those of some users, in their order, of whom a word begins with a prefix: nobody if that is empty.
	UserWordLookups = storage.NewKind[UserWord, []storage.UserID]("words.have", nil)
)

// WordQuery asks for at most Limit users by a word.
type WordQuery struct {
	Prefix string
	Limit  int
}

// UserWord asks which users have a word.
type UserWord struct {
	Users  []storage.UserID
	Prefix string
}

// Bounds on the words of a user, and on those of a search.
const (
	maxWords      = 8  // of a search, and of a user, beside their ends
	maxWordEnds   = 16 // of a user
	maxWordLength = 32 // bytes
)

// Words lists the words by which a user is found, each once, without case and accents: the handle, the words of the name, and
// the parts of both between underscores, as many as [maxWords] allows, and then up to [maxWordEnds] ends of words of the name: Chinese,
// Japanese and Korean names have no spaces, so 山田太郎 is also found by 太郎, which an end of it begins with. The rule is that of the rows
// that stores keep: if it changes, these have to be made again.
func Words(u storage.User) []string {
	words := make([]string, 0, maxWords)
	add := func(most int, all ...string) {
		for _, word := range all {
			if word = shortened(word); word != "" && len(words) < most && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	parts := split(u.Name) // between joiners, too
	add(maxWords, slices.Concat([]string{strings.TrimLeft(u.Handle, "_")}, wordsIn(u.Name), parts, split(u.Handle))...)
	most := len(words) + maxWordEnds
	for _, part := range parts {
		before := ' '
		for i, r := range part {
			if i > 0 && unicode.In(r, unspaced...) || unicode.In(before, unspaced...) {
				add(most, part[i:])
			}
			before = r
		}
	}
	return words
}

// unspaced are scripts in whose names a word may begin behind any character.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul}

// SearchedWords are the words of what somebody looks for, as [Words] has them. A joiner, or another character that is not seen, belongs to no word:
// علیرضا and علی‌رضا are one. An underscore within or behind a word belongs to it, because handles
// have it. There are none if there are more than [maxWords], because no user has them all.
func SearchedWords(text string) []string {
	if words := wordsIn(text); len(words) <= maxWords {
		return words
	}
	return nil
}

func wordsIn(text string) (words []string) {
	for _, word := range strings.FieldsFunc(folded(text, unicode.Cf), func(r rune) bool { return r != '_' && isBetweenWords(r) }) {
		if word = strings.TrimLeft(word, "_"); word != "" {
			words = append(words, shortened(word))
		}
	}
	return words
}

func split(text string) []string { return strings.FieldsFunc(folded(text), isBetweenWords) }

func isBetweenWords(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// folded is a text in lower case and without marks, what is not seen, and characters of other kinds. Compatible forms become one (`ﬁ`, full-width letters), and a character without
// marks that was taken apart is put together again, so that Hangul does not take three times the bytes.
func folded(text string, without ...*unicode.RangeTable) string {
	without = append(without, unicode.M, unicode.Other_Default_Ignorable_Code_Point)
	plain := strings.Map(func(r rune) rune {
		if unicode.In(r, without...) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
	return norm.NFC.String(letters.Replace(plain))
}

// letters are those whose strokes, ligatures and forms at the end of a word Unicode does not take apart.
var letters = strings.NewReplacer("ß", "ss", "ς", "σ", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ı", "i")

// shortened is what is kept of a word: whole characters.
func shortened(word string) string {
	if len(word) <= maxWordLength {
		return word
	}
	return strings.ToValidUTF8(word[:maxWordLength], "")
}
