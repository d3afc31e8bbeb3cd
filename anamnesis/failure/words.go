package failure

import (
	"strings"
)

// maxErrorWordBytes is the length of the longest word isErrorWord knows.
const maxErrorWordBytes = len("segmentation")

// namesError recognises lines that say what went wrong, by their words, in any
// letter case. Outputs have many lines, so it looks at each byte once.
func namesError(line string) bool {
	if len(line) > 1 && line[0]|0x20 == 'e' && isBlank(line[1]) {
		return true // pytest's margin
	}
	ascii := true
	before, gap := "", byte(0) // the word before, and what lies between where that is one byte
	for i := 0; i < len(line); {
		if !isWordByte(line[i]) {
			ascii = ascii && line[i] < 0x80
			i++
			continue
		}
		start := i
		for i < len(line) && isWordByte(line[i]) {
			i++
		}
		word := lowerEnd(line[start:i])
		if isErrorWord(word) || isErrorPair(before, gap, word) || strings.HasPrefix(lowerStart(line[start:i]), "assert") {
			return true
		}
		if i < len(line) && (line[i] == ':' || strings.HasPrefix(line[i:], " [")) && (strings.HasSuffix(word, "error") || strings.HasSuffix(word, "exception") || strings.HasSuffix(word, "rejection")) {
			return true // TypeError:
		}
		before, gap = word, 0
		if i+1 < len(line) && isWordByte(line[i+1]) {
			gap = line[i]
		}
	}
	if ascii {
		return false
	}
	for _, w := range []string{"错误", "失败", "异常", "找不到", "没有", "无法", "未找到", "不存在", "不允许", "不够", "拒绝", "未定义", "缺少", "未声明", "冲突", "エラー", "失敗", "ありません", "できません", "échec", "unmöglich", "ошибк", "не удалось"} {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}

// lowerEnd returns a word in lower case, cut to its last maxErrorWordBytes+1 bytes. No word that is
// compared with it is as long.
func lowerEnd(word string) string {
	return strings.ToLower(word[max(0, len(word)-maxErrorWordBytes-1):])
}

func lowerStart(word string) string { return strings.ToLower(word[:min(len(word), len("assert"))]) }

func isErrorWord(word string) bool {
	switch word {
	case "error", "errors", "fail", "failed", "failure", "fatal", "panic", "exception", "traceback", "undefined", "cannot",
		"denied", "refused", "unknown", "invalid", "unexpected", "expected", "missing", "mismatch", "conflict", "unable",
		"abort", "aborted", "timeout", "timedout", "want", "segmentation", "unresolved", "undeclared", "fehler", "erreur", "impossible", "introuvable",
		"unhandled", "uncaught", "terminating", "killed", "crashed", "illegal", "unbound", "unsupported", "unrecognized", "rejected", "violation",
		"violates", "unterminated", "mismatched", "incompatible", "ambiguous", "forbidden", "unauthorized", "unreachable", "exceeded", "exceeds",
		"overflow", "corrupt", "malformed":
		return true
	}
	return false
}

// isErrorPair looks at two words and the one byte between them.
func isErrorPair(before string, gap byte, word string) bool {
	switch {
	case gap == '\'':
		return (before == "can" || before == "couldn") && word == "t"
	case gap != ' ':
		return false
	}
	switch before {
	case "could", "can":
		return word == "not"
	case "not":
		switch word {
		case "found", "exist", "exists", "allowed", "supported", "permitted", "recognized", "defined", "installed", "available":
			return true
		}
	case "t":
		return word == "exist"
	case "no":
		return word == "such"
	case "time", "timed":
		return word == "out"
	}
	return false
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' && c != '\v' }
