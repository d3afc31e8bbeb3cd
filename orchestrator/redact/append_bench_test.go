package redact

import (
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream"
)

// BenchmarkAppend appends 1 KiB bodies durably, as they are and redacted first,
// in turns. The figures are medians of the turns:
//
//	redacted/plain   rate, bar 0.8
func BenchmarkAppend(b *testing.B) {
	l, err := opstream.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	r := New([]byte(strings.Repeat("k", KeyBytes)), nil)
	body := []byte(`{"text":"` + strings.Repeat("x", 1013) + `"}`)
	add := func(body []byte) {
		if _, err := l.Append(b.Context(), opstream.Entry{Kind: "tool.returned", Step: 1, Tok: 256, Body: body}); err != nil {
			b.Fatal(err)
		}
	}
	lanes := [...]func(){
		func() { add(body) },
		func() {
			clean, _, err := r.JSON(body, nil)
			if err != nil {
				b.Fatal(err)
			}
			add(clean)
		},
	}
	var spent [len(lanes)][]time.Duration
	for round := 0; b.Loop(); round++ {
		for i := range lanes { // another one is the first each time
			lane := (i + round) % len(lanes)
			start := time.Now()
			for range 16 {
				lanes[lane]()
			}
			spent[lane] = append(spent[lane], time.Since(start))
		}
	}
	for _, turns := range spent {
		slices.Sort(turns)
	}
	plain, redacted := spent[0][len(spent[0])/2], spent[1][len(spent[1])/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(plain)/float64(redacted), "redacted/plain")
}
