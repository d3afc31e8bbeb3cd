package redact

import (
	"strings"

	"anamnesis/anamnesis/shell"
)

// maxCommandBytes is how far after a command's name its options are searched.
const maxCommandBytes = 512

// minOptionBytes is the shortest password after an option that also names a user, whose form is
// unambiguous.
const minOptionBytes = 2

// commandForm is a command's option whose value is a secret, although its name does not say so.
type commandForm struct {
	commands string // separated by blanks
	flag     string // "": one that takes USER:PASSWORD; see loginOption
	attached bool   // its value follows without a blank
	separate bool   // its value is the next word
	login    bool   // only of the command's login, where elsewhere the flag means a port or a profile
}

func commandForms() []commandForm {
	return []commandForm{
		{commands: "curl"},
		{commands: "mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlshow mariadb mariadb-dump " +
			"mariadb-admin mycli", flag: "-p", attached: true},
		{commands: "mongo mongosh mongodump mongorestore mongoimport mongoexport sshpass", flag: "-p",
			attached: true, separate: true},
		{commands: "7z 7za 7zz unrar rar", flag: "-p", attached: true},
		{commands: "docker podman nerdctl helm skopeo crane oras buildah oc az cf", flag: "-p",
			separate: true, login: true},
		{commands: "ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldappasswd", flag: "-w",
			attached: true, separate: true},
		{commands: "sqlcmd bcp unzip zip ipmitool mosquitto_pub mosquitto_sub", flag: "-P",
			attached: true, separate: true},
		{commands: "redis-cli", flag: "-a", separate: true},
		{commands: "redis-cli", flag: "--pass", separate: true},
		{commands: "keytool jarsigner", flag: "-storepass", separate: true},
		{commands: "keytool jarsigner", flag: "-keypass", separate: true},
		{commands: "ssh-keygen", flag: "-N", separate: true},
		{commands: "ssh-keygen", flag: "-P", separate: true},
	}
}

// loginOption matches an option of curl up to the password of its USER:PASSWORD; its group is the quote.
var loginOption = shell.Pattern(`^(?:--(?:proxy-)?user(?:=|[ \t]{1,65})|-[A-Za-z]*?[uU][ \t]{0,65})(` + quoteForm +
	`)(?:[^:\s"'\x60\\&,;<>|]|\\[^\s"'\x60\\nrtu]){1,256}:`)

func (f commandForm) option(s string, from, at int) (match, bool) {
	if f.flag == "" {
		m := loginOption().FindStringSubmatch(s[at:min(len(s), at+maxCommandBytes)])
		if m == nil {
			return match{}, false
		}
		at += len(m[0])
		n, open := argument(s, at, m[1], false)
		if n < minOptionBytes || placeholder(s[at:at+n]) {
			return match{from: from, open: open}, false
		}
		return match{start: at, end: at + n, from: from, kind: "password", rank: rankNamed, open: open}, true
	}
	if !strings.HasPrefix(s[at:], f.flag) || f.login && !strings.Contains(s[from:at], " login ") {
		return match{}, false
	}
	at += len(f.flag)
	blank := spaces(s, at)
	if blank == 0 && !f.attached || blank > 0 && !f.separate {
		return match{}, false
	}
	quote := quotes(s, at+blank)
	at += blank + quote
	n, open := argument(s, at, s[at-quote:at], true)
	value := s[at : at+n]
	find := strings.HasPrefix(value, "rint") // -print, of another command
	if n < minAttachedBytes || find || placeholder(value) || blank > 0 && !optionSecret(value, "password") {
		return match{from: from, open: open || at+n == len(s)}, false
	}
	return match{start: at, end: at + n, from: from, kind: "password", rank: rankNamed, open: open}, true
}

// argument returns the length of a value that begins at byte at, in a word of a command behind a quote, which may be
// empty; see quotedValue and plainValue.
func argument(s string, at int, quote string, joined bool) (n int, open bool) {
	if quote != "" {
		n, open = quotedValue(s, at, quote)
	}
	if n == 0 {
		n = plainValue(s, at, quote != "", joined)
	}
	return n, open
}

// minAttachedBytes is the shortest password behind an option of a command.
const minAttachedBytes = 3

// command returns the rule for one command of a form: it searches the options up to the end of the command.
func (f commandForm) command(name string) func(s string, from, to int) (match, bool) {
	return func(s string, from, to int) (match, bool) {
		if !wordStarts(s, from) || to < len(s) && s[to] > ' ' {
			return match{}, false
		}
		at := to
		for at < len(s) && at-to <= maxCommandBytes {
			switch c := s[at]; {
			case c == '\n' && s[at-1] != '\\', strings.IndexByte("|;", c) >= 0,
				c == '\\' && at+1 < len(s) && (s[at+1] == 'n' || s[at+1] == 'r'), strings.HasPrefix(s[at:], name+" "):
				return match{}, false // the command is over
			case c == '-' && s[at-1] <= ' ':
				if m, ok := f.option(s, from, at); ok || m.open {
					return m, ok
				}
			}
			at++
		}
		return match{from: from, open: at == len(s)}, false
	}
}

// option matches the value of --password VALUE, if the keyword ends the option's name. In
// texts, words and names of files follow such options, so a value must hold more than letters.
func option(s string, begin, to int, kind string) (match, bool) {
	at := to + spaces(s, to)
	if at == to {
		return match{}, false
	}
	quote := quotes(s, at)
	at += quote
	n, open := argument(s, at, s[at-quote:at], false)
	if quote == 0 {
		n = sentenceEnd(s, at, n)
	}
	if n < minShoutedBytes || !optionSecret(s[at:at+n], kind) {
		return match{from: begin, open: open}, false
	}
	return match{start: at, end: at + n, from: begin, kind: kind, rank: rankNamed, open: open}, true
}

func optionSecret(v, kind string) bool {
	if placeholder(v) || strings.ContainsAny(v[:1], "-~@./") || strings.ContainsAny(v, "()[]{}*") || dotted(v) ||
		strings.Contains(strings.TrimRight(v, "="), "=") || strings.Contains(v, "://") ||
		strings.Contains(v, "/") && pathLooking("/"+v) {
		return false
	}
	m := makeupOf(strings.ReplaceAll(v, " ", ""))
	return m.digits+m.others > 0 && (m.letters() > 0 || kind == "password")
}
