package redact

import (
	"fmt"
	"strings"
	"testing"
)

// frames are texts around a key.
func frames() []string {
	return []string{"%s", "key %s end", `{"k":"%s"}`, `{\"k\":\"%s\"}`, `a\n%s\nb`, `a\u003c%s`, "(%s)", "x=%s&y=1", "%s,", "use `%s`", "\x1b[31m%s\x1b[0m", "| %s |", "%s\r\n"}
}

// TestKeyForms: the example of each form is found whole, and a word that only begins like it is not.
func TestKeyForms(t *testing.T) {
	for _, f := range keyForms() {
		for prefix := range strings.FieldsSeq(f.prefixes) {
			rest := f.rest[:max(f.least, len(f.rest))]
			if f.kind == "gitlab-token" && prefix == "glagent-" {
				rest += rest + rest
			}
			for _, frame := range frames() {
				in := fmt.Sprintf(frame, prefix+rest)
				out, found := New(testKey(), nil).Text(in)
				if len(found) == 0 || strings.Contains(out, rest[len(rest)-8:]) || strings.Contains(out, rest[:8]) {
					t.Errorf("%s: %q left %q", f.kind, in, out)
				}
			}
			if out, _ := New(testKey(), nil).Text(escapeMarkdown(prefix + rest)); strings.Contains(out, rest[len(rest)-8:]) {
				t.Errorf("%s: markdown left %q", f.kind, out)
			}
			words := prefix + strings.Repeat("some-words_", 10)
			if got := plain(t, words); got != words {
				t.Errorf("%s: touched %q: %q", f.kind, words, got)
			}
		}
		if f.source == "" || len(f.rest) < f.least {
			t.Errorf("%s: no source, or a short example", f.kind)
		}
	}
}

func escapeMarkdown(s string) string {
	return strings.NewReplacer("_", `\_`, "-", `\-`, ".", `\.`, "~", `\~`).Replace(s)
}

// TestPatternForms: the example of each pattern is found, in every frame.
func TestPatternForms(t *testing.T) {
	for _, p := range patterns() {
		_, want, _ := strings.Cut(p.example, "«")
		want, _, _ = strings.Cut(want, "»")
		text := strings.NewReplacer("«", "", "»", "").Replace(p.example)
		for _, frame := range frames() {
			in := fmt.Sprintf(frame, text)
			out, found := New(testKey(), nil).Text(in)
			if len(found) != 1 || found[0].Bytes != want || restore(out, found) != in {
				t.Errorf("%s in %q: found %q in %q", p.kind, frame, found, out)
			}
		}
		if p.source == "" {
			t.Errorf("%s has no source", p.kind)
		}
	}
}

// TestRepeatedKeywords: a text of nothing but one keyword takes no time for each of them that grows with the text, and
// hides nothing behind it. Each took minutes where a keyword was searched up to the end of its line.
func TestRepeatedKeywords(t *testing.T) {
	const size = 1 << 20
	key := secrets()["github-token"]
	for _, word := range []string{"sk-", "Q~", "\ttrue\t", "a\ttrue\t/\tfalse\t0\tsid\tx", "-----BEGIN PRIVATE KEY-----", "<password>", "AZDO", "cookie:", "_session=", "&sig="} {
		text := strings.Repeat(word, size/len(word))
		if out, found := New(testKey(), nil).Text(text + "\n" + key); len(found) != 1 || found[0].Bytes != key {
			t.Errorf("%q: found %d in %d bytes", word, len(found), len(out))
		}
	}
}

// TestHiddenCharacters: what a screen does not show does not hide a key, wherever it stands in it.
func TestHiddenCharacters(t *testing.T) {
	key := secrets()["github-token"]
	for _, c := range []string{
		"\u00ad", "\u061c", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e", "\u2060", "\u2063", "\u202a", "\u2066", "\ufeff", "\ufe0f", "\u034f", "\U000e0041",
		"\x1b[1m", "\u009b1m", "\x1b]8;;http://h\x07", "\x1b_x\x1b\\", "\x1bPq\x1b\\", "\x00", "\x0e", "\x7f",
	} {
		for _, at := range []int{2, 4, 20} {
			in := "a " + key[:at] + c + key[at:] + " b"
			if out, found := New(testKey(), nil).Text(in); len(found) != 1 || restore(out, found) != in || strings.Contains(out, key[len(key)-9:]) {
				t.Errorf("%q at %d: %q", c, at, out)
			}
		}
	}
	for _, in := range []string{"it\u2019s \u2013 a\u2026 na\u00efve \u00b5s", "\U0001f468\u200d\U0001f469 family", "\u0645\u06cc\u200c\u062e"} {
		if got := plain(t, in); got != in {
			t.Errorf("touched %q: %q", in, got)
		}
	}
}
