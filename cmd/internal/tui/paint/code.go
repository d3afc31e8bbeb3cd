//go:build unix

package paint

import (
	"regexp"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
)

// comments holds how a comment begins, by language.
var comments = func() map[string]string {
	m := map[string]string{}
	for begin, languages := range map[string]string{
		`//[^\n]*|/\*(?s:.*?)\*/`: "c cc cpp c++ cs csharp css dart go golang java javascript js json json5 jsonc " +
			"jsx kotlin less php proto rs rust scala scss swift ts tsx typescript",
		`#[^\n]*`: "bash cmake conf console dockerfile elixir fish ini make makefile nix perl pl powershell py " +
			"python r rb ruby sh shell toml yaml yml zsh",
		`--[^\n]*`: "haskell hs lua sql psql sqlite",
	} {
		for l := range strings.FieldsSeq(languages) {
			m[l] = begin
		}
	}
	return m
}()

// keywords of all these languages; in SQL in capitals as well.
var keywords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
		and any as assert async await bool break by case catch chan char class const continue create def default
		defer del delete do done double elif else end enum esac except export extends false False fi final
		finally float fn for from func function global go goto group having if impl implements import in insert
		int interface into is join lambda left let limit local loop map match mod module mut namespace new nil
		none None not null of on or order package pass private protected pub public raise range require return
		right select self set static string struct super switch table template then this throw throws trait true
		True try type typedef typeof union unless unsafe until update use using val values var virtual void
		where while with yield`) {
		m[w] = true
	}
	return m
})

// Code colours the comments, strings, numbers and keywords of a program text, and the lines of
// a diff. It returns the lines of a language it does not know as they are.
func Code(code, language string) []string {
	language = strings.ToLower(language)
	if language == "diff" || language == "patch" {
		return Patch(code)
	}
	comment, ok := comments[language]
	if !ok {
		return strings.Split(code, "\n")
	}
	re := regexp.MustCompile(`(` + comment + `)|("""(?s:.*?)"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|` +
		"`[^`]*`" + `)|(\b\d[\w.]*)|([A-Za-z_]\w*)`)
	styles := []lipgloss.Style{Faint, Green, Purple, Blue}
	var sb strings.Builder
	end := 0
	for _, m := range re.FindAllStringSubmatchIndex(code, -1) {
		sb.WriteString(code[end:m[0]])
		token := code[m[0]:m[1]]
		end = m[1]
		for i, style := range styles {
			if m[2*i+2] < 0 {
				continue
			}
			if i == 3 && !keywords()[token] &&
				!(strings.HasSuffix(language, "sql") && keywords()[strings.ToLower(token)]) {
				sb.WriteString(token)
				continue
			}
			for j, line := range strings.Split(token, "\n") { // each line begins and ends its own style
				if j > 0 {
					sb.WriteByte('\n')
				}
				if line != "" {
					sb.WriteString(style.Render(line))
				}
			}
		}
	}
	sb.WriteString(code[end:])
	return strings.Split(sb.String(), "\n")
}
