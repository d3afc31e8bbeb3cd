package op

// ContextMasked puts one line each in the place of tool results that the
// context held in full. What was there stays in the stream: recall opens it.
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
	Line string `json:"line"` // what stands in its place
	Tok  int    `json:"tok"`  // tokens of the line
}

// Kind implements Body.
func (*ContextMasked) Kind() Kind { return KindContextMasked }
