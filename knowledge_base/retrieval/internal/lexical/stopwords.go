package lexical

import (
	"strings"
	"sync"
)

// englishFunctionWords are Snowball's stop words without the contractions
// (snowballstem.org, algorithms/english/stop.txt, BSD), and the verbs and
// adjectives behind them that questions are filled with.
const englishFunctionWords = `
a about after again all am an and any are as at be because been before being both but by cannot could did do
does doing down during each few for from further had has have having he her here hers herself him himself his
how i if in into is it its itself me more most my myself no nor not of off on once only or other ought our ours
ourselves out over own same she should so some such than that the their theirs them themselves then there these
they this those to too up
very was we were what when where which while who whom why with would you your yours yourself yourselves
also can don get go good have here just let like make may more much must need new now one please put s same t
take us use used using want way well will`

// chineseFunctionWords are bigrams: the two-character words of Baidu's list
// (raw/baidu.txt in stopwords-iso/stopwords-zh, MIT) that questions are made of,
// and the seams and question words beside them (没有, 请问, 是什).
const chineseFunctionWords = `
什么 怎么 如何 这个 我们 可以 不是 怎样 时候 还是 但是 因为 所以 才能 多少 哪些 哪里 哪个 这样 那个 他们 自己 或者
的是 一个 为什 么办 没有 请问 的时 之后 以后 之前 以前 有没 是什 需要 已经 里面 多久 哪一 一下 帮我 应该 能不 是不`

// functionWords has the words that say little about what a text is about, as
// [words] emits them.
var functionWords = sync.OnceValue(func() map[string]bool {
	out := make(map[string]bool)
	for _, list := range []string{englishFunctionWords, chineseFunctionWords} {
		for w := range strings.FieldsSeq(list) {
			out[w], out[stem(w)] = true, true
		}
	}
	return out
})

// IsFunctionWord reports whether a term says little about what a text is about.
// Words that are code as well (if, not, for) are among them: alone they prove
// nothing.
func IsFunctionWord(w string) bool { return functionWords()[w] }

// ReportsFailure reports whether a term is one that a quoted failure has.
func ReportsFailure(w string) bool {
	switch w {
	case "error", "exception", "fatal", "panic", "traceback", "err", "报错", "异常":
		return true
	}
	return false
}
