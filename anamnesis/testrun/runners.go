package testrun

import (
	"regexp"
	"strings"
	"sync"
)

// runner is how one test runner prints. A line is tried against the fields from skipped to broke, in their order.
type runner struct {
	name    string
	command *regexp.Regexp // a command that names it
	starts  bool           // other runners, whose output says more
	// A name is the last group that matched.
	list     *regexp.Regexp // heads a list: of failed tests if a group matched; no list, no names
	loose    *regexp.Regexp // a failed test if the run failed; other programs print it, too
	hint     *regexp.Regexp // names what failed, used if nothing else does
	skipped  *regexp.Regexp // a test that did not run, or whose failure is allowed
	parent   *regexp.Regexp // a test around others; without a group, the one named last
	fails    *regexp.Regexp // a failed test
	none     *regexp.Regexp // no test ran
	summary  *regexp.Regexp // a line with counts, read by the next four
	passes   *regexp.Regexp // nil: total less failures and skips
	failures *regexp.Regexp
	total    *regexp.Regexp
	skips    *regexp.Regexp
	ok       *regexp.Regexp // a test passed, without a count
	end      *regexp.Regexp // the run succeeded, and may have skipped all
	broke    *regexp.Regexp // the run failed, without a name; other programs print it, too
}

// runners is the table; testdata has outputs of each. Of two that read the same lines, the first counts.
var runners = sync.OnceValue(func() []*runner {
	re := func(exprs ...string) *regexp.Regexp { return regexp.MustCompile(strings.Join(exprs, "|")) }
	word := func(names string) *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s;&|(/'"])(?:` + names + `)(?:$|[\s;&|)'"])`)
	}
	return []*runner{
		{
			name: "go", command: word(`go\s+test|gotestsum`),
			hint:    re(`^FAIL\s+(\S+)\s+[\d.]+s$`, `^\{.*"Action":"fail".*"Package":"([^"]+)"`),
			skipped: re(`^\s*--- SKIP: `, `^\{.*"Action":"skip".*"Test":"`),
			fails: re(`^\s*--- FAIL: (\S+) \(`, `^\{.*"Action":"fail".*"Test":"([^"]+)"`, `^FAIL\s+(\S+) \[(?:build|setup) failed\]`,
				`^\t\t((?:Test|Fuzz|Example)\S*) \([\dhms.]+\)$`, `^FAIL\s+\S+\s+[\d.]+s$`),
			none: re(`^\?\s+\S+\s+\[no test files\]`, `^ok\s+\S+\s.*\[no tests to run\]`, `^testing: warning: no tests to run`, `no packages to test$`),
			ok:   re(`^\s*--- PASS: `, `^\{.*"Action":"pass".*"Test":"`),
			end:  re(`^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)`), broke: re(`^\{.*"Action":"fail"`),
		},
		{
			name: "pytest", command: word(`pytest|py\.test`),
			fails: re(`^(?:\[gw\d+\] \[ *\d+%\] )?(?:FAILED|ERROR|SUBFAIL\S*) (\S+\.(?:py|rst|txt|md|ipynb)(?:::[^\[\s]*(?:\[.*?\])?)?)(?: - .*)?$`,
				`^(\S+::.+?) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$`),
			none:    re(`^=*\s*(?:no tests|\d+(?:/\d+)? tests?) (?:ran|collected) in `, `^collected 0 items`, `^ERROR: usage: `),
			summary: re(`^=*\s*(?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|warnings?|deselected|rerun|subtests? \w+)(?:, )?)+ in [\d.]+s`),
			passes:  re(`(\d+) (?:passed|xpassed|xfailed)\b`), failures: re(`(\d+) (?:failed|errors?)\b`),
			ok: re(`^(?:\S+\.py )?[.sxX]*\.[.sxX]* +\[100%\]$`), broke: re(`^INTERNALERROR> `),
		},
		{
			name: "unittest", command: word(`-m\s+unittest|manage\.py\s+test`),
			fails:   re(`^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+ \([A-Za-z_]\w*(?:\.\S+?)+\)|(?:setUp|tearDown)Module \(\S+?\))`),
			none:    re(`^NO TESTS RAN`, `^Ran 0 tests`),
			summary: re(`^Ran \d+ tests? in [\d.]+s (?:OK|FAILED)`), total: re(`Ran (\d+) tests?`), skips: re(`skipped=(\d+)`),
			failures: re(`(?:\(|, )(?:failures|errors|unexpected successes)=(\d+)`),
		},
		{
			name: "jest", command: word(`jest`),
			hint:    re(`^\s?FAIL .*?(\S+\.[cm]?[jt]sx?)(?: \(.*\))?$`),
			skipped: re(`^  ● Console$`),
			loose:   re(`^  ● (.+)$`),
			fails:   re(`^  ● Test suite failed to run`, `^  ● (.+ › .+)$`),
			none:    re(`^No tests found`),
			summary: re(`^Tests:\s+.*\d+ total$`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re(`^Test Suites: \d+ failed`, `^\s?FAIL .*\.[cm]?[jt]sx?\b`),
		},
		{
			name: "vitest", command: word(`vitest`),
			hint:    re(`^\s+[×✗] (.+?)(?: \d+ms)?$`),
			fails:   re(`^\s*FAIL\s+(?:\|[^|]*\| )?(\S+\.\S.*?)(?: \[ .* \])?$`),
			none:    re(`^\s*No test files found`),
			summary: re(`^\s*Tests\s+.*\(\d+\)$`, `^\s*Tests\s+no tests`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re(`^\s*Test Files\s+\d+ failed`),
		},
		{
			name: "node", command: word(`node\s+(?:\S+\s+)*--test\S*`),
			skipped: re(`# (?:TODO|SKIP)\b`),
			parent:  re(`^\s*▶ (.+?)(?: \([\d.]+ms\))?$`, `^\s*failureType: 'subtestsFailed'`, `^\s*'\d+ subtests? failed'$`),
			fails:   re(`^\s*not ok \d+ - (.+)$`, `^\s*✖ (.+?) \([\d.]+ms\)$`),
			none:    re(`^Could not find '`),
			summary: re(`^(?:#|ℹ) (?:pass|fail|cancelled) \d+$`),
			passes:  re(` pass (\d+)`), failures: re(` (?:fail|cancelled) (\d+)`),
		},
		{
			name: "deno", command: word(`deno\s+(?:\S+\s+)*?test`),
			fails:   re(`^(\S.*) => \./\S+:\d+:\d+$`, `^(\S.*?) \.\.\. FAILED \(\d`),
			none:    re(`No test modules found`),
			summary: re(`^(?:ok|FAILED) \| .*\d+ passed`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re(`^error: (?:Type checking|Test) failed`, `^error: .*could not be parsed`),
		},
		{
			name: "bun", command: word(`bun\s+test`),
			fails:   re(`^\(fail\) (.+?)(?: \[[\d.]+m?s\])?$`, `^✗ (.+) \[[\d.]+m?s\]$`),
			none:    re(`^No tests found!`, `^Ran 0 tests across`, `^The following filters did not match any test`, `^error: regex .* matched 0 tests`),
			summary: re(`^ *\d+ (?:pass|fail)$`),
			passes:  re(`(\d+) pass`), failures: re(`(\d+) fail`),
		},
		{
			name: "nextest", command: word(`cargo\s+nextest`),
			hint:    re(`^\s*TRY \d+ FAIL \[[^\]]*\](?: \([^)]*\))? (\S.*)$`),
			fails:   re(`^\s*(?:FAIL|TIMEOUT|ABORT|SIG[A-Z]+) \[[^\]]*\](?: \([^)]*\))? (\S.*)$`),
			none:    re(`^\s*Starting 0 tests`, `^error: no tests to run`),
			summary: re(`^\s*Summary \[.*\d+ tests? run: `),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) (?:failed|timed out)`),
			broke: re("^error: could not compile "),
		},
		{
			name: "cargo", command: word(`cargo\s+(?:\S+\s+)*?test`),
			hint:    re(`^    ([A-Za-z_]\w*(?:::\w+)*)$`),
			fails:   re(`^test (\S.*?)(?: - should panic)? \.\.\. FAILED$`, `^(\S.*) --- FAILED$`),
			summary: re(`^test result: (?:ok|FAILED)\. \d+ passed`),
			passes:  re(`(\d+) passed`), failures: re(`(\d+) failed`),
			broke: re(`^error: (?:could not compile|(?:doc)?test failed)`),
		},
		{
			name: "maven", command: word(`mvnw?d?\s.*(?:test|verify|install|package)|\./mvnw\s.*`),
			hint:    re(`^\[ERROR\]\s+(\S+?)(?: -- |\s+)Time elapsed: .*<<< (?:FAILURE|ERROR)!$`),
			fails:   re(`^\[ERROR\]   (\S+?)(?::\d+| »)`),
			none:    re(`^\[INFO\] No tests to run\.`, `^\[INFO\] Tests are skipped\.`, `No tests were executed`),
			summary: re(`^(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+$`),
			total:   re(`Tests run: (\d+)`), failures: re(`(?:Failures|Errors): (\d+)`), skips: re(`Skipped: (\d+)`),
			broke: re(`COMPILATION ERROR|There are test failures`),
		},
		{
			name: "gradle", command: word(`gradlew?\s.*(?:test|check|build)\S*`),
			fails:   re(`^(\S.* > .+) FAILED$`),
			none:    re(`^(?:> Task )?:\S*[tT]est NO-SOURCE`, `No tests found for given includes`),
			summary: re(`^\d+ tests? completed`), total: re(`(\d+) tests? completed`), failures: re(`(\d+) failed`), skips: re(`(\d+) skipped`),
			ok: re(`^> Task :\S*[tT]est(?: UP-TO-DATE| FROM-CACHE)?$`, `^\S.* > .+ PASSED$`), broke: re(`^(?:> Task )?:\S*[tT]est\S* FAILED`, `^> Compilation failed`),
		},
		{
			name: "ctest", command: word(`ctest`),
			skipped: re(`^\s+\d+ - .*\(Skipped\)`),
			fails:   re(`^\s+\d+ - (\S.*?) \((?:Failed|Timeout|Not Run|SEGFAULT|ILLEGAL|INTERRUPT|NUMERICAL|OTHER_FAULT|BAD_COMMAND|Child aborted|Subprocess \w+|Exception.*)\)`),
			none:    re(`^No tests were found!!!`),
			summary: re(`^\d+% tests passed, \d+ tests? failed out of \d+`),
			total:   re(`out of (\d+)`), failures: re(`(\d+) tests? failed`),
		},
		{
			name: "rspec", command: word(`rspec`),
			fails:   re(`^rspec '?(\./[^\s']+)'?(?: #.*)?$`, `^An error occurred while loading (\S+)\.$`),
			summary: re(`^\d+ examples?, \d+ failures?`),
			total:   re(`(\d+) examples?`), failures: re(`(\d+) (?:failures?|errors? occurred)`), skips: re(`(\d+) pending`),
		},
		{
			name: "phpunit", command: word(`phpunit|artisan\s+test|pest`),
			list:    re(`^There (?:was|were) \d+ (?:(failures?|errors?)|.*):$`),
			fails:   re(`^\d+\) ([^\s:]+::\S+(?: with data set (?:"[^"]*"|#\d+))?)`),
			none:    re(`^No tests executed!`),
			summary: re(`^OK \(\d+ tests?`, `^Tests: \d+, Assertions: \d+`),
			total:   re(`OK \((\d+) tests?|Tests: (\d+)`), failures: re(`(?:Failures|Errors): (\d+)`),
			skips: re(`(?:Skipped|Incomplete): (\d+)`, `Assertions: 0, Warnings: (\d+)`), // a class without tests is a warning
			broke: re(`^PHP (?:Fatal|Parse) error: `),
		},
		{
			name: "dotnet", command: word(`dotnet\s+(?:test|vstest)`),
			fails:   re(`^\s+(?:Failed|X) (\S.*?) \[[^\]]*\d ?m?s\]`, `^\[xUnit\.net [\d:.]+\]\s+(\S.*) \[FAIL\]`, `^\s+(\S.*?) \([\d.]+m?s\): Error Message:`),
			none:    re(`^No test is available in`, `^No test matches`),
			summary: re(`^(?:Passed|Failed|Skipped)!\s+- Failed:`, `^\s+(?:Passed|Failed): \d+$`, `^Total tests: \d+\. Passed: `, `^Test summary: total: `),
			passes:  re(`(?:Passed|succeeded):\s+(\d+)`), failures: re(`(?:Failed|failed):\s+(\d+)`),
			broke: re(`: error CS\d+: `),
		},
		{
			name: "tox", command: word(`tox|nox`), starts: true,
			fails: re(`^\s+([\w.-]+): FAIL\b`, `^ERROR:\s+([\w.-]+): commands failed`, `^nox > \* (\S+): failed`),
			broke: re(`evaluation failed :\(`),
		},
	}
})
