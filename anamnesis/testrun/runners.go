package testrun

import (
	"regexp"
	"sync"

	"anamnesis/anamnesis/shell"
)

// runner is how one test runner prints. A line is tried against the fields in the order fails, none, summary, ok, broke.
type runner struct {
	name     string
	command  *regexp.Regexp   // a command that names it
	fails    []*regexp.Regexp // a failed test; the last group is its name
	none     *regexp.Regexp   // no test ran
	summary  *regexp.Regexp   // a line with counts, read by the next four
	passes   *regexp.Regexp   // nil: total less failures and skips
	failures *regexp.Regexp
	total    *regexp.Regexp
	skips    *regexp.Regexp
	ok       *regexp.Regexp // tests passed, without a count
	broke    *regexp.Regexp // the run failed, without a name
}

var ansiPattern = shell.Pattern(`\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07`)

// runners is the table; the fixtures beside its test are in each runner's form. Runners that start others, whose
// output says more, come last.
var runners = sync.OnceValue(func() []*runner {
	re := regexp.MustCompile
	fails := func(exprs ...string) (out []*regexp.Regexp) {
		for _, e := range exprs {
			out = append(out, re(e))
		}
		return out
	}
	word := func(names string) *regexp.Regexp { return re(`(?:^|[\s;&|(/])(?:` + names + `)(?:\s|$|;|&|\|)`) }
	return []*runner{
		{
			name: "go", command: word(`go\s+test|gotestsum`),
			fails: fails(`^\s*--- FAIL: (\S+) \(`, `^\{.*"Action":"fail".*"Test":"([^"]+)"`),
			none:  re(`^\?\s+\S+\s+\[no test files\]|^ok\s+\S+\s.*\[no tests to run\]|^testing: warning: no tests to run`),
			ok:    re(`^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)|^--- PASS: |^\{.*"Action":"pass".*"Test":"`),
			broke: re(`^FAIL\s+\S+\s+(?:[\d.]+s|\[(?:build|setup) failed\])|^\{.*"Action":"fail"`),
		},
		{
			name: "pytest", command: word(`pytest|py\.test`),
			fails:   fails(`^(?:\[gw\d+\] \[ *\d+%\] )?(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$`, `^(\S+::.+?) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$`),
			none:    re(`^=*\s*no tests ran in |^collected 0 items`),
			summary: re(`^=*\s*(?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|warnings?|deselected|rerun)(?:, )?)+ in [\d.]+s`),
			passes:  re(`(\d+) (?:passed|xpassed|xfailed)\b`), failures: re(`(\d+) (?:failed|errors?)\b`),
		},
		{
			name: "unittest", command: word(`-m\s+unittest|manage\.py\s+test`),
			fails:   fails(`^(?:FAIL|ERROR): (\S+ \(\S+?\))`),
			none:    re(`^NO TESTS RAN`),
			summary: re(`^Ran \d+ tests? in [\d.]+s$`), total: re(`Ran (\d+) tests?`), skips: re(`skipped=(\d+)`),
			broke: re(`^FAILED \((?:failures|errors|unexpected)`),
		},
		{
			name: "jest", command: word(`jest`),
			fails:   fails(`^  ● (.+ › .+)$`),
			none:    re(`^No tests found`),
			summary: re(`^Tests:\s+.*\d+ total$`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re(`^Test Suites: \d+ failed`),
		},
		{
			name: "vitest", command: word(`vitest`),
			fails:   fails(`^\s*FAIL\s+([^\s\[]\S*\.\S.*)$`),
			none:    re(`^\s*No test files found`),
			summary: re(`^\s*Tests\s+.*\(\d+\)$|^\s*Tests\s+no tests`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re(`^\s*Test Files\s+\d+ failed`),
		},
		{
			name: "node", command: word(`node\s+(?:\S+\s+)*--test\S*`),
			fails:   fails(`^\s*not ok \d+ - (.+)$`, `^\s*✖ (.+?) \([\d.]+ms\)$`),
			summary: re(`^(?:#|ℹ) (?:pass|fail) \d+$`),
			passes:  re(` pass (\d+)`), failures: re(` fail (\d+)`),
		},
		{
			name: "deno", command: word(`deno\s+(?:\S+\s+)*?test`),
			fails:   fails(`^(\S.*) => \./\S+:\d+:\d+$`, `^(\S.*) \.\.\. .*FAILED`),
			none:    re(`No test modules found`),
			summary: re(`^(?:ok|FAILED) \| .*\d+ passed`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
		},
		{
			name: "bun", command: word(`bun\s+test`),
			fails:   fails(`^(?:\(fail\)|✗) (.+?)(?: \[[\d.]+m?s\])?$`),
			none:    re(`^No tests found!|^Ran 0 tests across`),
			summary: re(`^ *\d+ (?:pass|fail)$`),
			passes:  re(`(\d+) pass`), failures: re(`(\d+) fail`),
		},
		{
			name: "cargo", command: word(`cargo\s+(?:\S+\s+)*?test`),
			fails:   fails(`^test (\S.*?)(?: - should panic)? \.\.\. FAILED$`),
			summary: re(`^test result: (?:ok|FAILED)\. \d+ passed`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re("^error: could not compile "),
		},
		{
			name: "nextest", command: word(`cargo\s+nextest`),
			fails:   fails(`^\s*(?:FAIL|TIMEOUT|SIG[A-Z]+) \[[^\]]*\](?: \([^)]*\))? (\S.*)$`),
			none:    re(`^\s*Starting 0 tests|^error: no tests to run`),
			summary: re(`^\s*Summary \[.*\d+ tests? run: `),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) (?:failed|timed out)`),
		},
		{
			name: "maven", command: word(`mvnw?d?\s.*(?:test|verify|install|package)|\./mvnw\s.*`),
			fails:   fails(`^\[ERROR\]\s+(\S+?)(?: -- |\s+)Time elapsed: .*<<< (?:FAILURE|ERROR)!$`, `^\[ERROR\]   (\S+)[: ]\d+`),
			none:    re(`^\[INFO\] No tests to run\.|^\[INFO\] Tests are skipped\.|No tests were executed`),
			summary: re(`^(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+$`),
			total:   re(`Tests run: (\d+)`), failures: re(`(?:Failures|Errors): (\d+)`), skips: re(`Skipped: (\d+)`),
			broke: re(`COMPILATION ERROR|There are test failures`),
		},
		{
			name: "gradle", command: word(`(?:\./)?gradlew?\s.*(?:test|check|build)\S*`),
			fails:   fails(`^(\S.* > .+) FAILED$`),
			none:    re(`^> Task :\S*[tT]est NO-SOURCE|No tests found for given includes`),
			summary: re(`^\d+ tests? completed`), total: re(`(\d+) tests? completed`), failures: re(`(\d+) failed`), skips: re(`(\d+) skipped`),
			ok: re(`^> Task :\S*[tT]est$|^\S.* > .+ PASSED$`), broke: re(`^> Task :\S*[tT]est FAILED`),
		},
		{
			name: "ctest", command: word(`ctest`),
			fails:   fails(`^\s+\d+ - (\S.*?) \((?:Failed|Timeout|SEGFAULT|Not Run|Subprocess \w+|Exception.*)\)`),
			none:    re(`^No tests were found!!!`),
			summary: re(`^\d+% tests passed, \d+ tests? failed out of \d+`),
			total:   re(`out of (\d+)`), failures: re(`(\d+) tests? failed`),
		},
		{
			name: "rspec", command: word(`rspec`),
			fails:   fails(`^rspec (\./\S+)(?: #.*)?$`),
			summary: re(`^\d+ examples?, \d+ failures?`),
			total:   re(`(\d+) examples?`), failures: re(`(\d+) (?:failures?|errors? occurred)`), skips: re(`(\d+) pending`),
		},
		{
			name: "phpunit", command: word(`phpunit|artisan\s+test|pest`),
			fails:   fails(`^\d+\) (\S+::\S.*)$`),
			none:    re(`^No tests executed!`),
			summary: re(`^OK \(\d+ tests?|^Tests: \d+, Assertions: \d+`),
			total:   re(`OK \((\d+) tests?|Tests: (\d+)`), failures: re(`(?:Failures|Errors): (\d+)`), skips: re(`(?:Skipped|Incomplete): (\d+)`),
		},
		{
			name: "dotnet", command: word(`dotnet\s+(?:test|vstest)`),
			fails:   fails(`^\s+(?:Failed|X) (\S+(?:\(.*\))?) \[(?:< )?[\d.,]+ ?m?s\]`),
			none:    re(`^No test is available in|^No test matches`),
			summary: re(`^(?:Passed|Failed|Skipped)!\s+- Failed:|^\s+(?:Passed|Failed): \d+$`),
			passes:  re(`Passed:\s+(\d+)`), failures: re(`Failed:\s+(\d+)`),
		},
		{
			name: "tox", command: word(`tox|nox`),
			fails: fails(`^\s+([\w.-]+): FAIL\b`),
			broke: re(`evaluation failed :\(`),
		},
	}
})
