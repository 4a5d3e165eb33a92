package social

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
)

func TestWhomATextNames(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"@":                        "",
		"@ada":                     "ada",
		"@Ada_L, @ada_l; @bob.":    "ada_l bob",
		"(@ada)@bob":               "ada bob",
		"hi\n@ada\n@bob":           "ada bob",
		"山田さん@ada さん":              "ada",
		"mail ada@example.org":     "",
		"ada.@example":             "",
		"@ada@example.org @bob":    "bob",
		"@@ada @bob@ @carol":       "carol",
		"@" + letters(30):          letters(30),
		"@" + letters(31) + " @x":  "x",
		"@ada's @bob-2 @carol/dan": "ada bob carol",
	} {
		check.Equal(t, fmt.Sprintf("whom %q names", text), strings.Join(Mentioned(text), " "), want)
	}
	var text string
	var want []string
	for n := range MaxMentions + 5 {
		text += fmt.Sprintf("@u%d @u0 ", n)
		want = append(want, fmt.Sprintf("u%d", n))
	}
	check.Equal(t, fmt.Sprintf("whom %q names", text), Mentioned(text), want[:MaxMentions])
}

func letters(n int) string { return strings.Repeat("x", n) }
