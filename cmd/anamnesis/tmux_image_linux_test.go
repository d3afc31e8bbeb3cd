package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSeatImages: the path of a dropped image, and one from the clipboard, are attached to the message. The screen
// shows what was attached.
func TestSeatImages(t *testing.T) {
	t.Parallel()
	d := onScreen(t, 100, 40, `turns:
  - expect: [{contains: "/w/dot.png: image/png, 6x4 pixels"}]
    reply: A dot.
  - expect: [{contains: "[image 1: "}, {contains: "6x4 pixels"}]
    reply: From the clipboard.
`)
	writePNG(t, filepath.Join(d.dir, "w", "dot.png"), 6, 4)
	d.types("anamnesis --model script:../words.yaml\n")
	d.sees("\n>")
	d.types("/paste\n")
	d.sees("! /paste: ") // no clipboard, or no image in it
	d.pastes(filepath.Join(d.dir, "w", "dot.png"))
	d.types(" what is it?\n")
	d.answered("  [image 1: ", "6x4 pixels", "A dot.")
	d.write("wl-paste", "#!/bin/sh\ncat "+filepath.Join(d.dir, "w", "dot.png")+"\n")
	if err := os.Chmod(filepath.Join(d.dir, "wl-paste"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.press("C-v")
	d.sees("> " + d.dir + "/anamnesis-paste-")
	d.types("and this?\n")
	d.answered("From the clipboard.")
}
