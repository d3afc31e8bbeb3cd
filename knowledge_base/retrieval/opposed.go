package retrieval

import (
	"slices"
	"strings"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// negations turn round what is said in the next negationReach words.
const (
	negations     = "not never no cannot avoid without dont 不要 不能 不会 禁止 避免 切勿 不应 无法"
	negationReach = 3
)

// reversals are words of which one text has the first and the other the second
// where they say opposite things.
const reversals = "enable/disable allow/forbid increase/decrease raise/lower before/after true/false add/remove always/never " +
	"safe/unsafe open/close 启用/禁用 增加/减少 打开/关闭 之前/之后 开启/关闭 增大/减小"

// stance is which words a text says, and which of them it denies.
type stance struct{ said, denied map[string]bool }

func stanceOf(text string) stance {
	st := stance{make(map[string]bool), make(map[string]bool)}
	text = strings.NewReplacer("n't", " not", "n’t", " not").Replace(strings.ToLower(text))
	for _, clause := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".,;:!?\n。，；：！？", r) }) {
		reach := 0
		lexical.Words(clause, func(w string) {
			switch {
			case slices.Contains(strings.Fields(negations), w):
				reach = negationReach
			case lexical.IsFunctionWord(w):
			case reach > 0:
				st.denied[w] = true
				reach--
			default:
				st.said[w] = true
			}
		})
	}
	return st
}

// against reports whether st denies what the other says and never denies.
func (st stance) against(other stance) bool {
	for w := range st.denied {
		if !st.said[w] && other.said[w] && !other.denied[w] {
			return true
		}
	}
	return false
}

// opposed reports whether one of two texts that resemble one another denies or
// reverses what the other says, as far as single words tell.
func opposed(a, b string) bool {
	x, y := stanceOf(a), stanceOf(b)
	if x.against(y) || y.against(x) {
		return true
	}
	only := func(x, y stance, w string) bool { return x.said[w] && !y.said[w] }
	for pair := range strings.FieldsSeq(reversals) {
		p, q, _ := strings.Cut(pair, "/")
		p, q = lexical.Stem(p), lexical.Stem(q)
		if only(x, y, p) && only(y, x, q) || only(y, x, p) && only(x, y, q) {
			return true
		}
	}
	return false
}
