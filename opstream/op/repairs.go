package op

// RepairsFound records a search, at a turn's end, for failed commands that later succeeded. Earlier versions
// wrote cards of them: Cards, Observed and Superseded are theirs.
type RepairsFound struct {
	Range      Range    `json:"range"`
	Pairs      int      `json:"pairs"`
	Asks       bool     `json:"asks,omitempty"`        // a model is asked to word lessons from them
	Cards      []string `json:"cards"`                 // ids written
	Observed   []string `json:"observed,omitempty"`    // hashes of their texts
	NotWritten []string `json:"not_written,omitempty"` // cards that could not be written, and why
	Superseded []string `json:"superseded,omitempty"`  // provisional cards that Cards complete
}
