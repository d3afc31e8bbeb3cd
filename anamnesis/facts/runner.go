package facts

import (
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

var (
	runners = shell.Set(`pytest py.test tox nox nosetests nose2 ctest phpunit pest rspec jest vitest mocha ava gotestsum
		ginkgo behave cucumber busted bats`)
	modules  = shell.Set("pytest unittest nose tox nox")
	tests    = shell.Set("test check")
	builders = shell.Set(`go cargo npm yarn pnpm bun deno make just task rake dotnet sbt mix swift bazel stack cabal
		dune lein meson ninja zig composer flutter dart ant artisan`)
	// launcher matches the words by which a program of the project's environment is run.
	launcher = shell.Pattern(`^(?:npx|bunx|yarn|pnpm|bun|(?:poetry|uv|pipenv|pdm|hatch|rye) run|` +
		`(?:bundle|pnpm|yarn|npm) exec)$`)
	goals = shell.Pattern(`^:?(?:\S*:)?(?:test|verify|check|build|package|install)$`)
)

// runnerName returns the words of a command that name a test runner, without its targets; empty if it is none.
func runnerName(words []string) string {
	if len(words) == 0 || slices.ContainsFunc(words[1:], onlyAsks().MatchString) {
		return ""
	}
	name := path.Base(words[0])
	// A launcher has one word or two (npx, poetry run). What it runs is named by the same rules.
	for n := 1; n <= min(2, len(words)); n++ {
		if launcher().MatchString(strings.Join(words[:n], " ")) {
			if inner := runnerName(words[n:]); inner != "" {
				return strings.Join(words[:n], " ") + " " + inner
			}
		}
	}
	option := func(w string) bool { return strings.HasPrefix(w, "-") }
	switch {
	case runners[name]:
		return words[0]
	case python().MatchString(words[0]) || name == "php":
		return scriptRunner(words)
	case testScript(words[0]) || (name == "manage.py" || name == "setup.py") && slices.Contains(words[1:], "test"):
		return upTo(words, func(w string) bool { return w == "test" && !testScript(words[0]) })
	case name == "mvn" || name == "mvnw" || name == "gradle" || name == "gradlew":
		return upTo(words, goals().MatchString)
	case name == "node" && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--test") }):
		return "node --test"
	case name == "java" && strings.Contains(strings.Join(words, " "), "JUnit"):
		return words[0]
	case builders[name]:
		rest := slices.DeleteFunc(slices.Clone(words[1:]), option)
		if slices.ContainsFunc(rest[:min(2, len(rest))], func(w string) bool { return tests[w] }) {
			return upTo(words, func(w string) bool { return tests[w] })
		}
	}
	return ""
}

// scriptRunner names a runner that an interpreter runs.
func scriptRunner(words []string) string {
	if name := module(words); modules[name] {
		return words[0] + " -m " + name
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
	script := strings.TrimPrefix(words[at+1], "./") // without one, the interpreter itself, which names no runner
	base := path.Base(script)
	switch {
	case testScript(script):
		return words[0] + " " + script
	case (base == "manage.py" || base == "setup.py" || base == "artisan") && slices.Contains(words, "test"):
		return words[0] + " " + script + " test"
	}
	return ""
}

// testScript reports whether a path is a project's own runner of tests.
func testScript(p string) bool {
	return path.Base(p) == "runtests.py" || strings.HasSuffix("/"+p, "/bin/test")
}

// upTo returns a command's words up to the one that fits, without options that take no value.
func upTo(words []string, fits func(string) bool) string {
	end := slices.IndexFunc(words[1:], fits) + 1
	out := words[:1:1]
	for i := 1; i <= end; i++ {
		valued := i+1 < end && !strings.HasPrefix(words[i+1], "-")
		if !strings.HasPrefix(words[i], "-") || valued {
			out = append(out, words[i])
		}
	}
	if end == 0 && !testScript(words[0]) {
		return ""
	}
	return strings.Join(out, " ")
}
