// Package picture reads images and rewrites those that a provider would refuse or misread.
package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	_ "image/gif" // image.Decode reads it
	"image/jpeg"
	"image/png"
	"time"

	"github.com/bep/imagemeta"
	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"
	_ "golang.org/x/image/webp" // as above

	"anamnesis/opstream/op"
)

const (
	// MaxFileBytes bounds what is read, and MaxPixels what is decoded: about 200 MB of memory.
	MaxFileBytes = 64 << 20
	MaxPixels    = 50_000_000
	// MaxSide and MaxBytes bound what is sent. Claude has the lowest documented limits: 2,000
	// pixels a side if a request has more than 20 images, and 5 MiB of base64 an image,
	// https://platform.claude.com/docs/en/build-with-claude/vision
	MaxSide  = 2_000
	MaxBytes = 5 << 20 / 4 * 3
)

// Format returns the format that the first bytes declare: png, jpeg, webp or gif; empty: none.
func Format(head []byte) string {
	for _, f := range [][2]string{{"\x89PNG\r\n\x1a\n", "png"}, {"\xff\xd8\xff", "jpeg"}, {"GIF8", "gif"}} {
		if bytes.HasPrefix(head, []byte(f[0])) {
			return f[1]
		}
	}
	if len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP" {
		return "webp"
	}
	return ""
}

// Fit returns an image as every provider takes it, and its description: unchanged if it is valid
// and within the limits, and otherwise scaled, turned upright or converted. An image that cannot be
// decoded in full is an error, since providers refuse the whole request because of it.
func Fit(data []byte) (p op.Part, description string, err error) {
	format := Format(data)
	switch {
	case len(data) == 0:
		return p, "", fmt.Errorf("it is empty")
	case format == "":
		return p, "", fmt.Errorf("it is not a PNG, JPEG, WebP or GIF image")
	case len(data) > MaxFileBytes:
		return p, "", fmt.Errorf("it has %d bytes, at most %d are read", len(data), MaxFileBytes)
	}
	if format == "png" {
		data = withoutDamagedExtras(data)
	}
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return p, "", fmt.Errorf("it is damaged: %w", err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > MaxPixels/config.Height {
		return p, "", fmt.Errorf("it has %dx%d pixels, at most %d million are decoded", config.Width, config.Height,
			MaxPixels/1_000_000)
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return p, "", fmt.Errorf("it is damaged: %w", err)
	}
	p = op.Part{Kind: op.PartImage, MIME: "image/" + format, Base64: data,
		Width: img.Bounds().Dx(), Height: img.Bounds().Dy()}
	was, turned := fmt.Sprintf("%dx%d pixels", p.Width, p.Height), orientation(data)
	_, cmyk := img.(*image.CMYK) // some providers show its colours inverted
	if max(p.Width, p.Height) <= MaxSide && len(data) <= MaxBytes && turned == 1 && !cmyk && format != "gif" {
		return p, describe(p), nil
	}
	img = upright(img, turned, MaxSide)
	if err := encode(&p, img, format); err != nil {
		return p, "", err
	}
	description = fmt.Sprintf("%s, made from %s of %s", describe(p), format, was)
	if format == "gif" {
		description += ", its first frame"
	}
	return p, description, nil
}

// withoutDamagedExtras returns a PNG without the ancillary chunks (colour profiles, times, text)
// whose checksum is wrong: programs that show images pass them over, a strict decoder refuses the
// image. https://www.w3.org/TR/png-3/#5Chunk-naming-conventions
func withoutDamagedExtras(data []byte) []byte {
	const frame = 12 // a chunk's length, type and checksum
	kept := data[:8:8]
	for at := data[8:]; ; {
		size := uint64(frame)
		if len(at) >= frame {
			size += uint64(binary.BigEndian.Uint32(at))
		}
		if uint64(len(at)) < size {
			return append(kept, at...) // the end, or it is cut off: the decoder says so
		}
		chunk := at[:size]
		at = at[size:]
		ancillary := chunk[4]&0x20 != 0
		if !ancillary || crc32.ChecksumIEEE(chunk[4:size-4]) == binary.BigEndian.Uint32(chunk[size-4:]) {
			kept = append(kept, chunk...)
		}
	}
}

func describe(p op.Part) string {
	return fmt.Sprintf("%s, %dx%d pixels, %d bytes", p.MIME, p.Width, p.Height, len(p.Base64))
}

// encode writes an image within MaxBytes: as PNG, which keeps sharp edges and transparency, unless
// it was a JPEG or would be too large.
func encode(p *op.Part, img image.Image, from string) error {
	var out bytes.Buffer
	if from != "jpeg" {
		if err := png.Encode(&out, img); err != nil {
			return fmt.Errorf("it cannot be converted: %w", err)
		}
		p.MIME = "image/png"
	}
	for quality := 90; quality > 0 && (out.Len() == 0 || out.Len() > MaxBytes); quality -= 20 {
		out.Reset()
		flat := image.NewRGBA(img.Bounds()) // JPEG has no transparency: white is what a page shows
		draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
		draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
		if err := jpeg.Encode(&out, flat, &jpeg.Options{Quality: quality}); err != nil {
			return fmt.Errorf("it cannot be converted: %w", err)
		}
		p.MIME = "image/jpeg"
	}
	p.Width, p.Height, p.Base64 = img.Bounds().Dx(), img.Bounds().Dy(), out.Bytes()
	return nil
}

// orientation returns the EXIF orientation of a JPEG, 1 to 8; 1 is upright. Cameras store
// pictures as the sensor sees them, and not every provider turns them.
func orientation(data []byte) int {
	turned := 1
	// Damaged metadata does not make a picture unreadable, and other formats have none that is read.
	_, _ = imagemeta.Decode(imagemeta.Options{
		R: bytes.NewReader(data), ImageFormat: imagemeta.JPEG, Sources: imagemeta.EXIF, Timeout: time.Second,
		ShouldHandleTag: func(tag imagemeta.TagInfo) bool { return tag.Tag == "Orientation" },
		HandleTag: func(tag imagemeta.TagInfo) error {
			if n, ok := tag.Value.(uint16); ok && n > 0 && n <= 8 && tag.Namespace == "IFD0" {
				turned = int(n)
			}
			return nil
		},
	})
	return turned
}

// upright undoes an EXIF orientation, and shrinks an image whose longer side exceeds a number of pixels. A kernel's
// Transform needs no memory beside its result, unlike its Scale.
func upright(img image.Image, turned, side int) image.Image {
	from := img.Bounds()
	w, h := float64(from.Dx()), float64(from.Dy())
	fit := min(1, float64(side)/max(w, h))
	// What becomes of x and y, with the corner at the origin; from 5 on the sides are swapped.
	m := [...]f64.Aff3{{1, 0, 0, 0, 1, 0}, {-1, 0, w, 0, 1, 0}, {-1, 0, w, 0, -1, h}, {1, 0, 0, 0, -1, h},
		{0, 1, 0, 1, 0, 0}, {0, -1, h, 1, 0, 0}, {0, -1, h, -1, 0, w}, {0, 1, 0, -1, 0, w}}[turned-1]
	if turned >= 5 {
		w, h = h, w
	}
	for i := range m {
		m[i] *= fit
	}
	out := image.NewRGBA(image.Rect(0, 0, max(1, int(w*fit)), max(1, int(h*fit))))
	draw.BiLinear.Transform(out, m, img, from, draw.Src, nil)
	return out
}
