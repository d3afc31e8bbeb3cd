// Package retrieval finds, among many short texts, the few that matter for a
// question, an error message or a situation, and says when there are none.
//
// Three legs: BM25 over words, BM25 over character 4-grams (Chinese, Japanese
// and Korean by character bigrams), and the cosine of vectors: those of an
// external embedder in memory by chromem-go, or those of the built-in one, made for the best
// of the other legs only. Each leg is divided by its best score and they are
// added with fixed weights; ties go by id. Whether anything is found at all is
// decided on evidence that is not normalised: what share of the query's highest
// possible score a text reaches.
//
// An index is a function of the documents it holds: however they came to be
// there, the same documents produce the same answers to the byte. It knows
// nothing of cards, and of the disk only where it keeps the vectors it made.
package retrieval
