// Package userfile reads the YAML and JSON files that users write, and says on one
// line what is wrong with one: file, line, cause, remedy, without the program's
// types.
package userfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Load reads YAML into a value. A key that the value has no field for, and one that
// is given twice, are errors; data without a document leaves the value as it is.
func Load(file string, data []byte, into any, remedy string) error {
	err := yaml.Load(data, into, yaml.WithKnownFields(), yaml.WithUniqueKeys())
	if err == nil || Empty(err) {
		return nil
	}
	line, cause := YAML(err)
	return fault(file, line, cause, remedy)
}

// Empty reports whether the YAML library found no document.
func Empty(err error) bool {
	return errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "no documents")
}

// JSON says what is wrong with data, which json.Unmarshal refused. part is what of
// data was given to it; nil: all.
func JSON(file string, data, part []byte, err error, remedy string) error {
	at, cause := jsonCause(err)
	at = min(at+int64(max(0, bytes.Index(data, part))), int64(len(data)))
	return fault(file, 1+bytes.Count(data[:at], []byte("\n")), cause, remedy)
}

// jsonCause returns the place in bytes, and the cause of an error of json.Unmarshal.
func jsonCause(err error) (at int64, cause string) {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		if cause = kind.Value + " where " + wanted(kind.Type.Kind().String()) + " is wanted"; kind.Field != "" {
			cause = kind.Field + ": " + cause
		}
		return kind.Offset, cause
	case errors.As(err, &syntax):
		return syntax.Offset, "not JSON: " + oneLine(err.Error())
	}
	return 0, oneLine(strings.TrimPrefix(err.Error(), "json: "))
}

// Error is a fault in a file that a user writes.
type Error string

func (e Error) Error() string { return string(e) }

func fault(file string, line int, cause, remedy string) error {
	return Error(fmt.Sprintf("%s:%d: %s; %s", file, line, cause, remedy))
}

// How the YAML library puts what a value has no place for.
var (
	unknownKey = regexp.MustCompile(`^field (.*) not found in type `)
	secondKey  = regexp.MustCompile(`^mapping key "(.*)" already defined at line `)
	wrongKind  = regexp.MustCompile("^cannot construct !*(\\S+?)(?: `(.*)`)? into (.+)$")
)

// YAML returns the line, from 1, and the cause of an error of the YAML library, of
// several the first.
func YAML(err error) (line int, cause string) {
	var first *yaml.LoadError
	if !errors.As(err, &first) {
		return 1, oneLine(err.Error())
	}
	line, cause = max(1, first.Mark.Line), oneLine(strings.TrimPrefix(first.Message, "yaml: "))
	if m := unknownKey.FindStringSubmatch(cause); m != nil {
		return line, fmt.Sprintf("unknown key %q", m[1])
	}
	if m := secondKey.FindStringSubmatch(cause); m != nil {
		return line, fmt.Sprintf("key %q is given twice", m[1])
	}
	if m := wrongKind.FindStringSubmatch(cause); m != nil {
		names := map[string]string{"map": "keys with values", "seq": "a list", "null": "nothing"}
		found := cmp.Or(names[m[1]], fmt.Sprintf("%q", m[2]))
		return line, found + " where " + wanted(m[3]) + " is wanted"
	}
	if own := first.Unwrap(); own != nil { // of an UnmarshalYAML
		return line, oneLine(strings.TrimPrefix(own.Error(), "yaml: "))
	}
	return line, "not YAML: " + cause
}

// wanted describes a Go type, or its kind, to a user.
func wanted(name string) string {
	switch {
	case strings.HasPrefix(name, "[]"), name == "slice":
		return "a list"
	case strings.HasPrefix(name, "map"), strings.HasPrefix(name, "struct"), strings.Contains(name, "."):
		return "a group of keys with values"
	case strings.Contains(name, "int"):
		return "a whole number"
	case strings.Contains(name, "float"):
		return "a number"
	case strings.HasSuffix(name, "bool"):
		return "true or false"
	case name == "string":
		return "a text"
	}
	return "another kind of value"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
