//go:build unix

package gitfmt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// See "Names in JSON" in the package's documentation.

const bytesSuffix = "_bytes"

// eachName calls f for the fields of a struct that are names or lists of names.
func eachName(plain reflect.Value, f func(key string, v reflect.Value)) {
	for i := range plain.NumField() {
		switch key, _, _ := strings.Cut(plain.Type().Field(i).Tag.Get("json"), ","); key {
		case "path", "from", "dir", "write", "delete", "written", "deleted":
			f(key, plain.Field(i))
		}
	}
}

// MarshalNames encodes plain, a pointer to a struct, and adds the names that are not
// UTF-8. It leaves <, > and & to the encoder of the whole.
func MarshalNames(plain any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	var err error
	add := func(key string, exact any) {
		data, merr := json.Marshal(exact)
		err, out = errors.Join(err, merr), fmt.Appendf(out, ",%q:%s", key+bytesSuffix, data)
	}
	eachName(reflect.ValueOf(plain).Elem(), func(key string, v reflect.Value) {
		if v.Kind() == reflect.String {
			if !utf8.ValidString(v.String()) {
				add(key, []byte(v.String()))
			}
			return
		}
		list := make(map[int][]byte)
		for i := range v.Len() {
			if name := v.Index(i).String(); !utf8.ValidString(name) {
				list[i] = []byte(name)
			}
		}
		if len(list) > 0 {
			add(key, list)
		}
	})
	return append(out, '}'), err
}

// UnmarshalNames reads what marshal writes.
func UnmarshalNames(data []byte, plain any) error {
	err := json.Unmarshal(data, plain)
	var all map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	eachName(reflect.ValueOf(plain).Elem(), func(key string, v reflect.Value) {
		raw, ok := all[key+bytesSuffix]
		if !ok || err != nil {
			return
		}
		if v.Kind() == reflect.String {
			var name []byte
			err = json.Unmarshal(raw, &name)
			v.SetString(string(name))
			return
		}
		var list map[int][]byte
		err = json.Unmarshal(raw, &list)
		for i, name := range list {
			if i >= 0 && i < v.Len() {
				v.Index(i).SetString(string(name))
			}
		}
	})
	return err
}
