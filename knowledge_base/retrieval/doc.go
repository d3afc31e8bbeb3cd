// Package retrieval finds, among many short texts, the few that matter for a
// question, an error message or a situation, and says when there are none.
//
// Two legs: BM25 over words, and BM25 over character 4-grams (Chinese, Japanese
// and Korean by character bigrams). With an embedder there is a third: the cosine of
// vectors, in memory by chromem-go. Each leg is divided by its best score and they are
// added with fixed weights; ties go by id. Whether anything is found at all is
// decided on evidence that is not normalised: what share of the query's highest
// possible score a text reaches.
//
// An index is a function of the documents it holds: however they came to be
// there, the same documents produce the same answers to the byte. It is
// independent of cards, and uses the disk only to store vectors.
package retrieval
