package op

// ContextMasked replaces tool results in the context by one line each. The full results stay
// in the stream, where recall opens them.
type ContextMasked struct {
	Results []MaskedResult `json:"results"`
	Before  int            `json:"before"` // tokens of the context before
	After   int            `json:"after"`  // and after
	Limit   int            `json:"limit"`  // tokens above which the context is made smaller
	Target  int            `json:"target"` // tokens it is to come down to
	Why     string         `json:"why"`    // window | overflow
}

// MaskedResult is one result that was masked.
type MaskedResult struct {
	Seq  uint64 `json:"seq"`  // of the tool.returned
	Line string `json:"line"` // replaces it
	Tok  int    `json:"tok"`  // tokens of the line
}
