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
		strings.Repeat("a", 99): "",
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
	}{{"", 0, ""}, {"ab", 0, ""}, {"ab", 1, "a"}, {"ab", 2, "ab"}, {"ab", 3, "ab"}, {"äöü", 2, "äö"}, {"äöü", 3, "äöü"}, {"äöü", 5, "äöü"}, {"a\xff\xffb", 3, "a\xff\xff"}} {
		if got := ClipRunes(tt.text, tt.limit); got != tt.want {
			t.Errorf("%q after %d: %q, want %q", tt.text, tt.limit, got, tt.want)
		}
	}
}
