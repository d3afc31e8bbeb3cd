package op

// RepairsFound records that the operations of a range were searched for failed
// commands that succeeded later, when a turn ended.
type RepairsFound struct {
	Range      Range    `json:"range"`
	Pairs      int      `json:"pairs"`
	Cards      []string `json:"cards"`                 // ids written
	Observed   []string `json:"observed,omitempty"`    // hashes of their texts
	NotWritten []string `json:"not_written,omitempty"` // cards that could not be, and why
	Superseded []string `json:"superseded,omitempty"`  // provisional cards that Cards complete
}

// Kind implements Body.
func (*RepairsFound) Kind() Kind { return KindRepairsFound }
