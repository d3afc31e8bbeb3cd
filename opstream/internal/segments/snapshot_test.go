package segments

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

// seal adds the checksum of a snapshot's file, so that what is wrong in it is not found by the checksum.
func seal(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return append([]byte(text), sum[:]...)
}

// TestDecodeSnapshot: a snapshot is its head, as many sizes as the head counts, and the fold, and nothing else.
func TestDecodeSnapshot(t *testing.T) {
	head := func(v int, seq, segs string, index, fold int) string {
		return fmt.Sprintf(`{"v":%d,"fold":"f","seq":%s,"hash":"%032x","segments":[%s],"index_bytes":%d,"fold_bytes":%d}`+"\n", v, seq, 7, segs, index, fold)
	}
	for name, tt := range map[string]struct {
		text string
		why  string // "" if it is right
	}{
		"right":                          {head(3, "3", "1,3", 3, 2) + "\x05\x06\x07{}", ""},
		"no fold":                        {head(3, "1", "1", 1, 0) + "\x05", ""},
		"a segment that has not begun":   {head(3, "2", "1,3", 2, 0) + "\x05\x06", "form"},
		"another version":                {head(2, "1", "1", 1, 0) + "\x05", "version 2"},
		"no head":                        {"{\n", "read the head"},
		"no record":                      {head(3, "0", "1", 1, 0) + "\x05", "form"},
		"more records than bytes":        {head(3, "2", "1", 1, 0) + "\x05", "form"},
		"no segment":                     {head(3, "1", "", 1, 0) + "\x05", "form"},
		"not the first segment":          {head(3, "2", "2", 2, 0) + "\x05\x06", "form"},
		"segments out of order":          {head(3, "3", "1,3,2", 3, 0) + "\x05\x06\x07", "form"},
		"a segment twice":                {head(3, "3", "1,2,2", 3, 0) + "\x05\x06\x07", "form"},
		"fewer bytes than the head says": {head(3, "1", "1", 1, 1) + "\x05", "form"},
		"more bytes than the head says":  {head(3, "1", "1", 1, 0) + "\x05\x06", "form"},
		"a negative size of the fold":    {head(3, "1", "1", 2, -1) + "\x05", "form"},
		"a hash that is too short":       {strings.Replace(head(3, "1", "1", 1, 0), "00", "", 1) + "\x05", "form"},
		"a record of no bytes":           {head(3, "2", "1", 2, 0) + "\x05\x00", "wrong for record 2"},
		"a size cut short":               {head(3, "2", "1", 2, 0) + "\x05\x80", "wrong for record 2"},
		"a size above the longest line":  {head(3, "1", "1", 5, 0) + "\xff\xff\xff\xff\x0f", "wrong for record 1"},
		"bytes behind the index":         {head(3, "1", "1", 2, 0) + "\x05\x06", "behind the index"},
	} {
		c, err := DecodeSnapshot(seal(tt.text))
		switch {
		case tt.why != "":
			if err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%s: %v, want %q", name, err, tt.why)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if again, err := EncodeSnapshot(c); err != nil || string(again) != string(seal(tt.text)) {
				t.Errorf("%s: encoded again it is %q, %v", name, again, err)
			}
		}
	}
	c, err := DecodeSnapshot(seal(head(3, "3", "1,3", 3, 2) + "\x05\x06\x07{}"))
	if err != nil || c.Idx.Last() != 3 || c.Idx.At(2) != (wire.Entry{Off: 6, Size: 6}) ||
		c.Idx.At(3) != (wire.Entry{Off: 0, Size: 7}) ||
		c.Cur.Off != 8 || string(c.Fold) != "{}" || fmt.Sprint(c.ends) != "[13 8]" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"", strings.Repeat("0", sha256.Size-1)} {
		if _, err := DecodeSnapshot([]byte(text)); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
	if _, err := DecodeSnapshot(append(seal(""), 'x')); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another checksum: %v", err)
	}
}

// TestEncodeBody: what is no object is refused, and what one line cannot hold as it is becomes a blob.
func TestEncodeBody(t *testing.T) {
	object := func(n int) []byte { return []byte(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`) }
	for name, tt := range map[string]struct {
		body []byte
		want string // the compact form, if it is short
		mime string
		err  error
	}{
		"none":                      {nil, "{}", "", nil},
		"spaces":                    {[]byte("{ \"a\" : 1 }"), `{"a":1}`, "", nil},
		"empty":                     {[]byte{}, "", "", wire.ErrInvalid},
		"cut":                       {[]byte("{"), "", "", wire.ErrInvalid},
		"two values":                {[]byte("{}{}"), "", "", wire.ErrInvalid},
		"a list":                    {[]byte("[]"), "", "", wire.ErrInvalid},
		"not UTF-8":                 {[]byte("{\"a\":\"\xff\"}"), "{\"a\":\"\xff\"}", mimeBytes, nil},
		"the reference of a blob":   {[]byte(`{"$blob":1}`), `{"$blob":1}`, mimeJSON, nil},
		"as long as a line holds":   {object(wire.MaxInlineBytes), "", "", nil},
		"longer than a line holds":  {object(wire.MaxInlineBytes + 1), "", mimeJSON, nil},
		"longer than a body may be": {make([]byte, wire.MaxBodyBytes+1), "", "", wire.ErrTooLarge},
	} {
		got, mime, err := EncodeBody(tt.body)
		if !errors.Is(err, tt.err) || mime != tt.mime || tt.want != "" && string(got) != tt.want {
			t.Errorf("%s: %.40q, %q, %v; want %q, %q, %v", name, got, mime, err, tt.want, tt.mime, tt.err)
		}
	}
}

// TestParseBlobRef: only a body in the form that Put writes names a blob.
func TestParseBlobRef(t *testing.T) {
	sum := strings.Repeat("ab", sha256.Size)
	ref := func(sum string, n int64) string {
		return fmt.Sprintf(`{"$blob":{"sha256":"%s","bytes":%d,"mime":"m"}}`, sum, n)
	}
	for body, want := range map[string]struct{ blob, malformed bool }{
		`{"a":1}`: {}, `{"$blob":`: {true, true}, ref(sum, 0): {true, false},
		ref(sum, wire.MaxBodyBytes): {true, false},
		ref(sum, -1):                {true, true}, ref(sum, wire.MaxBodyBytes+1): {true, true},
		ref(sum[1:], 1): {true, true}, ref(sum+"a", 1): {true, true}, ref(strings.ToUpper(sum), 1): {true, true},
	} {
		if got, blob, err := ParseBlobRef([]byte(body)); blob != want.blob || (err != nil) != want.malformed ||
			blob && err == nil && got.Blob.SHA256 != sum {
			t.Errorf("%s: %+v, %v, %v", body, got, blob, err)
		}
	}
}

// TestResolveBody: a blob is read back as it was put, and one that is not is damage of its record.
func TestResolveBody(t *testing.T) {
	data := []byte(`{"a":"b"}`)
	for name, tt := range map[string]struct {
		damage func(path string) error
		why    string // "" if it can be read
	}{
		"right":       {func(string) error { return nil }, ""},
		"missing":     {os.Remove, "missing"},
		"cut":         {func(path string) error { return os.Truncate(path, 3) }, "has 3 bytes"},
		"overwritten": {func(path string) error { return os.WriteFile(path, bytes.ToUpper(data), 0o600) }, "hash"},
	} {
		dir := t.TempDir()
		b := Blobs{FS: durable.OS{}, Dir: dir}
		ref, err := b.Put(data, mimeJSON)
		if err != nil {
			t.Fatal(err)
		}
		parsed, _, err := ParseBlobRef(ref)
		if err == nil {
			err = tt.damage(BlobPath(dir, parsed.Blob.SHA256))
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := ResolveBody(durable.OS{}, dir, 4, ref)
		var c *wire.CorruptError
		switch {
		case tt.why == "" && (err != nil || !bytes.Equal(got, data)):
			t.Errorf("%s: %s, %v", name, got, err)
		case tt.why != "" && (!errors.As(err, &c) || c.Seq != 4 || !strings.Contains(c.Why, tt.why)):
			t.Errorf("%s: %v, want %q", name, err, tt.why)
		}
		if again, err := b.Put(data, mimeJSON); err != nil || string(again) != string(ref) {
			t.Errorf("%s: put again: %s, %v", name, again, err)
		}
		if got, err := ResolveBody(durable.OS{}, dir, 4, ref); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: after it was put again: %s, %v", name, got, err)
		}
	}
	if got, err := ResolveBody(durable.OS{}, t.TempDir(), 4, data); err != nil || !bytes.Equal(got, data) {
		t.Errorf("an inline body: %s, %v", got, err)
	}
}
