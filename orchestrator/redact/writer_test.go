package redact

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWriterGivesWhatTextGives: however a text is cut into pieces.
func TestWriterGivesWhatTextGives(t *testing.T) {
	r := New(testKey(),
		[]Secret{{"known", "known value 42"}, {"long", "a b c d e f g h i"}, {"lines", "line one 1\nline two 2"}})
	rapid.Check(t, func(t *rapid.T) {
		in := texts().Draw(t, "text")
		want, _ := r.Text(in)
		var out bytes.Buffer
		w := r.NewWriter(&out)
		for rest := in; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 60)).Draw(t, "piece")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("in %q\n got %q\nwant %q", in, out.String(), want)
		}
	})
}

// TestWriterNow: a user who watches sees an incomplete line, but no secret in it.
func TestWriterNow(t *testing.T) {
	r := New(testKey(), []Secret{{"known", "known value 42"}})
	secret, _ := r.Text("known value 42")
	for _, c := range []struct{ pieces, want []string }{
		{[]string{"....", "..", " ok", "\n"}, []string{"....", "......", "...... ", "...... ok\n"}},
		{[]string{"\rdone 1", "\rdone 2", "\n"}, []string{"\rdone ", "\rdone 1\rdone ", "\rdone 1\rdone 2\n"}},
		{[]string{"a known ", "value", " 42", " b\n"}, []string{"a ", "a ", "a ", "a " + secret + " b\n"}},
		{[]string{"known value 42 is", " it\n"}, []string{"", secret + " is it\n"}},
		{[]string{"known value 42\rnext", "\n"}, []string{secret + "\r", secret + "\rnext\n"}},
		{[]string{"go on? [y/N] ", "x y\n"}, []string{"go on? [y/N] ", "go on? [y/N] x y\n"}},
	} {
		var out bytes.Buffer
		w := r.NewWriter(&out)
		for i, p := range c.pieces {
			_, err := w.Write([]byte(p))
			if now := w.Now(); err != nil || now != nil || out.String() != c.want[i] {
				t.Errorf("%q: after piece %d %q, want %q; %v %v", c.pieces, i, out.String(), c.want[i], err, now)
			}
		}
	}
}

func TestWriterHoldsLittle(t *testing.T) {
	var out bytes.Buffer
	w := New(testKey(), nil).NewWriter(&out)
	if _, err := w.Write([]byte("one two three four five six seven eight")); err != nil || out.String() != "one " {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
	long := strings.Repeat("x", MaxHeldBytes+10)
	if _, err := w.Write([]byte(long)); err != nil || len(w.held) > MaxHeldBytes {
		t.Errorf("held %d bytes, %v", len(w.held), err)
	}
	// A key longer than what may be held is redacted all the same, line by line.
	out.Reset()
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("Ab3/", 16)+"\n", 1000)
	for i := 0; i < len(key); i += 65 {
		if _, err := w.Write([]byte(key[i:min(i+65, len(key))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || strings.Contains(out.String(), "Ab3/Ab3/Ab3/Ab3/Ab3/") {
		t.Errorf("a long key is left, %v", err)
	}
}

// TestWriterWithinAWord: a word that is longer than what may be held is written
// in parts, and a secret in it is in one of them, at any place.
func TestWriterWithinAWord(t *testing.T) {
	known := strings.Repeat("Kn0wn-", 20)
	r := New(testKey(), []Secret{{"known", known}})
	for _, secret := range []string{known, "&token=9f8e7d6c5b4a"} {
		for shift := -len(secret); shift <= len(secret); shift += 13 {
			for _, at := range []int{MaxHeldBytes / 2, MaxHeldBytes} {
				var out bytes.Buffer
				w := r.NewWriter(&out)
				text := strings.Repeat("x/", (at+shift)/2) + secret + "&" + strings.Repeat("y/", MaxHeldBytes)
				for piece := range slices.Chunk([]byte(text), 1000) {
					if _, err := w.Write(piece); err != nil {
						t.Fatal(err)
					}
				}
				want, _ := r.Text(text)
				if err := w.Close(); err != nil || out.String() != want {
					t.Fatalf("at %d%+d: %d bytes, want %d; %v", at, shift, out.Len(), len(want), err)
				}
			}
		}
	}
}

// TestWriterHoldsAnOpenQuote: a value of many words has not ended before its
// quote.
func TestWriterHoldsAnOpenQuote(t *testing.T) {
	var out bytes.Buffer
	w := New(testKey(), nil).NewWriter(&out)
	for word := range strings.FieldsSeq("x DB_PASSWORD='a b c d e f g h' and so on") {
		if _, err := w.Write([]byte(word + " ")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || !strings.HasPrefix(out.String(), "x DB_PASSWORD='[redacted:password:") ||
		!strings.HasSuffix(out.String(), "]' and so on ") {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

// TestWriterLines: whole lines are given out when they are asked for, and a key
// continues behind them.
func TestWriterLines(t *testing.T) {
	var out bytes.Buffer
	var found []string
	w := New(testKey(), []Secret{{"known", "known value 42"}}).NewWriter(&out)
	w.Found = func(f Found) { found = append(found, f.Bytes) }
	lines := strings.SplitAfter("a known value 42 b\n"+pem()+"c\nknown val", "\n")
	for _, line := range lines {
		if _, err := w.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if err := w.Lines(); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Contains(got, "b3/x+9Z") || strings.Contains(got, "Qq==") ||
		strings.Contains(got, "known value") || !strings.HasSuffix(got, "KEY-----\nc\n") {
		t.Errorf("lines %q", got)
	}
	if len(found) != 6 || found[0] != "known value 42" || found[5] != "Qq==" {
		t.Errorf("found %q", found)
	}
	if err := w.Close(); err != nil || !strings.HasSuffix(out.String(), "\nknown val") {
		t.Errorf("the end: %q, %v", out.String(), err)
	}
}

// TestWriterHoldsWhatMayBeAKey: a line behind a key's beginning is judged when
// it is whole. Words there are no key, however they come.
func TestWriterHoldsWhatMayBeAKey(t *testing.T) {
	r := New(testKey(), nil)
	text := "-----BEGIN PRIVATE KEY-----\nis how one begins, and a key of words is none at all"
	var out bytes.Buffer
	w := r.NewWriter(&out)
	for _, word := range strings.SplitAfter(text, " ") {
		if _, err := w.Write([]byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || out.String() != text {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}
