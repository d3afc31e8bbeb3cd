package testrun

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestOutputs reads what runners printed for small projects, shortened: command, exit code, result and output.
func TestOutputs(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/outputs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		parts := strings.SplitN(string(f.Data), "\n", 4)
		var exit int
		if _, err := fmt.Sscanf(parts[1], "exit %d", &exit); err != nil || len(parts) < 4 {
			t.Fatalf("%s: not a command, an exit code, a result and an output: %v", f.Name, err)
		}
		got, _ := Parse(strings.TrimPrefix(parts[0], "$ "), parts[3], exit)
		said := strings.TrimSpace(fmt.Sprintf("= %s %s %d/%d %s", got.Runner, got.Status, got.Passed, got.Failed,
			strings.Join(got.Names, " | ")))
		if said != strings.TrimSpace(parts[2]) {
			t.Errorf("%s: %s\ngot  %s\nwant %s", f.Name, parts[0], said, parts[2])
		}
	}
}

// TestParse reads outputs of runners in their documented form, and of several.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		command, output string
		exit            int
		want            Result
	}{
		{"go test ./...", "--- FAIL: TestSum (0.00s)\n    --- FAIL: TestSum/zero (0.00s)\n        sum_test.go:9: got 3\nFAIL\nFAIL\tx/sum\t0.003s\nok  \tx/a\t0.002s\nFAIL\n", 1, Result{"go", Failed, 0, 1, []string{"TestSum/zero"}}},
		{"cd x && go test ./... 2>&1 | tail -20", "ok  \tx/a\t(cached)\n?   \tx/b\t[no test files]\n", 0, Result{"go", Passed, 0, 0, nil}},
		{"go test ./...", "?   \tx/b\t[no test files]\nok  \tx/a\t0.002s [no tests to run]\n", 0, Result{"go", RanNone, 0, 0, nil}},
		{"go test ./...", "# x/a [x/a.test]\n./a_test.go:3:1: syntax error\nFAIL\tx/a [build failed]\nFAIL\n", 1, Result{"go", Failed, 0, 1, []string{"x/a"}}},
		{"make test", "go test ./...\n\x1b[32mok\x1b[0m  \tx/a\t0.1s\r\n", 0, Result{"go", Passed, 0, 0, nil}},
		{"uv run pytest -q", ".F\n=== FAILURES ===\nE   assert 1 == 2\n=== short test summary info ===\nFAILED tests/test_a.py::test_b[x y] - assert 1 == 2\n1 failed, 1 passed in 0.02s\n", 1, Result{"pytest", Failed, 1, 1, []string{"tests/test_a.py::test_b[x y]"}}},
		{"python -m pytest | tail -3", "\x1b[31m===== \x1b[31m\x1b[1m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m, 1 warning in 0.12s =====\x1b[0m\n", 0, Result{"pytest", Failed, 2, 1, nil}},
		{"poetry run pytest tests", "collected 0 items\n\n===== no tests ran in 0.01s =====\n", 5, Result{"pytest", RanNone, 0, 0, nil}},
		{"pytest", "===== 3 skipped in 0.01s =====\n", 0, Result{"pytest", RanNone, 0, 0, nil}},
		{"pytest", "ERROR tests/test_x.py - ImportError: no x\n===== 1 error in 0.1s =====\n", 2, Result{"pytest", Failed, 0, 1, []string{"tests/test_x.py"}}},
		{"python3 -m unittest", "F.\n======\nFAIL: test_b (tests.T.test_b)\n------\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n", 1, Result{"unittest", Failed, 1, 1, []string{"test_b (tests.T.test_b)"}}},
		{"python3 -m unittest", "\n----\nRan 2 tests in 0.001s\n\nOK (skipped=1)\n", 0, Result{"unittest", Passed, 1, 0, nil}},
		{"python3 -m unittest", "\n----\nRan 0 tests in 0.000s\n\nOK\n", 0, Result{"unittest", RanNone, 0, 0, nil}},
		{"tox", "===== 2 passed in 0.01s =====\n  py311: OK (1.2=setup[1]+cmd[0.2] seconds)\n  congratulations :) (1.2 seconds)\n", 0, Result{"pytest", Passed, 2, 0, nil}},
		{"tox -e lint", "  lint: FAIL code 1 (0.1 seconds)\n  evaluation failed :( (0.2 seconds)\n", 1, Result{"tox", Failed, 0, 1, []string{"lint"}}},
		{"npm test", "FAIL ./sum.test.js\n  ● sum › adds\n\n    expect(received)\n\nTests:       1 failed, 1 skipped, 2 passed, 4 total\nTest Suites: 1 failed, 1 total\n", 1, Result{"jest", Failed, 2, 1, []string{"sum › adds"}}},
		{"npx jest", "No tests found, exiting with code 1\n", 1, Result{"jest", RanNone, 0, 0, nil}},
		{"cd web && npm test", " FAIL  src/a.test.ts > sum > adds\nAssertionError: expected 3\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n", 1, Result{"vitest", Failed, 2, 1, []string{"src/a.test.ts > sum > adds"}}},
		{"npx vitest run", "No test files found, exiting with code 1\n", 1, Result{"vitest", RanNone, 0, 0, nil}},
		{"node --test", "not ok 1 - adds\n  ---\n# tests 2\n# pass 1\n# fail 1\n", 1, Result{"node", Failed, 1, 1, []string{"adds"}}},
		{"node --test", "✖ adds (0.51ms)\nℹ tests 1\nℹ pass 0\nℹ fail 1\n", 1, Result{"node", Failed, 0, 1, []string{"adds"}}},
		{"node --test", "ℹ tests 0\nℹ pass 0\nℹ fail 0\n", 0, Result{"node", RanNone, 0, 0, nil}},
		{"bun test", "(fail) sum > adds [0.12ms]\n\n 2 pass\n 1 fail\nRan 3 tests across 1 file. [9.00ms]\n", 1, Result{"bun", Failed, 2, 1, []string{"sum > adds"}}},
		{"deno test", "adds => ./a_test.ts:3:6\nFAILED | 1 passed | 1 failed (3ms)\n", 1, Result{"deno", Failed, 1, 1, []string{"adds"}}},
		{"deno test", "ok | 0 passed | 0 failed (1ms)\n", 0, Result{"deno", RanNone, 0, 0, nil}},
		{"cargo test", "test tests::adds ... FAILED\ntest tests::zero ... ok\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n", 101, Result{"cargo", Failed, 1, 1, []string{"tests::adds"}}},
		{"cargo test", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s\n", 0, Result{"cargo", RanNone, 0, 0, nil}},
		{"cargo test", "error[E0425]: cannot find value\nerror: could not compile `x` (lib test) due to 1 previous error\n", 101, Result{"cargo", Failed, 0, 0, nil}},
		{"cargo nextest run", "        FAIL [   0.005s] x tests::adds\n     Summary [   0.010s] 3 tests run: 2 passed, 1 failed, 0 skipped\n", 100, Result{"nextest", Failed, 2, 1, []string{"x tests::adds"}}},
		{"mvn -q test", "[ERROR] com.x.ATest.adds -- Time elapsed: 0.005 s <<< FAILURE!\n[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1\n", 1, Result{"maven", Failed, 1, 1, []string{"com.x.ATest.adds"}}},
		{"./mvnw verify", "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n", 0, Result{"maven", RanNone, 0, 0, nil}},
		{"./gradlew test", "ATest > adds() FAILED\n    org.opentest4j.AssertionFailedError at ATest.java:9\n\n3 tests completed, 1 failed\n\n> Task :test FAILED\n", 1, Result{"gradle", Failed, 2, 1, []string{"ATest > adds()"}}},
		{"./gradlew test", "> Task :test NO-SOURCE\nBUILD SUCCESSFUL in 1s\n", 0, Result{"gradle", RanNone, 0, 0, nil}},
		{"ctest --output-on-failure", "67% tests passed, 1 tests failed out of 3\n\nThe following tests FAILED:\n\t  2 - adds (Failed)\n", 8, Result{"ctest", Failed, 2, 1, []string{"adds"}}},
		{"ctest", "No tests were found!!!\n", 0, Result{"ctest", RanNone, 0, 0, nil}},
		{"bundle exec rspec", "3 examples, 1 failure, 1 pending\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:3 # A adds\n", 1, Result{"rspec", Failed, 1, 1, []string{"./spec/a_spec.rb:3"}}},
		{"rspec", "0 examples, 0 failures\n", 0, Result{"rspec", RanNone, 0, 0, nil}},
		{"vendor/bin/phpunit", "There was 1 failure:\n\n1) App\\ATest::testAdds\nFailed asserting that 3 is 4.\n\nFAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n", 1, Result{"phpunit", Failed, 2, 1, []string{"App\\ATest::testAdds"}}},
		{"vendor/bin/phpunit", "OK (3 tests, 5 assertions)\n", 0, Result{"phpunit", Passed, 3, 0, nil}},
		{"dotnet test", "  Failed X.ATest.Adds [12 ms]\n  Error Message:\n\nFailed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 20 ms - X.dll (net8.0)\n", 1, Result{"dotnet", Failed, 2, 1, []string{"X.ATest.Adds"}}},
		{"dotnet test", "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3\n", 0, Result{"dotnet", Passed, 3, 0, nil}},
		{"docker compose run web npm test", "Tests:       2 passed, 2 total\n", 0, Result{"jest", Passed, 2, 0, nil}},
		{"cargo nextest run", "        PASS [   0.006s] x::it test_ok\n  TRY 1 FAIL [   0.007s] x::it flaky\n  TRY 2 PASS [   0.007s] x::it flaky\n     Summary [   0.010s] 2 tests run: 2 passed (1 flaky), 0 skipped\n", 0, Result{"nextest", Passed, 2, 0, nil}},
		{"make test", "        FAIL [   0.007s] x::it test_fail\n\nrunning 1 test\ntest test_fail ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s\n     Summary [   0.010s] 2 tests run: 1 passed, 1 failed, 0 skipped\n", 2, Result{"nextest", Failed, 1, 1, []string{"x::it test_fail"}}},
		{"cargo nextest run", "    Starting 0 tests across 1 binary\nerror: no tests to run\n", 4, Result{"nextest", RanNone, 0, 0, nil}},
		{"./gradlew :app:testDebugUnitTest", "> Task :app:testDebugUnitTest\n\nBUILD SUCCESSFUL in 3s\n", 0, Result{"gradle", Passed, 0, 0, nil}},
		{"./gradlew check", "> Task :test\n\nBUILD SUCCESSFUL in 3s\n", 0, Result{"gradle", Passed, 0, 0, nil}},
		{"./gradlew test", "> Task :compileTestKotlin FAILED\ne: A.kt: unresolved reference\n", 1, Result{"gradle", Failed, 0, 0, nil}},
		{"dotnet test -v n", "  Failed A test with spaces(a: 1, b: [2]) [1 s 21 ms]\n  Error Message:\n\nTest Run Failed.\nTotal tests: 2\n     Passed: 1\n     Failed: 1\n", 1, Result{"dotnet", Failed, 1, 1, []string{"A test with spaces(a: 1, b: [2])"}}},
		{"dotnet test", "[xUnit.net 00:00:00.50]     X.ATest.Adds [FAIL]\n  X test failed with 1 error(s) (1.0s)\n    /p/A.cs(10): error TESTERROR:\n      X.ATest.Adds (3ms): Error Message: Assert.Equal() Failure\n\nTest summary: total: 3, failed: 1, succeeded: 2, skipped: 0, duration: 1.0s\n", 1, Result{"dotnet", Failed, 2, 1, []string{"X.ATest.Adds"}}},
		{"dotnet test", "A.cs(3,5): error CS1002: ; expected\n", 1, Result{"dotnet", Failed, 0, 0, nil}},
		{"tox run", "==== 1 failed in 0.01s ====\n  py311: FAIL code 1 (1.2 seconds)\n  evaluation failed :( (1.2 seconds)\n", 1, Result{"pytest", Failed, 0, 1, nil}},
		{"nox -s lint", "nox > Session lint failed.\nnox > Ran multiple sessions:\nnox > * lint: failed\n", 1, Result{"tox", Failed, 0, 1, []string{"lint"}}},
		{"phpunit", "There was 1 risky test:\n\n1) ATest::testRisky\n\nOK, but incomplete, skipped, or risky tests!\nTests: 2, Assertions: 1, Risky: 1.\n", 0, Result{"phpunit", Passed, 2, 0, nil}},
		{"make test", "go test ./...\nFAIL\tx/a\t0.003s\nFAIL\nmake: *** [test] Error 1\n", 2, Result{"go", Failed, 0, 0, []string{"x/a"}}},
		// Two runs of one command.
		{"pytest a; pytest b", "==== 1 failed, 1 passed in 0.01s ====\n==== 2 passed in 0.01s ====\n", 0, Result{"pytest", Failed, 3, 1, nil}},
		{"npx jest; pytest", "  ● adds\nTests:       1 failed, 1 total\n==== 2 passed in 0.01s ====\n", 0, Result{"pytest jest", Failed, 2, 1, []string{"adds"}}},
		{"go test ./... && npx jest", "ok  \tx\t0.1s\nNo tests found, exiting with code 1\n", 1, Result{"go jest", Unclear, 0, 0, nil}},
		// Cut in the middle, or by a filter.
		{"go test ./... 2>&1 | grep -E '^(---|FAIL)'", "--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\tx\t0.1s\n", 0, Result{"go", Failed, 0, 2, []string{"TestA", "TestB"}}},
		{"go test ./... 2>&1 | grep FAIL", "", 1, Result{"go", Unclear, 0, 0, nil}},
		{"pytest -v", "a.py::test_a PASSED\n[... 9000 bytes left out ...]\na.py::test_z FAILED [100%]\n", 1, Result{"pytest", Failed, 0, 1, []string{"a.py::test_z"}}},
		{"python3 -m unittest 2>&1 | grep Ran", "Ran 7 tests in 0.001s\n", 0, Result{"unittest", Unclear, 0, 0, nil}},
		// An exit code may be another program's, and silence says nothing.
		{"pytest && flake8", "===== 2 passed in 0.01s =====\na.py:1:1: E302\n", 1, Result{"pytest", Unclear, 2, 0, nil}},
		{"cd a && pytest --cov 2>&1", "===== 2 passed in 0.01s =====\nFAIL Required test coverage of 90% not reached.\n", 1, Result{"pytest", Failed, 2, 0, nil}},
		{"npm test", "Tests:       1 failed, 1 total\n  ● adds\n", 1, Result{"jest", Failed, 0, 1, []string{"adds"}}},
		{"npm test", "PASS a.test.js\n  ● printed by a test\nTests:       1 passed, 1 total\n", 0, Result{"jest", Passed, 1, 0, nil}},
		{"go test ./... | grep -v cached", "", 0, Result{"go", Unclear, 0, 0, nil}},
		{"pytest", "bash: pytest: command not found\n", 127, Result{"pytest", Unclear, 0, 0, nil}},
	} {
		got, ok := Parse(tt.command, tt.output, tt.exit)
		if !ok || got.Runner != tt.want.Runner || got.Status != tt.want.Status || got.Passed != tt.want.Passed ||
			got.Failed != tt.want.Failed || !slices.Equal(got.Names, tt.want.Names) {
			t.Errorf("%s:\n%s\ngot %+v, %t\nwant %+v", tt.command, tt.output, got, ok, tt.want)
		}
	}
	for command, output := range map[string]string{"cat test.log": "1 failed, 1 passed in 0.02s\n", "make": "cc -o x x.c\n", "echo hi": "hi\n", "cat pytest.ini": "[pytest]\n",
		"cargo build": "error: could not compile `x` (lib) due to 1 previous error\n", "mvn compile": "[ERROR] COMPILATION ERROR :\n", "php a.php": "PHP Fatal error:  x\n", "./check": "OK\n", "./doctor": "✗ no java\n  ● x.service\n", "pip install -r r.txt": "ERROR: six (1.0) has a conflict\n", "./plan": "  1 - Task (DONE)\n1) std::vector\n"} {
		if got, ok := Parse(command, output, 0); ok {
			t.Errorf("%s is read as %+v", command, got)
		}
	}
}

// TestNamesAreBounded: a run in which everything fails names so many.
func TestNamesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 3 * MaxNames {
		b.WriteString("--- FAIL: Test" + strings.Repeat("X", i+1) + " (0.00s)\n")
	}
	if got, _ := Parse("go test", b.String(), 1); len(got.Names) != MaxNames || got.Status != Failed {
		t.Errorf("%d names, %s", len(got.Names), got.Status)
	}
}
