package agent

import (
	"errors"
	"strings"
	"testing"
)

// FuzzDecode: with anything in a file, the answer is a layer or one line with
// the file's name; what was read can be resolved and hashed.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "---\n", "name: a\nextends: default\n", "tools: [ReadFile, 'mcp__*']\nexclude_tools: ['*']\n",
		"system_prompt_args: {A: '${B}', C: 1}\n", "subagents: {a: b, c: {path: ./d.yaml, description: e}}\n",
		"rules: {allow: ['Bash(a *)'], ask: [x], deny: []}\nguarded: ['Bash:x*']\n", "read_only: true\nsandbox: off\napproval: ask\n",
		"a: &x [*x]\n", "<<: {name: b}\n", "? [a]\n: b\n", "name: !!binary aGk=\n", "read_only: !!bool [x]\n", "\xff", "name: \"a\\nb\"\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decoder{"f.yaml", known}.decode(data)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), "f.yaml:") ||
				strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		s := l.over(Spec{Tools: known, Args: map[string]string{"A": "b"}})
		if err := hash(&s); err != nil || len(s.Hash) != 64 {
			t.Fatalf("hash %q, %v", s.Hash, err)
		}
		Offers(&s, "ReadFile", true)
	})
}

// FuzzRender: a prompt that passes the check has nothing left to fill in, but
// what it writes with two dollars.
func FuzzRender(f *testing.F) {
	f.Add("a ${DATE} $${X} ${A}", "x")
	f.Add("${", "${A}")
	f.Add("$$${A}${a}", "")
	f.Fuzz(func(t *testing.T, prompt, value string) {
		args := map[string]string{"A": value}
		err := checkPrompt("p.md", prompt, args)
		got := Render(&Spec{Prompt: prompt, Args: args}, Vars{})
		if err == nil && !strings.Contains(prompt, "$${") && !strings.Contains(value, "${") &&
			placeholder.MatchString(got) {
			t.Errorf("%q became %q", prompt, got)
		}
	})
}
