package retrieval

import "anamnesis/knowledge_base/retrieval/internal/lexical"

// Words passes on the words of a text as the index compares them: in lower case, English ones without endings,
// identifiers whole and in their parts, Chinese and Japanese as pairs of characters.
func Words(text string, emit func(string)) { lexical.Words(text, emit) }

// IsFunctionWord reports whether a word of Words says nothing of a text's subject.
func IsFunctionWord(word string) bool { return lexical.IsFunctionWord(word) }
