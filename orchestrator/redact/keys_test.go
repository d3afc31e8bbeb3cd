package redact

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
)

// frames are texts around a key.
func frames() []string {
	return []string{
		"%s", "key %s end", `{"k":"%s"}`, `{\"k\":\"%s\"}`, `a\n%s\nb`, `a\u003c%s`, "(%s)", "x=%s&y=1", "%s,",
		"use `%s`", "\x1b[31m%s\x1b[0m", "| %s |", "%s\r\n",
	}
}

// TestKeyForms: the example of each form is found whole, and a word that only begins like it is not.
func TestKeyForms(t *testing.T) {
	for _, f := range keyForms() {
		for prefix := range strings.FieldsSeq(f.prefixes) {
			rest := madeUp(f)
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
		if f.source == "" {
			t.Errorf("%s has no source", f.kind)
		}
	}
}

// madeUp returns what may follow the prefix of a form's key: as many characters of the form as a key
// must have, without marks at its ends. It is the same in each run.
func madeUp(f keyForm) string {
	sum := fnv.New64()
	sum.Write([]byte(f.kind))
	rng := rand.New(rand.NewPCG(sum.Sum64(), 1))
	out := make([]byte, f.least)
	for i := range out {
		chars := f.chars
		if i < 2 || i >= len(out)-2 {
			chars = strings.Trim(chars, "+/=_-.%~")
		}
		out[i] = chars[rng.IntN(len(chars))]
	}
	return string(out)
}

func escapeMarkdown(s string) string {
	return strings.NewReplacer("_", `\_`, "-", `\-`, ".", `\.`, "~", `\~`).Replace(s)
}

// TestPatternForms: the example of each pattern is found, in every frame.
func TestPatternForms(t *testing.T) {
	examples := patternExamples()
	for _, p := range patterns() {
		example := examples[p.keywords]
		_, want, _ := strings.Cut(example, "«")
		want, _, _ = strings.Cut(want, "»")
		text := strings.NewReplacer("«", "", "»", "").Replace(example)
		for _, frame := range frames() {
			in := fmt.Sprintf(frame, text)
			out, found := New(testKey(), nil).Text(in)
			if len(found) != 1 || found[0].Bytes != want || restore(out, found) != in {
				t.Errorf("%s in %q: found %q in %q", p.kind, frame, found, out)
			}
		}
		if p.source == "" || want == "" {
			t.Errorf("%s has no source or no example", p.kind)
		}
	}
}

// patternExamples holds a text for each pattern by its keywords, made up; the secret is between « and ».
func patternExamples() map[string]string {
	return map[string]string{
		"q~":                     "x «Kx88Q~" + "Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5X»",
		"accountkey= accesskey=": "AccountKey=«/" + strings.Repeat("Kx8Rt3Vq+0ZmL7nWb", 5) + "==»;Endpoint=x",
		"?sig= &sig= ;sig=":      "?sv=2024&sig=«Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv%3D»",
		"azdo":                   "«" + strings.Repeat("Kx8Rt3Vq0ZmL7nWbYc2", 4) + "AZDO1a2B»",
		"/webhooks/":             "https://discord.com/api/webhooks/123456789012345678/«" + strings.Repeat("Kx8Rt3Vq0ZmL7nWbYc2", 3) + "HdJf9Gs4»",
		"chat.googleapis.com":    "https://chat.googleapis.com/v1/spaces/AAA/messages?«key=Kx8Rt3Vq0Zm&token=L7nWbYc2HdJ%3D»",
		"-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9": "«3f9a1c7e5d2b8f604a1c9e7d5b3f2a80-us19»",
		"_mmk":                                 "«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»",
		"zxlkagjh":                             "«ZXlKaGJHY2lPaUpJVXpJMU5pSjku" + strings.Repeat("Kx8Rt3Vq", 4) + "»",
		"password> passphrase> secret> token>": "<password>«hunter2x»</password>",
		"password":                             `<add key="ClearTextPassword" value="«hunter2x»" />`,
		"_session=":                            "_gitlab_session=«3f9a1c7e5d2b8f604a1c9e7d5b3f2a80»",
		"signature=":                           "&X-Amz-Signature=«" + strings.Repeat("3f9a1c7e5d2b8f60", 4) + "»",
		"hooks.slack.com":                      "https://hooks.slack.com/services/«T01AB2CD3/B04EF5GH6/Kx8Rt3Vq0ZmL7nWbYc2HdJf9»",
		"webhookb2":                            "https://x.webhook.office.com/webhookb2/«3f9a1c7e-1@2b8f-60/IncomingWebhook/3f9a1c7e5d2b/8f60-4a1c»",
		":aa":                                  "«1234567890:AAKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1»",
		"atlasv1.":                             "«Kx8Rt3Vq0ZmL7n.atlasv1." + strings.Repeat("Wb5Yc2HdJf9Gs4Pa", 4) + "»",
		"hooks.zapier.com":                     "https://hooks.zapier.com/hooks/catch/«1234567/3kx8rt3»",
	}
}

// TestRepeatedKeywords: a text of nothing but one keyword takes no time for each of them that grows with the text, and
// hides nothing behind it. Each took minutes where a keyword was searched up to the end of its line.
func TestRepeatedKeywords(t *testing.T) {
	const size = 1 << 18
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
			if out, found := New(testKey(), nil).Text(in); len(found) != 1 || restore(out, found) != in ||
				strings.Contains(out, key[len(key)-9:]) {
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

// TestRandomKey: at the borders of the rule for keys without the digits of a random text.
func TestRandomKey(t *testing.T) {
	for s, want := range map[string]bool{
		"abcdefgh12":           true,  // two digits
		"abcdefghi1":           false, // one
		"abcdefgh1-2":          false, // a sign that no key has
		"ABCDEfghijklmnopqrst": true,  // a quarter of 20 in capitals
		"ABCDefghijklmnopqrst": false, // less
		"abcdeFGHIJKLMNOPQRST": true,
		"abcdEFGHIJKLMNOPQRST": false,
		"ABCDefghijklmnop":     true, // as short as it may be
		"ABCDefghijklmno":      false,
		"abcd=efgh=12":         true, // padding
	} {
		if got := randomKey(s); got != want {
			t.Errorf("randomKey(%q) = %v", s, got)
		}
	}
}
