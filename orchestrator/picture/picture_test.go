package picture

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func pngOf(t *testing.T, w, h int, at func(x, y int) color.Color) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, at(x, y))
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func red(int, int) color.Color { return color.RGBA{200, 0, 0, 255} }

// webp is one pixel.
const webp = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"

// cmyk is a JPEG of one block of 8x8 pixels with four components, each of one value.
func cmyk() []byte {
	var out bytes.Buffer
	segment := func(marker byte, data ...byte) {
		out.Write(append([]byte{0xff, marker, 0, byte(len(data) + 2)}, data...))
	}
	out.WriteString("\xff\xd8")
	segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{8}, 64)...)...)
	segment(0xc0, 8, 0, 8, 0, 8, 4, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 4, 0x11, 0)
	segment(0xc4, append([]byte{0x00, 1}, make([]byte, 16)...)...) // DC: the code 0 is a difference of 0
	segment(0xc4, append([]byte{0x10, 1}, make([]byte, 16)...)...) // AC: the code 0 ends a block
	segment(0xda, 4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0)
	out.WriteString("\x00\xff\xd9")
	return out.Bytes()
}

// turnedJPEG is red at its left and blue at its right, with an EXIF orientation.
func turnedJPEG(t *testing.T, orientation byte) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 64, 32))
	for y := range 32 {
		for x := range 64 {
			img.Set(x, y, color.RGBA{200 * byte(1-x/32), 0, 200 * byte(x/32), 255})
		}
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, nil); err != nil {
		t.Fatal(err)
	}
	exif := append([]byte("Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"),
		orientation, 0, 0, 0, 0, 0, 0)
	size := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return bytes.Join([][]byte{out.Bytes()[:2], size, exif, out.Bytes()[2:]}, nil)
}

// bomb is a PNG whose header declares a size and which has no pixels.
func bomb(w, h uint32) []byte {
	head := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), w), h), 8, 6, 0, 0, 0)
	return binary.BigEndian.AppendUint32(append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...),
		crc32.ChecksumIEEE(head))
}

func animated(t *testing.T) []byte {
	t.Helper()
	frame := func(c color.Color) *image.Paletted {
		return image.NewPaletted(image.Rect(0, 0, 20, 10), color.Palette{c, color.Black})
	}
	var out bytes.Buffer
	err := gif.EncodeAll(&out,
		&gif.GIF{Image: []*image.Paletted{frame(color.White), frame(color.Black)}, Delay: []int{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// headEnd is where the first chunk of a PNG ends, its head.
const headEnd = 8 + 12 + 13

func TestFit(t *testing.T) {
	t.Parallel()
	small := pngOf(t, 30, 20, red)
	noted := func(size int) []byte { // with a text that makes it as large
		chunk := append(binary.BigEndian.AppendUint32(nil, uint32(size-len(small)-12)), "tEXt"...)
		chunk = append(chunk, make([]byte, size-len(small)-12)...)
		return slices.Insert(bytes.Clone(small), headEnd,
			binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))...)
	}
	for name, tc := range map[string]struct {
		in   []byte
		want string // its description
		same bool   // the bytes are unchanged
	}{
		"a PNG":                                 {small, "image/png, 30x20 pixels", true},
		"a PNG whose time has a wrong checksum": {slices.Insert(bytes.Clone(small), headEnd, []byte("\x00\x00\x00\x07tIME\x07\xea\x0b\x1d\x00\x00\x00BAD!")...), "image/png, 30x20 pixels", false},
		"a PNG with a damaged text at its end":  {append(bytes.Clone(small), "\x00\x00\x00\x01tEXtxBAD!"...), "image/png, 30x20 pixels", false},
		"a WebP":                                {[]byte(webp), "image/webp, 1x1 pixels", true},
		"an upright JPEG":                       {turnedJPEG(t, 1), "image/jpeg, 64x32 pixels", true},
		"a turned JPEG":                         {turnedJPEG(t, 6), "image/jpeg, 32x64 pixels", false},
		"a JPEG turned in no known way":         {turnedJPEG(t, 9), "image/jpeg, 64x32 pixels", true},
		"a JPEG that is not turned":             {turnedJPEG(t, 0), "image/jpeg, 64x32 pixels", true},
		"a JPEG turned over its corner":         {turnedJPEG(t, 5), "image/jpeg, 32x64 pixels", false},
		"a PNG as large as can be sent":         {pngOf(t, MaxSide, 1, red), "image/png, 2000x1 pixels", true},
		"a PNG with a text":                     {noted(9_000), "image/png, 30x20 pixels", true},
		"a PNG as heavy as can be sent":         {noted(MaxBytes), "image/png, 30x20 pixels", true},
		"a PNG, a byte too heavy":               {noted(MaxBytes + 1), "image/png, 30x20 pixels", false},
		"a CMYK JPEG":                           {cmyk(), "image/jpeg, 8x8 pixels", false},
		"an animated GIF":                       {animated(t), "image/png, 20x10 pixels", false},
		"a large PNG":                           {pngOf(t, 4_000, 30, red), "image/png, 2000x15 pixels", false},
		"a PNG, too heavy": {pngOf(t, 1_200, 1_200, func(x, y int) color.Color {
			return color.RGBA{byte(rand.Uint32()), byte(rand.Uint32()), byte(rand.Uint32()), 255}
		}), "image/jpeg, 1200x1200 pixels", false},
	} {
		p, description, err := Fit(tc.in)
		if err != nil || !strings.HasPrefix(description, tc.want) || bytes.Equal(p.Base64, tc.in) != tc.same ||
			len(p.Base64) > MaxBytes {
			t.Errorf("%s: %q, %d bytes, %v; want %s", name, description, len(p.Base64), err, tc.want)
			continue
		}
		if tc.same && strings.Contains(description, "made from") {
			t.Errorf("%s is made anew: %s", name, description)
		}
		if first := strings.HasSuffix(description, ", its first frame"); first != (name == "an animated GIF") {
			t.Errorf("%s: %q", name, description)
		}
		config, format, err := image.DecodeConfig(bytes.NewReader(p.Base64))
		if err != nil || "image/"+format != p.MIME || config.Width != p.Width || config.Height != p.Height {
			t.Errorf("%s: the part says %s %dx%d and is %s %+v %v", name, p.MIME, p.Width, p.Height,
				format, config, err)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	t.Parallel()
	whole := pngOf(t, 300, 200, func(x, y int) color.Color { return color.RGBA{byte(x * y), byte(x), byte(y), 255} })
	for name, tc := range map[string]struct {
		in   []byte
		want string
	}{
		"nothing":         {nil, "it is empty"},
		"a text":          {[]byte("not an image\n"), "it is not a PNG, JPEG, WebP or GIF image"},
		"half a PNG":      {whole[:len(whole)/2], "it is damaged"},
		"a head of a PNG": {whole[:20], "it is damaged"},
		"half a JPEG":     {cmyk()[:60], "it is damaged"},
		"a bomb":          {bomb(30_000, 30_000), "it has 30000x30000 pixels, at most 50 million are decoded"},
		"a small bomb":    {bomb(5_000, 10_000), "it is damaged"},
		"a larger bomb":   {bomb(5_001, 10_000), "it has 5001x10000 pixels"},
		"a wrong pixel":   {slices.Replace(bytes.Clone(whole), headEnd+20, headEnd+21, ^whole[headEnd+20]), "it is damaged"},
		"no pixels":       {bomb(0, 10), "it is damaged"},
		"no width":        {[]byte("GIF89a\x00\x00\x05\x00\x00\x00\x00"), "it has 0x5 pixels"},
		"no height":       {[]byte("GIF89a\x05\x00\x00\x00\x00\x00\x00"), "it has 5x0 pixels"},
		"no image":        {append([]byte("GIF8"), make([]byte, MaxFileBytes-4)...), "it is damaged"},
		"a large file":    {append(bytes.Clone(whole), make([]byte, MaxFileBytes)...), "at most 67108864 are read"},
	} {
		if _, _, err := Fit(tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// The stored picture is red at its left; each orientation puts it elsewhere.
func TestUpright(t *testing.T) {
	t.Parallel()
	for orientation, want := range map[byte]string{1: "left", 2: "right", 3: "right", 4: "left", 5: "top", 6: "top", 7: "bottom", 8: "bottom"} {
		p, _, err := Fit(turnedJPEG(t, orientation))
		if err != nil {
			t.Fatal(err)
		}
		img, err := jpeg.Decode(bytes.NewReader(p.Base64))
		if err != nil {
			t.Fatal(err)
		}
		w, h := p.Width, p.Height
		for side, at := range map[string]image.Point{"left": {2, h / 2}, "right": {w - 3, h / 2}, "top": {w / 2, 2}, "bottom": {w / 2, h - 3}} {
			if r, _, b, _ := img.At(at.X, at.Y).RGBA(); side == want && r < 0x8000 ||
				side == opposite(want) && b < 0x8000 {
				t.Errorf("orientation %d: red is not at the %s", orientation, want)
			}
		}
	}
}

func opposite(side string) string {
	return map[string]string{"left": "right", "right": "left", "top": "bottom", "bottom": "top"}[side]
}

// TestFormat: the first twelve bytes declare a format.
func TestFormat(t *testing.T) {
	for head, want := range map[string]string{
		"": "", webp[:12]: "webp", webp[:11]: "", "RIFFxxxxWAVE": "", "riffxxxxWEBP": "", "GIF87a": "gif", "\xff\xd8\xff": "jpeg", "\x89PNG\r\n\x1a\n": "png", "\x89PNG": "",
	} {
		if got := Format([]byte(head)); got != want {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}
