package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Opaque reports whether a field that a model's provider put beside its reply is, by its name, a
// signature or encrypted: bytes that only the provider reads, and that have to go back unchanged. Patterns of secrets
// match such bytes by chance.
func Opaque(name string) bool {
	name = strings.ToLower(name)
	return name == "data" || strings.Contains(name, "signature") || strings.Contains(name, "encrypted")
}

// maxNested is the deepest nesting of JSON within JSON that is followed.
const maxNested = 4

// JSONOptions describe the strings of a JSON text.
type JSONOptions struct {
	// Keep are the keys whose strings are not examined: names and ids. They do not apply to
	// nested JSON.
	Keep []string
	// OwnKeys: the keys outside of nested JSON are the caller's own names and are not examined.
	OwnKeys bool
	// Foreign is a key whose value is another program's: neither Keep nor OwnKeys applies to it, and
	// Opaque strings in it are searched for known values only.
	Foreign string
	// Nested are the keys whose strings hold JSON themselves, if they are valid JSON; their
	// strings are redacted by their decoded values.
	Nested []string
	// Valid: the caller guarantees that the text is JSON, so that it is not checked.
	Valid bool
	// Found, if set, is called with each secret and the keys that lead to it, outermost first.
	// Elements of arrays have no key.
	Found func(path []string, f Found)
}

// JSON replaces the secrets in the strings of a JSON text, including keys, by their decoded
// values; a string is also secret if its key's name says so ("api_key": "…"). Bytes outside
// secrets stay unchanged. The error means that the text is not JSON.
func (r *Redactor) JSON(data []byte, o *JSONOptions) (out []byte, changed bool, err error) {
	o = cmp.Or(o, &JSONOptions{})
	if !o.Valid && !json.Valid(data) {
		return nil, false, fmt.Errorf("redact: not JSON: %d bytes", len(data))
	}
	w := newWalk(r, o, string(data))
	w.value()
	if r.stale() { // a learned value may occur earlier in another form
		w = newWalk(r, o, w.in)
		w.value()
	}
	for _, f := range w.found {
		o.Found(f.path, f.Found)
	}
	if w.done == 0 {
		return data, false, nil
	}
	w.out.WriteString(w.in[w.done:])
	return w.out.Bytes(), true, nil
}

// jsonWalk walks valid JSON.
type jsonWalk struct {
	r    *Redactor
	o    *JSONOptions
	in   string
	dec  *json.Decoder // of in
	at   int           // where it is
	out  bytes.Buffer
	done int // bytes of in that are in out
	path []string
	pair string // the name in {"name": "DB_PASSWORD", "value": …}, before its value
	deep int
	// foreign is how many keys of the path are JSONOptions.Foreign.
	foreign int
	// found are the secrets, for JSONOptions.Found.
	found []pathFound
}

func newWalk(r *Redactor, o *JSONOptions, in string) *jsonWalk {
	w := &jsonWalk{r: r, o: o, in: in, dec: json.NewDecoder(strings.NewReader(in))}
	w.dec.UseNumber()
	return w
}

// pathFound is a secret and the keys that lead to it.
type pathFound struct {
	path []string
	Found
}

func (w *jsonWalk) record(f Found) {
	if w.o.Found != nil {
		w.found = append(w.found, pathFound{slices.Clone(w.path), f})
	}
}

// next reads a token, which is in[from:at] then.
func (w *jsonWalk) next() (tok json.Token, from int) {
	from = w.at
	tok, _ = w.dec.Token() // of valid JSON
	w.at = int(w.dec.InputOffset())
	return tok, from + len(w.in[from:w.at]) - len(strings.TrimLeft(w.in[from:w.at], " \t\r\n,:"))
}

// value walks a value, and returns the text of a string.
func (w *jsonWalk) value() (text string) {
	tok, from := w.next()
	switch tok := tok.(type) {
	case json.Delim:
		outer := w.pair
		for w.pair = ""; w.dec.More(); {
			if tok == '{' {
				w.member()
			} else {
				w.value()
			}
		}
		w.next()
		w.pair = outer
	case string:
		return w.str(from, w.at)
	default:
		w.number(from, w.at)
	}
	return ""
}

func (w *jsonWalk) member() {
	_, from := w.next()
	key, _ := unquote(w.in[from:w.at])
	if !w.own() || !w.o.OwnKeys {
		ms, _ := w.r.find(key, false)
		w.mark(from, w.at, key, ms)
	}
	foreign := w.foreign
	if key != "" && key == w.o.Foreign {
		w.foreign++
	}
	w.path = append(w.path, key)
	text := w.value()
	if text != "" && (strings.EqualFold(key, "name") || strings.EqualFold(key, "key")) {
		w.pair = text
	}
	w.path, w.foreign = w.path[:len(w.path)-1], foreign
}

// number replaces a number that is a known value by a marker, as a string. The caller's own
// numbers are not changed.
func (w *jsonWalk) number(from, to int) {
	if to-from < MinKnownBytes || w.own() && w.o.OwnKeys {
		return
	}
	ms, _ := w.r.find(w.in[from:to], false)
	if len(ms) != 1 || ms[0].start != 0 || ms[0].end != to-from {
		return
	}
	f := Found{Marker: w.r.marker(ms[0]), Bytes: w.in[from:to]}
	w.record(f)
	w.put(from, to, `"`+f.Marker+`"`)
}

// own reports whether the walk is among the caller's own keys.
func (w *jsonWalk) own() bool { return w.deep == 0 && w.foreign == 0 }

// str redacts the string in[from:to], and returns the text that it encodes.
func (w *jsonWalk) str(from, to int) (text string) {
	text, _ = unquote(w.in[from:to])
	key := ""
	if n := len(w.path); n > 0 {
		key = w.path[n-1]
	}
	if w.own() && slices.Contains(w.o.Keep, key) {
		return text
	}
	if w.foreign > 0 && Opaque(key) {
		// The provider refuses an opaque value that was changed, so that only known secrets are looked for in it.
		w.mark(from, to, text, w.r.findKnown(text))
		return text
	}
	if slices.Contains(w.o.Nested, key) && w.deep < maxNested && json.Valid([]byte(text)) {
		in := newWalk(w.r, w.o, text)
		in.path, in.deep = slices.Clone(w.path), w.deep+1
		in.value()
		w.found = append(w.found, in.found...)
		if in.done > 0 {
			w.put(from, to, `"`+jsonEscape(in.out.String()+text[in.done:])+`"`)
		}
		return text
	}
	if w.pair != "" && strings.EqualFold(key, "value") {
		key = w.pair
	}
	w.mark(from, to, text, w.r.findNamed(key, text))
	return text
}

// mark replaces the secrets in the string in[from:to], whose decoded value is text, by markers.
func (w *jsonWalk) mark(from, to int, text string, ms []match) {
	if len(ms) == 0 {
		return
	}
	_, at := unquote(w.in[from:to])
	for _, m := range ms {
		f := Found{Marker: w.r.marker(m), Bytes: text[m.start:m.end]}
		w.record(f)
		start, end := m.start, m.end
		if at != nil {
			for end < len(text) && at[end] == at[end-1] { // within a character
				end++
			}
			start, end = at[start], at[end]
		}
		w.put(from+1+start, from+1+end, f.Marker) // a marker needs no escapes
	}
}

// findNamed returns the secrets in the value of a key, whose name may mark it as secret.
func (r *Redactor) findNamed(key, text string) []match {
	if !namesSecret(key) {
		ms, _ := r.find(text, false)
		return ms
	}
	lead := `"` + key + `":"`
	all, _ := r.find(lead+text+`"`, false)
	var ms []match
	for _, m := range all {
		m.start, m.end = max(m.start-len(lead), 0), min(m.end-len(lead), len(text))
		if m.start < m.end {
			ms = append(ms, m)
		}
	}
	return ms
}

func (w *jsonWalk) put(from, to int, text string) {
	w.out.WriteString(w.in[w.done:from])
	w.out.WriteString(text)
	w.done = to
}
