package lexical

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"if not for":            "if not for",
		"parseHTTPReply2":       "pars http reply2 parsehttpreply2",
		"snake_case _x":         "snak cas snake_case x",
		"denied denies deny":    "deny deny deny",
		"caches cached caching": "cach cach cach",
		"processes address":     "process address",
		"SQLITE_BUSY":           "sqlit busy sqlite_busy",
		"用 git push 报错":         "用 git push 报错",
		"Running runs; used":    "run run used",
		"E0499 sha256":          "e0499 sha256",
		"锁表 go 的":               "锁表 go 的",
		"数据库迁移":                 "数据 据库 库迁 迁移",
		"naïve":                 "naïve",
		strings.Repeat("ä", 64): strings.Repeat("ä", 64),
		strings.Repeat("ä", 65): "",
		"ＡＢＣ ᄀᄂ":                "ａｂｃ ᄀᄂ",
		"ties tied axes axe":    "tie tied axe axe",
		"boxes wishes sizes":    "box wish siz",
		"asked adding":          "ask ad",
	} {
		var got []string
		Words(text, func(w string) { got = append(got, w) })
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}

// TestClipRunes: a text is cut after whole characters.
func TestClipRunes(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 0, ""}, {"ab", 0, ""}, {"ab", 1, "a"}, {"ab", 2, "ab"}, {"ab", 3, "ab"}, {"äöü", 2, "äö"},
		{"äöü", 3, "äöü"}, {"äöü", 5, "äöü"}, {"a\xff\xffb", 3, "a\xff\xff"},
	} {
		if got := ClipRunes(tt.text, tt.limit); got != tt.want {
			t.Errorf("%q after %d: %q, want %q", tt.text, tt.limit, got, tt.want)
		}
	}
}

// TestGrams: the 4-grams of words between blanks, and of Chinese one and two characters; "·" stands for no character.
func TestGrams(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "", "_": "", "ab": " ab ", "Ab_c": " ab |ab c|b c ", "abc  d!": " abc|abc |bc d|c d ", "数据": "···数|··数据|···据",
		"go数 据ab": "···数|···据| ab ",
	} {
		var got []string
		Grams(text, func(g uint64) {
			runes := []rune{rune(g >> 48), rune(g >> 32 & 0xffff), rune(g >> 16 & 0xffff), rune(g & 0xffff)}
			got = append(got, strings.ReplaceAll(string(runes), "\x01", "·"))
		})
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
