package facts

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/anamnesis/failure"
)

// call is a call of a shell that ended with an exit code.
func call(exit int, command, text string) Call {
	return Call{Output: failure.Output{Command: command, Text: text, Exit: exit, HasExit: true}}
}

// refused is a command that did not run.
func refused(command string) failure.Output {
	return failure.Output{Command: command, Text: "denied", Refused: true, Error: true}
}

// TestEnds judges commands by what happened: each line is the command, the exit code and what it printed, and
// how its commands ended. A dot is an end that says nothing.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		command string
		exit    int
		text    string
		want    string
	}{
		{"bin/test sympy/core", 1, "tests finished: 10 passed, 1 failed, in 0.5 seconds", "bin/test:r"},
		{"cd tests && ./runtests.py admin_views | tail -5", 0, "Ran 12 tests in 0.3s\n\nFAILED (failures=1)", "cd:o ./runtests.py:r"},
		{"python -m unittest x", 0, "Ran 0 tests in 0.000s\n\nOK", "python:."},
		{"python -m unittest x", 1, "ERROR: x (unittest.loader._FailedTest)\nImportError\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)", "python:f"},
		{"pytest -q || true", 0, "bash: line 1: pytest: command not found", "pytest:m"},
		{"pytest -q", 127, "(eval):1: command not found: pytest", "pytest:m"},
		{"pytest -q", 127, "zsh: command not found: pytest", "pytest:m"},
		{"pytest -q", 127, "fish: Unknown command: pytest", "pytest:m"},
		{"pytest -q", 127, "zsh: command not found: pytest-helper", "pytest:f"},
		{"sudo pytest", 1, "sudo: pytest: command not found", "pytest:m"},
		{"/usr/bin/python3 -m pytest tests", 1, "/usr/bin/python3: No module named pytest", "/usr/bin/python3:m"},
		{"pytest tests", 2, "ERROR tests/a.py\n!!! Interrupted: 1 error during collection !!!\n1 error in 0.10s", "pytest:f"},
		{"timeout 60 python a.py", 124, "", "python:t"},
		{"python a.py 2>&1 | tail -3", 0, "done", "python:."},
		{"pytest 2>&1 | tail", 0, "no tests ran in 0.01s", "pytest:."},
		{"make test; echo $?", 0, "2", "make:."},
		{"npm ci && npm test", 0, "Tests:       2 passed, 2 total", "npm:o npm:r"},
		{"npx jest", 1, "Tests:       1 failed, 2 passed, 3 total", "npx:r"},
		{"bundle exec rspec", 1, "3 examples, 1 failure", "bundle:r"},
		{"mvn -q test", 1, "The JAVA_HOME environment variable is not defined correctly", "mvn:f"},
		{"cargo test", 0, "test result: ok. 0 passed; 0 failed; 0 ignored", "cargo:."},
		{"pytest a && false", 1, "1 passed in 0.1s", "pytest:r false:f"},
		{"bash -c 'pytest a; exit 3'", 3, "bash: pytest: command not found", "pytest:m exit:."},
		{"if which pytest; then pytest; fi", 0, "", "which:. pytest:."},
		{"cat > a.py <<'EOF'\npytest: command not found\nEOF\npython a.py", 0, "fine", "cat:o python:o"},
		{"python a.py", 0, "Traceback (most recent call last):\nValueError: x", "python:."},
		{"grep -r x src", 1, "", "grep:."},
		{"cat gone", 1, "cat: gone: No such file or directory", "cat:f"},
		{"env", 0, "A=b", "env:o"},
		{"ls | xargs jq .", 0, "{}", "ls:. xargs:o"},
		{"echo done", 0, "done", "echo:o"},
		{"bash -c 'make all' | tail -1", 0, "fine", "make:."},
		{"bash -c 'tox'; ls", 0, "fine", "tox:. ls:o"},
		{"pytest -q", 1, "bash: my-pytest: command not found", "pytest:f"},
		{"ls src", 2, "ls: No such file or directory", "ls:f"},
		{"bin/run.sh", 127, "bash: bin/run.sh: No such file or directory", "bin/run.sh:m"},
		{"bin/run.sh", 1, "bin/run.sh: line 3: oops", "bin/run.sh:f"},
		{"python -m", 2, "Argument expected for -m\nNo module named x", "python:f"},
	} {
		c := call(tt.exit, tt.command, tt.text)
		var got []string
		for _, p := range commands(&c) {
			end := p.end
			if end == unclear {
				end = '.'
			}
			got = append(got, fmt.Sprintf("%s:%c", p.words[0], end))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q printed %q\ngot  %s\nwant %s", tt.command, tt.text, s, tt.want)
		}
	}
	// Without an exit code the output decides, and a call that was stopped says nothing.
	const bad = "Error: no such thing"
	for _, tt := range []struct {
		command, text string
		failed        bool
		want          rune
	}{
		{"./gen.sh", "EXECUTION TIMED OUT", false, timeout},
		{"./gen.sh", "[interrupted: the command and everything it had started were ended]", false, unclear},
		{"./gen.sh", "fine", false, ok}, {"./gen.sh", bad, false, failed}, {"./gen.sh", "fine", true, failed},
		{"cat build.log", "fine", false, ok}, {"cat build.log", bad, false, unclear},
		{"cat build.log", bad, true, failed},
	} {
		c := Call{Output: failure.Output{Command: tt.command, Text: tt.text, Error: tt.failed}}
		if got := commands(&c)[0].end; got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.command, tt.text, got, tt.want)
		}
	}
}

func TestRunnerName(t *testing.T) {
	for line, want := range map[string]string{
		"pytest -q tests/test_a.py":      "pytest",
		"pytest --version":               "",
		"python3 -W error -m pytest a":   "python3 -m pytest",
		"./tests/runtests.py admin":      "./tests/runtests.py",
		"python tests/runtests.py admin": "python tests/runtests.py",
		"python manage.py test app":      "python manage.py test",
		"python manage.py migrate":       "",
		"./manage.py test app":           "./manage.py test",
		"./setup.py test":                "./setup.py test",
		"./deploy.py test":               "",
		"python setup.py test":           "python setup.py test",
		"php artisan test":               "php artisan test",
		"python deploy.py test":          "",
		"mvn -q test -Dtest=A":           "mvn test",
		"./gradlew :core:test --tests A": "./gradlew :core:test",
		"mvn compile":                    "",
		"npm run build":                  "",
		"npm run test":                   "npm run test",
		"poetry run pytest a":            "poetry run pytest",
		"yarn jest a":                    "yarn jest",
		"make -C sub test":               "make -C sub test",
		"go test ./...":                  "go test",
		"go build ./...":                 "",
		"node --test":                    "node --test",
		"python reproduce.py":            "",
		"sympy/bin/test x":               "sympy/bin/test",
		"java -jar junit.jar":            "",
		"cargo test -p x":                "cargo test",
		"./manage.py -v 2 test app":      "./manage.py -v 2 test",
		"sympy/bin/test test":            "sympy/bin/test",
		"./deploy --test":                "",
		"node a.js":                      "",
		"java org.junit.JUnitCore A":     "java",
		"echo JUnit":                     "",
		"python -i":                      "",
		"python -m":                      "",
		"php -r test":                    "",
	} {
		if got := runnerName(strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
