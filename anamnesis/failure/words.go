package failure

import (
	"slices"
	"strings"
)

// namesError recognises lines that say what went wrong, by their words, in any letter case.
// Outputs have many lines: one regular expression for all takes a hundred times as long.
func namesError(line string) bool {
	line = strings.ToLower(line)
	if strings.HasPrefix(line, "e ") || strings.HasPrefix(line, "e\t") {
		return true // pytest's margin
	}
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r >= 0x80 || !isWordByte(byte(r)) }) {
		if isErrorWord(word) || strings.HasPrefix(word, "assert") {
			return true
		}
	}
	return slices.ContainsFunc(errorPhrases, func(phrase string) bool { return strings.Contains(line, phrase) })
}

var errorPhrases = []string{
	"error:", "error [", "exception:", "exception [", "rejection:", "rejection [", // TypeError:
	"can't", "couldn't", "could not", "can not", "n't exist", "no such", "time out", "timed out",
	"not found", "not exist", "not allowed", "not supported", "not permitted", "not recognized", "not defined",
	"not installed", "not available", "échec", "unmöglich", "ошибк", "не удалось",
	"错误", "失败", "异常", "找不到", "没有", "无法", "未找到", "不存在", "不允许", "不够", "拒绝",
	"未定义", "缺少", "未声明", "冲突", "エラー", "失敗", "ありません", "できません",
}

func isErrorWord(word string) bool {
	switch word {
	case "error", "errors", "fail", "failed", "failure", "fatal", "panic", "exception", "traceback", "undefined",
		"cannot", "denied", "refused", "unknown", "invalid", "unexpected", "expected", "missing", "mismatch",
		"mismatched", "conflict", "unable", "abort", "aborted", "timeout", "timedout", "want",
		"segmentation", "unresolved",
		"undeclared", "unhandled", "uncaught", "terminating", "killed", "crashed", "illegal", "unbound",
		"unsupported", "unrecognized", "rejected", "violation", "violates", "unterminated", "incompatible",
		"ambiguous", "forbidden", "unauthorized", "unreachable", "exceeded", "exceeds", "overflow", "corrupt",
		"malformed", "fehler", "erreur", "impossible", "introuvable":
		return true
	}
	return false
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
