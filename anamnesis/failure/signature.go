package failure

import (
	"regexp"
	"strings"
	"unicode"
)

// variant is a part of a line that varies between runs of one trouble, and what
// stands for it. The example is a line and, after =>, its normal form; without
// the variant it has another one.
type variant struct {
	re      func() *regexp.Regexp
	with    string
	example string
}

// hole replaces what varies, such as a quoted value of longValueBytes.
const (
	hole           = "#"
	longValueBytes = 40
)

// variants are applied in order. What names the trouble stays: the exception's
// type, a missing module, a table, a symbol, an error's code.
var variants = []variant{
	{re(`^(?:E\s+|[\W]*- )`), "", "E       KeyError: 'a' => KeyError: 'a'"},
	{re(`^\{["']error["']: ["'](.*)["']\}$`), "$1", "{'error': 'it is gone'} => it is gone"},
	{re(`: error: \[GHC-\d+\]`), ": error:", "a.hs:3:1: error: [GHC-1] no => error: no"},
	{re(`^(?:[a-z_]\w*\.)+([A-Z]\w*(?:Error|Exception|Warning|Configured)\b)`), "$1", "sqlite3.OperationalError: no such table: a => OperationalError: no such table: a"},
	{re(`^npm ERR!`), "npm error", "npm ERR! code ENOENT => npm error code ENOENT"},
	{re(`-r \S+ \(line \d+\)`), "-r #", "ERROR: Cannot install -r base.txt (line 3) and a => ERROR: Cannot install -r # and a"},
	{re(`rejected\] +\S+ -> \S+`), "rejected] #", "! [remote rejected] HEAD -> tidy (hook declined) => ! [remote rejected] # (hook declined)"},
	{re(`^[^\s:]*:?\(\.[\w.]+\+0x[0-9a-f]+\): `), "", "a.c:(.text+0x1f): undefined reference to `f' => undefined reference to `f'"},
	{re(`(overwritten by \w+): .*`), "$1", "would be overwritten by merge: a.md => would be overwritten by merge"},
	{re(`(dubious ownership in repository at) '.*'`), "$1 #", "dubious ownership in repository at '/a/b' => dubious ownership in repository at #"},
	{re(`(there is no POM in this directory) \(.*?\)`), "$1", "there is no POM in this directory (/a/b), so => there is no POM in this directory, so"},
	{re(`no required module provides package \S+ ?go\.mod file not found.*`), "go.mod file not found", "a.go:3:2: no required module provides package b: go.mod file not found in it => go.mod file not found"},
	{re(`address already in use \S+`), "address already in use", "listen EADDRINUSE: address already in use :::3000 => listen EADDRINUSE: address already in use"},
	{re(`^So, because \S+ depends`), "So, because # depends", "So, because shop depends on a, it fails => So, because # depends on a, it fails"},
	{re(`on project \S+:`), "on project #:", "Failed to execute goal a:b on project shop: no => Failed to execute goal a:b on project #: no"},
	{re("^vet: | \\[recovered.*|^\\S+:\\d+:in ['`][^']*': |\\. Did you mean: .*\\?$| \\[\\S+proj(?:::\\S+)?\\]$"), "", "a.rb:5:in 'first': no name 'quote'. Did you mean: 'unquote'? => no name 'quote'"},
	{re(`^[^\s:()'"]+\.\w+(?:(?::\d+)+|\(\d+(?:,\d+)?\)):(?: -)? `), "", "src/a.go:3:2: undefined: f => undefined: f"},
	{re(`^\S+[:(]\d+[:,]\d+\)?(?: -|:) error (TS\d+)`), "error $1", "a.ts:3:5 - error TS2304: no 'f' => error TS2304: no 'f'"},
	{re(`^.*: -c: line \d+: `), "sh -c: ", "echo (: -c: line 1: unexpected end of file => sh -c: unexpected end of file"},
	{re(`^(?:[^\s:()'"]+: line \d+: |(?:\S*/)?(?:ba|da|z)?sh: (?:\d+: )?)`), "", "a.sh: line 3: x: command not found => x: command not found"},
	{re(`^(g?make)\[\d+\]: `), "$1: ", "make[3]: *** no rule => make: *** no rule"},
	{re("`(\\w+)`"), "$1", "`_iszero` not defined => _iszero not defined"},
	{re(`\b__main___\w+`), "__main___#", "no such table: __main___book => no such table: __main___#"},
	{re(`\bModel class \S+`), "Model class #", "Model class a.Book has no app_label => Model class # has no app_label"},
	{re(`\bRequested setting \w+`), "Requested setting #", "Requested setting USE_TZ, but => Requested setting #, but"},
	{re(`<(module|function|bound method) [^>]*>`), "<$1 #>", "<module 'a'> is lost => <module #> is lost"},
	{re(`^rm: cannot remove '[^']*'`), "rm: cannot remove #", "rm: cannot remove 'a.py': No such file => rm: cannot remove #: No such file"},
	{re(`can't (en|de)code (?:byte|character)s? .*in position [\d-]+`), "can't ${1}code #", "can't encode character '\\xf1' in position 4: no => can't encode #: no"},
	{re(`paths must precede expression: .*`), "paths must precede expression", "find: paths must precede expression: `a' => find: paths must precede expression"},
	{re(`\b[a-z]+://([^\s/'"]+)[^\s'")]*`), "$1", "GET https://a.org/b/c failed => GET a.org failed"},
	{re(`(?:[A-Za-z]:)?(?:[\w.@+~-]*[/\\])+([\w.@+-]*)`), "$1", "open '/a/b/c.txt' => open 'c.txt'"},
	{re(`\b(?:tmp|temp)[\w-]{6,}`), hole, "tmpab12cd_x is gone => # is gone"},
	{re(`\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b[0-9a-f]{12,64}\b|\b[a-z]*\d[a-z\d]{20,}\b`), hole, "commit bf3a1c9d00ee is gone => commit # is gone"},
	{re(`^fatal: \[\S+\]: (\w+)! .*"msg": "(.*?)".*`), "$1: $2", `fatal: [web]: FAILED! {"msg": "no such"} => FAILED: no such`},
	{re(`'[^']{40,}'`), hole, "'an output of the program that is quite long' is not 'a' => # is not 'a'"},
}

var (
	// number matches what may be a number, and before it what says that it is
	// an error's code.
	number = re(`(?i)(?:\b(?:errno|error|code|status|http)[ :(]{1,2})?\b(?:[a-z]+-?|_)?\d[\w.%]*`)
	coded  = re(`(?i)^(?:errno|error|code|status|http)[ :(]|^(?:TS|[A-Z]|CS|LNK|MSB|NU|ORA-?|SC|RUF|ERR|HTTP)\d{3,5}$`)
	quoted = re(`"[^"]*"`)
	digits = re(`\d[\d.]*`)
	listed = re(`#(?:[,:.;/ -]+#)+`)
	// compared matches assertion messages that do not name what was compared.
	compared = re("^error\\[E0308\\]: mismatched types$|^assertion `left .= right` failed|^Assertion with .= failed|^panic: runtime error: invalid memory address|strictly equal:|^Failed asserting that #|^Assert\\.\\w+\\(\\) Failure")
	saysName = re(`'\w{3,}'`)
	kind     = re(`^(?:[\w.]+\.)?(\w+)\b:?`)
)

// Normal takes what varies out of a line: directories, numbers, addresses,
// temporary names, long values.
func Normal(line string) string {
	for _, v := range variants {
		if v.re().MatchString(line) { // ReplaceAllString copies a line that has none
			line = v.re().ReplaceAllString(line, v.with)
		}
	}
	line = quoted().ReplaceAllStringFunc(line, func(s string) string {
		if len(s) < longValueBytes+2 {
			return s
		}
		return hole
	})
	line = number().ReplaceAllStringFunc(line, func(s string) string {
		if coded().MatchString(s) || len(digits().FindString(s)) < 3 && !unicode.IsDigit(rune(s[0])) {
			return s // a code, or a name such as utf8
		}
		if unicode.IsLetter(rune(s[0])) || s[0] == '_' {
			return digits().ReplaceAllString(s, hole)
		}
		return hole
	})
	line = listed().ReplaceAllString(strings.Join(strings.Fields(line), " "), hole)
	return strings.TrimSuffix(line, ".") // which some versions of a program write
}

// signature is a line's normal form. Where that says no more than the kind of
// the failure, the place tells two troubles apart.
func signature(line string, at spot) string {
	n := Normal(line)
	if at.file != "" && bare(n) {
		n += " @ " + strings.TrimSpace(at.file[strings.LastIndexAny(at.file, `/\`)+1:]+" "+at.in)
	}
	return n
}

// bare reports whether a normal form names no more than a kind of failure.
func bare(n string) bool {
	const fewest = 7 // letters that name something
	m := kind().FindStringSubmatch(n)
	if m == nil {
		return false
	}
	switch m[1] {
	case "SyntaxError", "IndentationError", "TabError":
		return !saysName().MatchString(n)
	}
	if compared().MatchString(n) {
		return true
	}
	letters := 0
	for _, r := range n[len(m[0]):] {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters < fewest
}

// spot is where a failure is.
type spot struct{ file, line, in string }

func (s spot) String() string {
	if s.file == "" {
		return ""
	}
	return s.file + ":" + s.line
}

var (
	spots   = re(`([\w@~./\\-]+\.\w+|<string>)(?::\[?|\(|", line )(\d+)(?:.*, in (\w+))?`)
	foreign = re(`site-packages|node_modules|/lib/python|<frozen|/usr/lib|node:internal|/unittest/|/rustc/|/usr/local/go|java\.base|importlib`)
)

// where finds the place of a failure: on its line, in the frames above where
// they end there, below, or just above. What is not of the project is passed over.
func (p *page) where(i int) spot {
	const below, near = 6, 3
	order := []int{i}
	for k := i - 1; k >= 0 && indent(p.lines[k]) > indent(p.lines[i]); k-- {
		order = append(order, k)
	}
	for k := i + 1; k < min(len(p.lines), i+1+below); k++ {
		order = append(order, k)
	}
	for k := i - 1; k >= max(0, i-near); k-- {
		order = append(order, k)
	}
	for _, k := range order {
		if foreign().MatchString(p.lines[k]) {
			continue
		}
		if m := spots().FindStringSubmatch(p.lines[k]); m != nil {
			return spot{m[1], m[2], m[3]}
		}
	}
	return spot{}
}
