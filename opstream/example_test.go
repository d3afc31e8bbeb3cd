package opstream_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"anamnesis/opstream"
)

// A stream is appended by one writer and followed by any number of readers.
func Example() {
	dir, err := os.MkdirTemp("", "stream")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "ops")

	w, err := opstream.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	first, err := w.Append(ctx,
		opstream.Entry{Kind: "note.made", Step: 1, Body: []byte(`{"text":"durable when Append returns"}`)},
		opstream.Entry{Kind: "note.made", Step: 1, Body: []byte(`{"text":"in the same write"}`)},
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("appended from", first)

	r, err := opstream.OpenReader(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	for rec, err := range r.Follow(ctx, 0) { // waits for more until its context ends
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s %s\n", rec.Seq, rec.Kind, rec.Body)
		if rec.Seq == first+1 {
			break
		}
	}
	// Output:
	// appended from 1
	// 1 note.made {"text":"durable when Append returns"}
	// 2 note.made {"text":"in the same write"}
}
