package failure

import (
	"regexp"
	"sync"
)

// how says where a rule's line is relative to the failure.
type how int

const (
	first how = iota // the first of several lines tells
	next             // not this line tells but the next that is not empty
	last             // the last of several tells
	under            // as last, and only where the line ends a Python traceback
)

// The weights of lines. A line that no rule knows gets plain, and more by evidence.
const (
	drop    = 0  // says nothing of the failure
	sums    = 1  // says only that something failed
	plain   = 2  // says nothing by its words
	named   = 8  // says it by its words
	certain = 14 // names a failure by a label
	perhaps = 20
	tells   = 30
	exactly = 40 // where a runner prints the failure beside what led to it
)

// rule knows a line that a program prints when it fails. The example is an
// output whose telling line is marked », and which is read wrongly without the rule.
type rule struct {
	weight  int
	how     how
	has     string // part of every such line; looked for first, because that is quick
	re      func() *regexp.Regexp
	example string
}

// re compiles a regular expression on first use, not when the program starts.
func re(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// rules are tried in order; the first that matches a line counts.
var rules = []rule{
	// Python, pytest and unittest.
	{drop, first, "Traceback (most", re(`^\W*(?:Exception Group )?Traceback \(most recent call last\):`), "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n»    x.y()"},
	{drop, first, "E ", re(`^E\s+(?:Calls|Actual|Expected|Left|Right|Full|Comparing)\b[^:]*:`), "»E   AssertionError: Expected 'send' to be called once. Called 2 times.\nE   Calls: [call('a@example.com')]"},
	{exactly, last, "E ", re(`^E\s+(?:(?:\w+\.)*[A-Z]\w+(?:: |$)|assert |fixture '.*' not found)`), "    def test_a():\n>       f()\n»E       ValueError: no unit\n\na.py:4: ValueError: error\n=== short test summary info ===\nFAILED a.py::test_a - ValueError: no unit"},
	{sums, first, "CellExecutionError", re(`CellExecutionError: An error occurred while`), "nbclient.exceptions.CellExecutionError: An error occurred while executing the following cell:\nx['a']\n»KeyError: 'a'"},
	{sums, first, "CalledProcessError", re(`CalledProcessError: Command .* returned non-zero exit status \d+`), "»fatal: No names found, cannot describe anything.\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n    run()\nsubprocess.CalledProcessError: Command '['git']' returned non-zero exit status 128."},
	{tells, under, "", re(`^\s*(?:\w+\.)*[A-Z]\w*(?:: |$)`), "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    raise E\n»core.EmptySet\nerror: bye"},
	{perhaps, first, "::", re(`^(?:FAILED|ERROR) \S+::\S.* - `), "src/a.py:77: in check\n    error: 3\n=== short test summary info ===\n»FAILED a.py::test_a - Assertion..."},
	{tells, first, ": ", re(`^\s*(?:- |\S+:\d+:\d+: )[A-Z]{1,3}\d{3,4}:? \S`), "»a.py:3:1: F401 'os' imported but unused\na.py:9:1: W291 trailing space"},
	{tells, first, "ould reformat", re(`^[Ww]ould reformat:? \S`), "»would reformat a.py\n1 file would be reformatted, 2 files would be left unchanged."},
	{sums, first, "subprocess-exited", re(`^\W*error: subprocess-exited-with-error`), "error: subprocess-exited-with-error\nexit code: 1\n»Error: pg_config executable not found."},
	{sums, first, "generation-failed", re(`^\W*error: metadata-generation-failed`), "»    Cargo is not installed.\nerror: metadata-generation-failed"},
	{sums, first, "collected", re(`^collected \d+ items? / \d+ error`), "collected 0 items / 1 error\n»'cent' is no marker of this project"},
	{certain, first, "no tests ran", re(`^=+ no tests ran in `), "recwarn\n    It lists all warnings that a test expected.\n»=== no tests ran in 0.01s ==="},

	// Go.
	{drop, first, "[debug]", re(`^\S+\.go:\d+: \[debug\]`), "history.go:56: [debug] getting history\n»Error: UPGRADE FAILED: template: a.yaml:1:2: nil pointer"},
	{exactly, first, "panic: ", re(`^\s*panic: `), "--- FAIL: TestA (0.00s)\n    a_test.go:9: wrong\n»panic: index out of range [5] with length 3 [recovered]"},
	{exactly, first, "DATA RACE", re(`^WARNING: DATA RACE`), "»WARNING: DATA RACE\n  a.count()\nerror: 1 race"},
	{tells, last, "_test.go:", re(`^\s+\w+_test\.go:\d+: \S`), "    a_test.go:8: failed carts 2\n»    a_test.go:9: it has 3\n--- FAIL: TestA (0.00s)"},
	{tells, first, "requires go >= ", re(`^go: .* requires go >= `), "12 |     # Copy, or it is an error\n»go: go.mod requires go >= 1.26 (running go 1.22)\nerror: it failed"},
	{tells, first, ".go:", re(`^(?:vet: )?[\w./@-]+\.go:\d+(?::\d+)?: \S`), "# ex.com/a\n»./a.go:3:2: imported and not used: \"os\"\nerror: cannot go on"},
	{sums, first, "FAIL", re(`^\s*--- FAIL: |^\s*FAIL(?:\s|$)|^BUILD FAILED`), "--- FAIL: TestA (0.00s)\n»    it was 3"},

	// Rust.
	{sums, first, "test failed, to rerun", re(`^error: test failed, to rerun`), "error: test failed, to rerun pass --test a\n»numbers ... error: it was 3"},
	{sums, first, "manifest", re(`^error: failed to (?:parse|load) manifest `), "error: failed to parse manifest at `/a/Cargo.toml`\n»the crate `a` is in no workspace"},
	{tells, first, "is required", re("^feature `\\S+` is required"), "error: cargo\n»feature `edition2024` is required\nThe package requires the Cargo feature called `edition2024`"},
	{tells, next, "panicked at ", re(`panicked at \S+:\d+:\d+:$`), "thread 'main' panicked at src/a.rs:4:5:\n»called `Option::unwrap()` on a `None` value\nerror: test failed"},
	{tells, next, "panicked at '", re(`panicked at '$`), "thread 'main' panicked at '\n»run pkg_config fail: it is gone\nerror: build failed"},
	{tells, first, "panicked at '", re(`panicked at '`), "error: the test did\n»thread 'main' panicked at 'left over', src/a.rs:4:5"},

	// Java and its build tools.
	{tells, next, "*** FAILED", re(`\*\*\* FAILED \*\*\*$`), "[info] - stacks two discounts *** FAILED ***\n»[info]   81 was not equal to 80 (A.scala:3)\n[error] Failed tests:\n[error] \ta.A"},
	{exactly, last, "Caused by: ", re(`^\s*Caused by: `), "Exception in thread \"main\" java.lang.Error: boot\n\tat a.B.main(B.java:3)\n»Caused by: java.io.IOException: no disk\n\tat a.C.read(C.java:9)"},
	{sums, first, "", re(`^FAILURE: Build failed|^> Could not resolve all files for|^> Task \S+ FAILED$|^\S*(?:TaskExecutionException: )?Execution failed for task|^Could not compile \w+ file |^A problem (?:was found|occurred) |^Starting a Gradle Daemon|^> Compilation error\.|^> .*; see the .* output`), "FAILURE: Build failed with an exception.\n* Where: build.gradle\n»* it is gone"},
	{sums, first, "Compilation failure", re(`Failed to execute goal .*: Compilation failure$`), "[ERROR] Failed to execute goal a:b (c) on project d: Compilation failure\n»[ERROR] Unable to locate the Javac Compiler in:"},
	{certain, next, "ests", re(`^(?:Tests in error|Failed tests):$`), "Tests in error:\n»  a(b.C): One response expected\nfailure.txt holds more"},
	{sums, first, "rror Command failed", re(`^error Command failed: \S+gradlew `), "»> SDK location not found. Define it.\nerror Command failed: ./gradlew app:installDebug."},
	{perhaps, last, "> ", re(`^(?:   ){1,6}> (?:[A-Z]|[\w.-]+: )`), "* What went wrong:\n> Could not resolve all files for configuration ':a'.\n   > Failed to transform a.aar\n»      > Java heap space"},
	{tells, first, ":[", re(`^(?:\[ERROR\] )?\S+\.(?:java|kt|scala):\[\d+,\d+\] \S`), "OMPILATION ERROR : it failed\n»[ERROR] /a/B.java:[13,20] package javax.xml.ws does not exist"},
	{tells, first, "e: ", re(`^e: \S+\.kts?:`), "»e: file:///a/B.kt:41:29 only safe calls are allowed\n* What went wrong:\n   > Compilation error. See log for more details"},
	{sums, first, "COMPILATION ERROR", re(`^\[ERROR\] COMPILATION ERROR`), "[ERROR] COMPILATION ERROR :\n»[ERROR] Source option 6 is no longer supported."},

	// C, C++ and what links and builds them.
	{perhaps, next, "Undefined symbols", re(`^Undefined symbols for architecture`), "Undefined symbols for architecture arm64:\n»  \"_f\", referenced from:\nclang: error: linker command failed with exit code 1"},
	{perhaps, first, ": *** ", re(`^\w*make(?:\[\d+\])? ?: \*\*\* (?:[^\[W]|W[^a])`), "find: 'build': No such file or directory\n»make: *** No rule to make target 'a.mk'.  Stop."},
	{sums, first, ": ", re(`^\s*collect2: |^clang\S*: error: linker|^\s*(?:make|gmake|ninja)\S*: (?:\*\*\* (?:\[|Waiting)|build stopped)|^\w*[Mm]akefile:\d+: recipe for target |^FAILED: `), "make: *** [Makefile:2: all] Error 1\n»the tool is lost"},
	{tells, next, ": Failure", re(`^\S+:\d+: Failure$`), "a_test.cc:9: Failure\n»Value of: f(\"error: a\")\n[  FAILED  ] A.B (0 ms)"},
	{sums, first, "Test ", re(`^\s*\d+/\d+ Test +#\d+: `), "1/1 Test #1: cart ....***Failed  0.01 sec\n»cart: expected 21 got 19"},
	{perhaps, next, "CMake Error", re(`^CMake Error\b.*:$`), "CMake Error at CMakeLists.txt:3 (find_package):\n»  By not providing \"FindA.cmake\" in CMAKE_MODULE_PATH\n\n-- Configuring incomplete, errors occurred!"},
	{tells, first, "what():", re(`^\s*what\(\):`), "error: before\nterminate called after throwing an instance of 'E'\n»  what():  no such file"},
	{tells, first, "rror: ", re(`^\S+:\d+:\d+: (?:fatal )?error: `), "»a.c:3:1: fatal error: 'b.h' file not found\nCMake Error at a.cmake:5 (message):\n  The compiler is too old"},
	{tells, first, "undefined reference to ", re(`undefined reference to `), "error: linking with `cc` failed: exit status: 1\n»a.c:(.text+0x1): undefined reference to `f'"},
	{tells, first, "multiple def", re(`multiple definition of `), "make: *** Waiting for unfinished jobs....\n»/bin/ld: a.o:(.bss+0x5): multiple definition of `f'; b.o:(.bss+0x0): first defined here\nerror: no"},
	{sums, first, "ld", re(`\bld\S*: (?:failed to set dynamic section|final link failed: (?:bad value|Nonrep))`), "»  `.rodata' can not be used when making a PIE object\nld: failed to set dynamic section sizes: bad value"},

	// JavaScript and TypeScript.
	{tells, first, "[ERROR] ", re(`^[X✘✖] \[ERROR\] \S`), "Application bundle generation failed. [6.7 seconds]\n»X [ERROR] NG8001: 'app-a' is not a known element:\n1. If 'app-a' is a component"},
	{sums, first, "gyp ERR!", re(`gyp ERR! .*(?:failed with exit code|\b(?:configure|build) error)`), "»clang: error: no such file or directory: 'a'\ngyp ERR! stack Error: `make` failed with exit code: 2"},
	{tells, first, "gyp ERR!", re(`gyp ERR! stack Error: `), "npm error prebuild-install warn install No prebuilt binaries found\n»npm error gyp ERR! stack Error: Could not find any Python installation to use"},
	{exactly, first, "Error: ", re(`^npm (?:ERR!|error) (?:gyp ERR! stack )?(?:Syntax|Name|Type|Attribute|Import|ModuleNotFound)Error: `), "npm ERR! gyp ERR! stack Error: Command failed: python -c import sys\n»npm ERR! gyp ERR! stack SyntaxError: invalid syntax"},
	{tells, next, "Could not resolve dependency:", re(`^npm (?:ERR!|error) Could not resolve dependency:$`), "npm error ERESOLVE unable to resolve dependency tree\nnpm error Could not resolve dependency:\n»npm error peer a@\"^1\" from b@2"},
	{certain, first, "npm ", re(`^npm (?:ERR!|error) code E[A-KM-Z]`), "added 1\n»npm error code EUSAGE\nnpm error path /a\nit is gone"},
	{sums, first, "npm ", re(`^npm (?:ERR!|error)(?:$|\s+(?:code|errno|syscall|path|command|in workspace|at location|workspace|location|signal|cwd|dest|Error: command failed|A complete log|Lifecycle|Exit status|Test failed|This is probably))`), "npm error code 2\n»the server is lost\nnpm error path /a"},
	{perhaps, first, "npm ", re(`^npm (?:ERR!|error)\s`), "error: npm\n»npm error Missing script: \"chek\"\nnpm error A complete log of this run is there"},
	{tells, first, "ERR_PNPM", re(`^\W*ERR_PNPM_`), "error: pnpm\n» ERR_PNPM_NO_MATCHING_VERSION  No matching version for a@9"},
	{tells, next, "ERROR in ", re(`^ERROR in \S+(?: \d+:\d+(?:-[\d:]+)?)?$`), "ERROR in ./src/a.js 1:9-40\n»Module parse failed: a token (1:9)\nwebpack compiled with 1 error"},
	{drop, first, "", re(`ERR! stack\s+at |^Emitted 'error' event on `), "gyp ERR! stack     at ChildProcess.onExit (a.js:3:2)\n»it is gone\ngyp ERR! stack     at fail (b.js:3:2) error"},
	{tells, first, "gyp: ", re(`^gyp: \S`), "error: it failed\n»gyp: No Xcode or CLT version detected!"},
	{certain, first, "code: '", re(`^\s*code: 'E[A-Z]+',?$`), "Emitted 'error' event on Server instance at:\n»  code: 'EACCES',\n  syscall: 'listen',\n  port: 80"},
	{tells, next, "Failed to launch", re(`Failed to launch the browser process!$`), "Error: Failed to launch the browser process!\n»/a/chrome: error while loading shared libraries: libnss3.so: it is gone"},
	{tells, first, " - ", re(`^ - (?:options|configuration)[.\[]`), "Invalid options object. Dev Server has been initialized wrongly.\n» - options.allowedHosts[0] should be a non-empty string."},
	{tells, next, "Transform failed", re(`Transform failed with \d+ errors?:$`), "[vite:esbuild] Transform failed with 1 error:\n»/app/a.jsx:463:24: a brace is too much\nfile: /app/a.jsx:463:24"},
	{drop, first, "info Visit", re(`^info Visit https?://`), "»it is gone\ninfo Visit https://yarnpkg.com/en/docs/cli/run for documentation about this command."},
	{tells, first, "✖ ", re(`^✖ {2,}\S`), "⧗   input: fix it\n»✖   subject may not be empty [subject-empty]\nⓘ   Get help: https://a.org/errors"},
	{sums, first, "❯ ", re(`^\W*❯ \S+ \(\d+ tests?\b`), "❯ a.spec.ts (8 tests | 1 failed)\n»   × it keeps what it had"},
	{drop, first, "console.", re(`^\s*console\.\w+$`), "console.error\n»it is gone"},
	{certain, first, "Snapshot name: ", re(`^\s*Snapshot name: `), "»    Snapshot name: `Row shows one that is late 1`\n › 1 snapshot failed.\nSnapshots:   1 failed, 3 passed, 4 total"},
	{drop, first, "ebugger", re(`^Debugger attached\.|^Waiting for the debugger`), "»it is gone\nWaiting for the debugger to disconnect..."},
	{perhaps, first, "rror [", re(`^\w*Error \[\w+\]: \S`), "Error: this is a known issue.\n»Error [ERR_REQUIRE_ESM]: require() of ES Module a.js is not supported."},

	// Shells and small programs.
	{drop, first, "grep: ", re(`^grep: .*: binary file matches$`), "»a.c: it is here\ngrep: a.pyc: binary file matches"},

	// Git.
	{sums, first, "", re(`^(?:fatal: Could not read from remote|致命错误：无法读取远程仓库)`), "»git@a.org: Permission denied (publickey).\nfatal: Could not read from remote repository."},
	{drop, first, "n", re(`^The authenticity of host |^Are you sure you want to continue connecting`), "The authenticity of host 'a.org' can't be established.\n»git@a.org: Permission denied (publickey)."},
	{sums, first, "remote: ", re(`^remote: error: GH\d+: `), "remote: error: GH006: Protected branch update failed for main.\n»remote: error: Required status check \"ci\" is expected."},
	{drop, first, "remote: ", re(`^remote: error: (?:Trace: |See )`), "remote: error: Trace: b53d\n»remote: error: File a.bin is 106.54 MB; this exceeds the limit\nremote: error: See https://a.org/b"},
	{exactly, first, "remote: ", re(`^remote: (?:error|fatal): `), "»remote: error: no permission for ./objects\n ! [remote rejected] main -> main (unpacker error)"},
	{tells, first, "rejected]", re(`^\s*! \[(?:remote )?rejected\]`), "To x:y\n» ! [rejected]  main -> main (fetch first)\nerror: failed to push some refs to 'x:y'"},
	{tells, first, "", re(`^(?:CONFLICT|KONFLIKT|CONFLIT|冲突|コンフリクト) ?[(（]`), "error: merging\n»CONFLICT (content): Merge conflict in a.go\nAutomatic merge failed; fix conflicts and then commit the result."},

	// Package managers and containers.
	{sums, first, "returned a non-zero", re(`^The command .* returned a non-zero code: \d+$`), "»write /a: the disk is full\nThe command '/bin/sh -c make' returned a non-zero code: 2"},
	{sums, first, "ERROR: ", re(`ERROR: Failed to build gem native extension|^ERROR:\s+Error installing \S+:$`), "ERROR:  Error installing ffi:\n»mkmf.rb can't find header files for ruby"},
	{tells, next, "select packages:", re(`^ERROR: unable to select packages:$`), "ERROR: unable to select packages:\n»  curll (no such package):\n    required by: world[curll]"},
	{tells, first, "Depends: ", re(`^\s*\S+ ?: Depends: `), "The following packages have unmet dependencies:\n» a : Depends: b (= 2) but it is not installable\nE: Unable to correct problems, you have held broken packages."},
	{sums, first, "did not complete", re(`^ERROR: .*process ".*" did not complete successfully`), "»curl is missing\nERROR: failed to build: failed to solve: process \"curl a\" did not complete successfully: exit code: 1"},
	{tells, first, " -> ", re(`^\s*- .* requires? .* -> (?:found|your|no|it|could|the)\b`), "Your requirements could not be resolved.\n»    - a/b requires ext-dom * -> it is missing from your system."},
	{tells, first, "any versions, ", re(`^\s*Because .* which doesn't match any versions, `), "SolverProblemError: no\n»Because a depends on b (9) which doesn't match any versions, a is forbidden."},
	{sums, first, "E: Sub-process", re(`^E: Sub-process \S+ returned an error code`), "» field name `Prov' comes before a colon\nE: Sub-process /usr/bin/dpkg returned an error code (2)"},
	{drop, first, "dpkg-deb: ", re(`^dpkg-deb: error: .* subprocess was killed by signal`), "» the file /a is also in package b\ndpkg-deb: error: paste subprocess was killed by signal (Broken pipe)"},
	{tells, first, "rying to overwrite ", re(`^\s*[Tt]rying to overwrite `), "dpkg: error processing a (--configure):\n» trying to overwrite '/a', which is also in package b"},
	{tells, first, "╰─▶ ", re(`^\s*╰─▶ \S`), "error: No solution found\n»  ╰─▶ Because a has no wheels and you require a, they are unsatisfiable."},
	{sums, first, "failed to build", re(`^ERROR: Service '\S+' failed to build`), "»the destination must be a directory, it cannot be a file\nERROR: Service 'web' failed to build : Build failed"},
	{tells, first, "expected here", re(`^(?:An argument|Blocks of type|An attribute) .*not expected here`), "Error: Unsupported argument\n»An argument named \"a\" is not expected here."},
	{tells, last, "FAILED! =>", re(`^fatal: \[\S+\]: FAILED! => `), "failed: [a] (item=b) => {\"msg\": \"Request failed: error\"}\n»fatal: [a]: FAILED! => {\"msg\": \"no package\"}"},
	{tells, first, "The connection", re(`^\s*The connection to the server \S+ was refused`), "\"Unhandled Error\" err=\"couldn't get it: error: refused\"\n»The connection to the server a:80 was refused - is it right?"},
	{tells, first, "rror ", re(`^(?:\w+: )?Error (?:response )?from (?:daemon|server)\b`), "error: docker\n»Error response from daemon: pull access is off"},

	// SQL.
	{tells, first, "ORA-", re(`^ORA-\d+: `), "ERROR at line 1:\n»ORA-00942: table or view does not exist\nerror: stop"},

	// Other languages and frameworks.
	{tells, first, ": error ", re(`^\s*(?:\d+>)?\S.* ?: error [A-Z]+\d+: `), "    Failed to restore /a.csproj (in 1.4 sec).\n»    1>/a.csproj : error NU1102: Unable to find package B"},
	{tells, first, "Failure", re(`^\s*Assert\.\w+\(\) Failure`), "无法还原。\n» Assert.Equal() Failure: Values differ\nExpected: 1"},
	{tells, first, "Failed asserting", re(`^Failed asserting that `), "1) A::testB\nThis will fail\n»Failed asserting that two strings are equal.\n\nThere was an error: 3"},
	{drop, first, "(", re(`^\s*\S.* \((?:package|dart|file):\S+\)$`), "#0      fail (package:matcher/src/expect.dart:9:31)\n»it is gone"},
	{tells, next, "was thrown", re(`^The following \w+ was thrown\b.*:$`), "The following TestFailure was thrown running a test:\n»  Which: means one was found\n00:03 +1 -1: test/a_test.dart: deletes a note [E]"},
	{sums, first, "could not compile", re(`^could not compile dependency `), "could not compile dependency :a, \"mix compile\" failed.\n»** (UndefinedFunctionError) function A.b/0 is undefined"},
	{sums, first, "Failed to", re(`^Failed to (?:update packages|compile)\.?$`), "»it is gone\nFailed to update packages."},
	{sums, first, "build finished", re(`^build finished with problems`), "»it is gone\nbuild finished with problems, 1 warning."},
	{named, first, ": WARNING: ", re(`^\S+:\d+: WARNING: `), "»/a.md:41: WARNING: unknown document: 'b'\nwriting pages... done"},
	{sums, first, "[S-", re(`^Error: \[S-\d+\]$`), "  1) A parses\n»       expected: Right 1\nError: [S-7282]"},
	{drop, first, "Pending: (", re(`^Pending: \(Failures listed here`), "Pending: (Failures listed here are expected)\n»it is gone"},
	{tells, next, "unable to load", re(`unable to load shared object '.*':$`), "Error in dyn.load(file) :\n  unable to load shared object '/a.so':\n»  libb.so.0: cannot open it"},
	{tells, first, "no package called", re(`there is no package called `), "ERROR: lazy loading failed for package ‘a’\n»  there is no package called ‘b’"},
	{tells, next, "Failure/Error:", re(`^\s*Failure/Error: `), "Failures:\n  Failure/Error: f(1)\n\n»  expected: 1\nerror: 1"},
	{tells, first, ".lua:", re(`^lua\S*: \S+\.lua:\d+: `), "»lua: a.lua:3: attempt to index a nil value\nstack traceback:\n\ta.lua:3: in main chunk"},
	{sums, first, "[FAILED] [", re(`^\W*\[FAILED\] \[`), "• [FAILED] [0.001 seconds]\n»  Expected\n      <int>: 3"},
	{tells, next, "}>:", re(`^\s*\{\w+\}>:$`), "Unhandled TYPE-ERROR in thread #<RUNNING\n   {1001348003}>:\n»  The value 3 is no list"},
	{perhaps, next, "aborted!", re(`^\w+ aborted!$`), "rails aborted!\n»ActiveRecord::PendingMigrationError:\nerror: a"},
	{perhaps, next, "Description:", re(`^Description:$`), "ERROR 1 --- [main] o.s.b.d.Reporter :\n\nDescription:\n\n»Port 80 was already in use."},
	{tells, next, "Error Message:", re(`^\s*Error Message:$`), "  Failed A.B [12 ms]\n  Error Message:\n»   it was 3\n  error: a"},

	// What wraps any of them.
	{sums, first, "..", re(`(?i)\.{4,} ?(?:[\d.]+ ?m?s )?FAIL(?:ED)?$`), "check for large files...........Failed\n»a.bin (8 MB) exceeds 500 KB."},
	{drop, first, "...", re(`\.\.\. error$`), "Preparing metadata ... error\n»it has no Cargo"},
	{drop, first, "- ", re(`^- (?:hook id|exit code|duration): `), "»it is gone\n- hook id: check-error"},
	{exactly, last, "", re(`(?i)^\[?(?:The (?:last )?command .*|Command |EXECUTION )?(?:has )?timed out\b`), "[!] internal error: x\n»Command timed out"},
	{perhaps, next, ":", re(`(?i)^\W{0,3}(?:\w+ )?(?:errors?|exception|failure)(?: occurred| during \w+)?:(?: [|>]-)?$`), "warning: failed to error: x\nSphinx error:\n»Builder name HTML is not there"},
	{certain, first, "E", re(`^(?:\w+\.)*\w+(?:Error|Exception)$`), "»asyncio.exceptions.TimeoutError\nthe task failed"},
	{drop, first, ">", re(`^</?\w+>$`), "»it is gone\n</result>"},
	{drop, first, "[no output]", re(`^\[no output\]$`), "»it is gone\n[no output]"},
	{sums, first, "", re(`(?i)^(?:\S+: )?(?:error:? )?[^:]{0,60}\b(?:exit|exited|returned)(?: with)?(?: non-zero)?(?: status| code)*:? ?\d+\W*(?:\(error\))?$`), "error: script exited with code 2\n»the lamp is out"},
	{sums, first, "", re(`(?i)^(?:[\w ()]+: )?(?:Error is not recoverable: |execution of \S+ |BEGIN failed--)?(?:compilation )?(?:exiting|aborting|aborted|terminated)\b`), "»gzip: stdin: not in gzip format\ntar: Error is not recoverable: exiting now"},
	{sums, first, "ail", re(`^(?:\W*|There w\w+ |\d+% tests passed, |(?:Test Suites|Test Files|Tests):? +)\d+ (?:tests? )?(?:failed|failing|failures?)\b`), "There was 1 failure:\n»it was 3"},
	{sums, first, "", re(`Error applying plan:|^\W*Test suite failed to run$`), "Error: Error applying plan:\n\n1 error(s) occurred:\n\n»* it is lost: Error of a: denied"},
	{sums, first, "rror", re(`^\W*(?:Found )?\d+ (?:errors?\b|problems? \()`), "Found 3 errors in a.ts\n»it was 3"},
}

var (
	escape    = re(`\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()].|\x1b[@-Z\\-_]`)
	logPrefix = re(`^==\d+==\s?|^INTERNALERROR> |^#\d+ (?:\d+\.\d+ )?|^[\[(]?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?[\])]?(?: +|$)|^\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?: +|$)|^\[\d\d-\w{3}-\d{4} [^\]]*\] |^[IWEF]\d{4} [\d:.]+ +\d+ \S+:\d+\] |^[│╷╵] ?`)
	seconds   = re(`^\d+\.\d+ |^[\w.-]+ +\|(?: |$)`)
	status    = re(`^(?:<returncode>(\d+)</returncode>|\[exit (\d+)\]|(?:Command|Process) exited with code (\d+)|Exit code:? (\d+))$`)

	place = re(`[\w@~./\\-]+\.\w+(?::\d+|\(\d+|:\[\d+|", line \d+)`)
	label = re(`(?i)^(?:\S+:\s+|\S+ - |[^\s(]+\(\d+(?:, ?\d+)?\):?\s+)*\W{0,4}(?:\w+ ){0,2}(?:[\w.]*(?:error|exception|rejection)(?: (?:executing|running|while|during|in|at|near)\b[^:]{1,40})?|fatal|panic|fail(?:ed|ure)?|(?:致命)?错误|异常|エラー|fehler|erreur|errore|ошибка)\s*(?:\[\w+\]|\([^)]*\)|[A-Z]*\d+)?\s*[:：]`)
	// answer matches what a program says in the words of the operating system or the shell.
	answer = re(`(?i)^(?:[^\s:]+: )+.*(?:No such file or directory|not found|Permission denied|Is a directory|Not a directory|File exists|not permitted|Connection refused|Invalid argument|Read-only file system|No space left on device|Bad Request|Forbidden|Unauthorized|Internal Server Error|Service Unavailable|Aucun fichier ou dossier de ce type|Datei oder Verzeichnis nicht gefunden|そのようなファイルやディレクトリはありません|没有那个文件或目录|权限不够|未找到命令)(?: \(\d+\)|\))?$`)
	quiet  = re(`(?i)^(?:\S+:\s+|\d+:\d+\s+)*\W{0,3}(?:usage:|(?:\w*warning|warn|deprecat\w+|note|hint|info|debug)\b)|\b(?:0|no) (?:errors?|failures?|failed)\b`)
	// fails matches a sentence that begins with what could not be done or found.
	fails = re(`(?i)^(?:[\w./@-]+: )*(?:cannot|can't|could(?: not|n't)|failed to|unable to|invalid|unknown|unrecognized|unsupported|missing|illegal|no (?:\S+ ){1,6}(?:found|match(?:es|ed)?|named|specified|given))\b|^e: |^\*\* \(\w|^\d+:\d+\s+error\b|\((?:\w+::)*\w*(?:Error|Exception)\)$`)
	// aside matches what to do about a failure, a frame of a stack, and a place alone.
	aside   = re(`^\(?(?:To|If you|Use|Run|Try|[Ss]ee|Please|When you|You can|Did you mean|The most similar|For more|For a full|A (?:full|complete) log|Hint)\b|^at .*(?::\d+\)?|\))$|^(?:file://|node:)?[\w@~./\\-]+(?::\d+)+$`)
	capital = re(`^[A-Z]`)
	// doing matches what a program says of its work.
	doing = re(`^[^:]+: (?:\w+ing|Removing)\b`)
	// ruler matches a heading between two rulers.
	ruler = re(`^(?:[=_*-]{3}|══).*(?:[=_*-]{3}|══)$`)
	// labelled matches a line that a program begins with a word of its own.
	labelled = re(`^\w[\w-]{1,20}: `)
	code     = re(`^(?:raise|return|except|assert|print|if|throw|catch|import|from|def|func|class)\b|^>\s|^\d+\s*[:|]\s`)
)

// endings are the phrases by which agents' harnesses report a call that was ended early or not started.
// Those marked notRun count only if no process ran: a program may print the same about its own arguments.
var endings = []struct {
	reason  string
	notRun  bool
	re      func() *regexp.Regexp
	example string
}{
	{"timeout", false, re(`^EXECUTION TIMED OUT`), "EXECUTION TIMED OUT"},
	{"timeout", false, re(`^\[?(?:The (?:last )?[Cc]ommand\b.*|Command |command )?(?:timed out|has timed out)\b`), "[timed out after 2m0s: the command and everything it had started were ended]"},
	{"timeout", false, re(`^\W?(?:The )?[Cc]ommand (?:was |has )?(?:killed by timeout|no new output after|.*exceeded the timeout)`), "Command killed by timeout (60s)"},
	{"aborted", false, re(`^(?:Command aborted|\[interrupted: |\[Request interrupted by user|Tool execution was (?:aborted|cancelled)|Request was aborted)`), "Command aborted"},
	{"refused", true, re(`^(?:The user doesn't want to proceed|exec command rejected|Tool use was rejected|failed in sandbox)`), "exec command rejected by user"},
	{"refused", true, re(`(?i)^(?:error: )?(?:the )?user (?:rejected|denied|declined) |^permission to use .* denied|\brequires approval\b|\b(?:blocked|rejected|denied) by (?:the )?(?:policy|sandbox|user)\b`), "Error: This command was blocked by the sandbox"},
	{"refused", true, re(`^Not run: (?:this same|the (?:person|user|turn|step|call)|a script)`), "Not run: this same Bash call was made 3 times in a row."},
	{"unknown tool", true, re(`^(?:<tool_use_error>)?(?:Error: )?(?:There is no tool |No such tool|[Uu]nknown tool\b|[Tt]ool \S+ (?:not found|does not exist|is not available)|[Tt]ool not found)`), "There is no tool \"Bahs\"."},
	{"bad argument", true, re(`^\w+ was not run: `), "ReadFile was not run: the arguments must be a JSON object, not a list."},
	{"bad argument", true, re(`^(?:<tool_use_error>)?(?:Error: )?(?:InputValidationError|MCP error -32602|Invalid (?:tool )?(?:arguments|parameters|params)\b|[Ii]nvalid arguments for|Validation failed for tool|[Mm]issing required (?:argument|parameter)|Malformed command)`), "InputValidationError: Read failed: the parameter `path` is missing"},
}
