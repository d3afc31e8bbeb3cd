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

// MarshalNames encodes plain, a pointer to a struct, and adds the bytes of names that are not
// UTF-8; see "Names in JSON" in the documentation of worldstate. It does not escape <, > and &;
// the encoder of the enclosing value does.
func MarshalNames(plain any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(plain); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("}\n")) // without the brace, so that fields can follow
	var err error
	fields := reflect.ValueOf(plain).Elem()
	for i := range fields.NumField() {
		key, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		var exact any
		switch key {
		case "path", "from", "dir":
			if name := fields.Field(i).String(); !utf8.ValidString(name) {
				exact = []byte(name) // JSON holds bytes as base64
			}
		case "write", "delete", "written", "deleted":
			list := make(map[int][]byte)
			for n, name := range fields.Field(i).Interface().([]string) {
				if !utf8.ValidString(name) {
					list[n] = []byte(name)
				}
			}
			if len(list) > 0 {
				exact = list
			}
		}
		if exact != nil {
			data, merr := json.Marshal(exact)
			err, out = errors.Join(err, merr), fmt.Appendf(out, ",%q:%s", key+"_bytes", data)
		}
	}
	return append(out, '}'), err
}
