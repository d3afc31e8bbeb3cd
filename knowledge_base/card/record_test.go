package card

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"

	"anamnesis/knowledge_base/sealed"
)

// recorded returns a card as it is kept, and as that is read again.
func recorded(t testing.TB, c *Card) ([]byte, *Card) {
	t.Helper()
	w := new(sealed.Writer)
	c.WriteRecord(w)
	data := w.Unsealed()
	r := sealed.NewReader(data)
	back := ReadRecord(r)
	if !r.OK() || r.Left() != 0 {
		t.Fatalf("ok %v, %d bytes left", r.OK(), r.Left())
	}
	return data, back
}

func recordTexts() []string {
	return []string{
		string(fullCard().Markdown()),
		"---\ntype: knowledge_card\ntopic: \"with \\u00e9scapes\"\nsource_task: t\n---\n- **Issue**: by hand\n",
		"---\r\ntype: knowledge_card\r\ntopic: t\r\nsource_task: t\r\ncreated: 1969-12-31T23:59:59.5Z\r\ntags: []\r\n---\r\n\r\n- **Issue**: a\r\n  b\r\n",
	}
}

func TestRecordReadsBack(t *testing.T) {
	for _, text := range recordTexts() {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, back := recorded(t, c)
		if !reflect.DeepEqual(back, c) {
			t.Errorf("kept as\n%#v\nread from its text as\n%#v", back, c)
		}
		if string(back.Markdown()) != text {
			t.Errorf("its text is %q", back.Markdown())
		}
		packed := c.Pack()
		if back, ok := packed.Card(); !ok || !reflect.DeepEqual(back, c) {
			t.Errorf("packed as\n%#v, %t\nread from its text as\n%#v", back, ok, c)
		}
		if back, ok := packed[:len(packed)-1].Card(); ok {
			t.Errorf("of a part of it comes %#v", back)
		}
	}
}

// Records written before a change of their form, or of what Parse makes of a
// text, must not be read after it: raise RecordVersion with the sum.
func TestRecordVersion(t *testing.T) {
	h := sha256.New()
	for _, text := range recordTexts() {
		c, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := recorded(t, c)
		h.Write(data)
		h.Write(c.Pack())
	}
	const want = "3 4d637d2a6d68f452"
	if got := fmt.Sprintf("%d %x", RecordVersion, h.Sum(nil)[:8]); got != want {
		t.Errorf("version and sum are %q, were %q: raise RecordVersion", got, want)
	}
}

// Whatever the bytes, reading a record ends with a card or with a reader that
// is not OK.
func FuzzReadRecord(f *testing.F) {
	for _, text := range recordTexts() {
		c, err := Parse([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		data, _ := recorded(f, c)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := sealed.NewReader(data)
		c := ReadRecord(r)
		if n := len(data); r.OK() && len(c.origin.src) > n {
			t.Errorf("a text of %d bytes from %d", len(c.origin.src), n)
		}
	})
}
