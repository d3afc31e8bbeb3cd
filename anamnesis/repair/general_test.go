package repair

import (
	"testing"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
)

func TestGeneral(t *testing.T) {
	const lacks = "ModuleNotFoundError: No module named 'pytest'"
	run := func(line, command, works string, environment ...string) Pair {
		return Pair{Failure: failure.Failure{Line: line}, Command: command, Works: works, Environment: environment}
	}
	changed := run(lacks, "python3 -m pytest", "bin/test")
	changed.Changes = []edit.Change{{Path: "a.py", Added: []string{"x = 1"}}}
	for name, tt := range map[string]struct {
		pair Pair
		want bool
	}{
		"another program":               {run(lacks, "python3 -m pytest a.py", "bin/test a.py"), true},
		"another interpreter":           {run(lacks, "/usr/bin/python3 -m pytest", "python -m pytest", "pip install pytest"), true},
		"a program in the command line": {run("bash: line 1: ed: command not found", "ed a.py", "python3 -c 'print(1)'"), false},
		"another option":                {run("grep: Unmatched [", "grep -n '[' a.py", "grep -F '[' a.py"), false},
		"a module of the program":       {run("ModuleNotFoundError: No module named 'forms'", "./tests/run.py forms", "./tests/run.py forms_tests"), false},
		"a change":                      {changed, false},
		"the missing module installed":  {run(lacks, "python3 a.py", "python3 a.py", "pip install pytest"), false},
		"other arguments":               {run("ls: cannot access 'a': No such file or directory", "ls a", "ls b"), false},
		"a folder for the file":         {run("touch: cannot touch 'a/b': No such file or directory", "touch a/b", "touch a/b", "mkdir a"), false},
	} {
		if got := tt.pair.General(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
