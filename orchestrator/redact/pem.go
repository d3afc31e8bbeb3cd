package redact

import (
	"encoding/base64"
	"strings"
)

const (
	pemBegin = "-----begin " // lower case, as keywords are
	pemEnd   = "-----END"
	// maxPEMLabel is the longest label between BEGIN and the dashes.
	maxPEMLabel = 40
	// minPEMRun is the shortest run of base64 that counts as a line of a key, except the last.
	minPEMRun = 20
	// maxPEMLine is the longest line of a key, which may be a whole key.
	maxPEMLine = 16 << 10
)

// keyBegins reports whether a private key begins at the keyword that ends at byte at, and
// returns the offset of its body.
func keyBegins(s string, at int) (body int, ok bool) {
	label := s[at:min(len(s), at+maxPEMLabel)]
	end := strings.Index(label, "-----")
	if end < 0 || !strings.Contains(label[:end], "PRIVATE KEY") {
		return 0, false
	}
	return at + end + len("-----"), true
}

// keyLines adds a match for each line of a private key's body, which begins at byte at. A line
// is redacted by itself, so that numbered lines, quoted ones and those of a diff keep their
// places. It returns where the body ends, and whether the text ended first. A line that cannot
// be part of a key also ends it. within reports that lines of the key came before.
func keyLines(ms []match, s string, at int, within bool) (out []match, end int, more bool) {
	for at < len(s) {
		lineEnd, next := lineBreak(s[:min(len(s), at+maxPEMLine+1)], at)
		line := s[at:lineEnd]
		if stop := strings.Index(line, pemEnd); stop >= 0 {
			n := len(ms) // a short word counts behind long ones, on one line
			if ms = addKeyLine(ms, s, at, at+stop, true); len(ms) == n+1 && ms[n].end-ms[n].start < minPEMRun {
				ms = ms[:n]
			}
			return ms, at + stop, false
		}
		switch {
		case len(line) > maxPEMLine:
			return ms, at, false
		case keyHeader(line), !within && armorHeader(line):
		default:
			// The last short line of a key precedes its end.
			after, _ := lineBreak(s[:min(len(s), next+maxPEMLine+1)], next)
			last := strings.Contains(s[next:after], pemEnd)
			n := len(ms)
			if ms = addKeyLine(ms, s, at, lineEnd, last || within && next == len(s)); len(ms) == n {
				return ms, at, after == len(s) // more text may complete it
			}
			within = true
		}
		at = next
	}
	return ms, at, true
}

// lineBreak returns the end of the line that contains byte at, and the beginning of the next.
// An escaped line break, \n or \r\n, counts, too.
func lineBreak(s string, at int) (end, next int) {
	for i := at; i < len(s); i++ {
		switch {
		case s[i] == '\n':
			return i, i + 1
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 'r'):
			end = i
			for i+1 < len(s) && s[i] == '\\' && (s[i+1] == 'n' || s[i+1] == 'r') {
				i += 2
			}
			return end, i
		}
	}
	return len(s), len(s)
}

// keyHeader reports whether a line inside a key is blank or a header of an encrypted key.
func keyHeader(line string) bool {
	rest := strings.TrimLeft(line, " \t\r0123456789:+|>#*\"'`,\\")
	return rest == "" || strings.HasPrefix(rest, "Proc-Type:") || strings.HasPrefix(rest, "DEK-Info:")
}

// armorHeader reports whether a line before a key's first is a header of PGP: "Version: GnuPG v2".
func armorHeader(line string) bool {
	name, _, ok := strings.Cut(strings.TrimLeft(line, " \t0123456789|>+#*\"'"), ": ")
	return ok && isWord(name)
}

// encodedKeyBegin begins a private key in base64, like that of each PEM block.
const encodedKeyBegin = "LS0tLS1CRUdJTi"

// encodedKey returns the lines of a private key in base64, as a Kubernetes Secret and a kubeconfig hold it.
func encodedKey(s string, from, to int) (ms []match, end int, open bool) {
	set := newCharset(base64Std + "-_")
	label := s[from:min(len(s), from+maxEncodedLabel)]
	begins, _ := base64.RawStdEncoding.DecodeString(label[:set.run(label, 0)/4*4])
	if s[from:to] != encodedKeyBegin || !wordStarts(s, from) || !strings.Contains(string(begins), "PRIVATE KEY") {
		return nil, 0, len(s)-from < maxEncodedLabel
	}
	for at := from; ; {
		n := set.run(s, at)
		for pad := 0; pad < 2 && at+n < len(s) && s[at+n] == '='; pad++ {
			n++
		}
		if n > 0 {
			ms = append(ms, match{start: at, end: at + n, kind: "private-key", rank: rankProvider})
		}
		next := at + n + breakBehind(s, at+n)
		after := next + set.run(s, next)
		if n < maxEncodedLabel || next == at+n || !lineEnds(s, after) && s[after] != '=' {
			return ms, at + n, at+n == len(s) || next == len(s)
		}
		at = next
	}
}

// maxEncodedLabel is how much of an encoded key holds its label.
const maxEncodedLabel = 56

// addKeyLine adds the base64 at a line's end, and before it what blanks separate. short permits a short run at the end.
func addKeyLine(ms []match, s string, from, to int, short bool) []match {
	end := to
	for end > from && strings.IndexByte(" \t\r\"'`,;+\\", s[end-1]) >= 0 {
		end--
	}
	begin := end
	for begin > from && (isAlnum(s[begin-1]) || s[begin-1] == '+' || s[begin-1] == '/' || s[begin-1] == '=') {
		begin--
	}
	if begin > from && s[begin-1] == '\\' { // \t and the like: its letter is not the key's
		begin++
	}
	if n := end - begin; n < 1 || n < minPEMRun && !short {
		return ms
	}
	if begin > from && s[begin-1] == ' ' {
		ms = addKeyLine(ms, s, from, begin-1, false)
	}
	return append(ms, match{start: begin, end: end, from: begin, kind: "private-key", value: s[begin:end],
		rank: rankProvider})
}
