package retrieval

import (
	"strings"
	"sync"
)

// englishFunctionWords are Snowball's stop words without the contractions
// (snowballstem.org, algorithms/english/stop.txt, BSD), and the verbs and
// adjectives behind them that questions are filled with.
const englishFunctionWords = `
a about after again all am an and any are as at be because been before being both but by cannot could
did do does doing down during each few for from further had has have having he her here hers herself him himself his how i if in
into is it its itself me more most my myself no nor not of off on once only or other ought our ours ourselves out over own same
she should so some such than that the their theirs them themselves then there these they this those to too up
very was we were what when where which while who whom why with would you your yours yourself yourselves
also can don get go good have here just let like make may more much must need new now one please put s same t take us use used
using want way well will`

// chineseFunctionCharacters are those of stopwords-iso/stopwords-zh (MIT),
// which lists single characters. A bigram of two of them is a function word.
const chineseFunctionCharacters = "一上下不与且个为乃么之也了于些亦人今仍从他以们但何你使儿其再几凡凭则别到即却去又及另只可各同后向吧和咱哇哟哪啥啦嗡嘛因在她好如它小尔已并当往很得怎您我或所打把拿据无既是曾最有来某此每比沿用由的看着给而自至致若虽被让该诸谁起趁距跟还这那随靠"

// chineseFunctionWords are bigrams of questions that the characters miss.
const chineseFunctionWords = `
什么 为什 没有 怎样 请问 时候 的时 之前 以前 有没 是什 么办 才能 需要 已经 里面 多少 多久 哪里 帮我
这样 自己 应该 能不 或者`

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

// isFunctionWord reports whether a term says little about what a text is about.
// Words that are code as well (if, not, for) are among them: alone they prove
// nothing.
func isFunctionWord(w string) bool {
	if functionWords()[w] {
		return true
	}
	characters := 0
	for _, r := range w {
		if characters++; characters > 2 || !strings.ContainsRune(chineseFunctionCharacters, r) {
			return false
		}
	}
	return characters == 2
}
