package probe

import (
	"fmt"
	"strings"
	"time"

	"anamnesis/anamnesis/attention"
)

// UpTo is the longest length asked that is not over one, and the score there.
func (r Result) UpTo(length int) (int, Score) {
	asked, score := BaseLength, r.pooled()
	for _, t := range r.Tests {
		if t.Length <= length && t.Length > asked {
			asked, score = t.Length, t.Score
		}
	}
	return asked, score
}

// pooled is the base score of the families kept.
func (r Result) pooled() Score {
	var s Score
	for _, b := range r.Bases {
		if b.Kept {
			s.Right += b.Right
			s.N += b.N
		}
	}
	return s
}

// Source is what a row says of where its number comes from: how sure it is,
// the score up to it with its Wilson interval, where it fails, and what was
// asked.
func (r Result) Source() string {
	asked, s := r.UpTo(r.EAS)
	low, high := Wilson(s.Right, s.N)
	var b strings.Builder
	sure := fmt.Sprintf("within an octave with probability %.2f", r.Within)
	if r.FailsAt == 0 {
		sure = "at least that"
	}
	fmt.Fprintf(&b, "probe: %s; %s right at %d (95%% interval %.2f to %.2f), base %.2f", sure, s, asked, low, high, r.Base)
	if r.FailsAt > 0 {
		_, f := r.UpTo(r.FailsAt)
		fmt.Fprintf(&b, ", %s at %d", f, r.FailsAt)
	} else {
		b.WriteString(", no longer text was asked")
	}
	var kept, dropped []string
	for _, f := range r.Bases {
		if f.Kept {
			kept = append(kept, string(f.Family))
		} else {
			dropped = append(dropped, fmt.Sprintf("%s (%s)", f.Family, f.Score))
		}
	}
	fmt.Fprintf(&b, "; %s", strings.Join(kept, ", "))
	if len(dropped) > 0 {
		fmt.Fprintf(&b, "; dropped for their base: %s", strings.Join(dropped, ", "))
	}
	fmt.Fprintf(&b, "; seed %d", r.Seed)
	return b.String()
}

// Confidence is medium where the decision rests on at least three families,
// the latent one among them, and the answers leave little doubt within an
// octave; otherwise low. High is for what others have published.
func (r Result) Confidence() attention.Confidence {
	kept, latent := 0, false
	for _, b := range r.Bases {
		if b.Kept {
			kept++
			latent = latent || b.Family == Latent
		}
	}
	if kept >= 3 && latent && r.Within >= sureEnough {
		return attention.ConfidenceMedium
	}
	return attention.ConfidenceLow
}

// Row is the proposal; window and encoding are those of s. Only a result that
// is Done makes one.
func (r Result) Row(s attention.EAS, now time.Time) attention.Row {
	return attention.Row{
		Pattern: r.Model, EAS: r.EAS, Window: max(s.Advertised, r.EAS), Encoding: s.Encoding, Confidence: r.Confidence(),
		Source: r.Source(), Updated: now.UTC().Format(time.DateOnly), By: "probe",
	}
}
