package userfile

import (
	"encoding/json"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v4"
)

type settings struct {
	Name  string         `yaml:"name" json:"name"`
	Count int            `yaml:"count" json:"count"`
	List  []string       `yaml:"list" json:"list"`
	Map   map[string]int `yaml:"map" json:"map"`
	Odd   odd            `yaml:"odd" json:"odd"`
}

// odd is a value that its own type reads.
type odd int

func (o *odd) UnmarshalYAML(n *yaml.Node) error {
	if n.Value != "1" {
		return fmt.Errorf("yaml: %s is even", n.Value)
	}
	*o = 1
	return nil
}

// What is wrong with a user's file is one line without the program's types.
func TestLoad(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n", ""},
		{"name: x\ncount: 3\n", ""},
		{"name: x\nnome: y\n", `f.yaml:2: unknown key "nome"; look it up`},
		{"name: x\nname: y\n", `f.yaml:2: key "name" is given twice; look it up`},
		{"count: many\n", `f.yaml:1: "many" where a whole number is wanted; look it up`},
		{"list: {a: 1}\n", "f.yaml:1: keys with values where a list is wanted; look it up"},
		{"name: [a]\n", "f.yaml:1: a list where a text is wanted; look it up"},
		{"odd: 1\n", ""},
		{"name: x\nodd: 2\n", "f.yaml:2: 2 is even; look it up"},
		{"map: 3\n", `f.yaml:1: "3" where a group of keys with values is wanted; look it up`},
	} {
		got := ""
		if err := Load("f.yaml", []byte(tt.text), new(settings), "look it up"); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"{\n\"count\": \"many\"}", "f.json:2: count: string where a whole number is wanted; look it up"},
		{"{\n\"list\": 3}", "f.json:2: list: number where a list is wanted; look it up"},
		{"{\n\n,}", "f.json:3: not JSON: invalid character ',' looking for beginning of object key string; look it up"},
	} {
		err := json.Unmarshal([]byte(tt.text), new(settings))
		if err == nil {
			t.Fatalf("%q was read", tt.text)
		}
		if got := JSON("f.json", []byte(tt.text), nil, err, "look it up").Error(); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
