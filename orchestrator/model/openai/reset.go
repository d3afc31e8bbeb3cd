package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"anamnesis/anamnesis/shell"
)

// maxReset bounds the wait that a provider names: quotas of a month exist, longer ones are nonsense.
const maxReset = 31 * 24 * time.Hour

// resetOf returns how long a provider asks to wait, 0 if it does not say. It looks at the headers made
// for it, then at fields of the body, then at the text. limited reports that the provider counts
// requests: otherwise what its headers say of the count is no reason to wait.
func resetOf(h http.Header, body []byte, text string, limited bool, now time.Time) time.Duration {
	if d := momentOf(h.Get("Retry-After-Ms"), time.Millisecond, now); d > 0 { // OpenAI, Azure
		return d
	}
	if d := momentOf(h.Get("Retry-After"), time.Second, now); d > 0 { // RFC 9110, section 10.2.3
		return d
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) == nil {
		if d := fieldReset(v, now); d > 0 {
			return d
		}
	}
	if d := textReset(text, now); d > 0 {
		return d
	}
	if !limited {
		return 0
	}
	return headerReset(h, now)
}

// headerReset returns the longest wait of the limits that are used up: x-ratelimit-reset-tokens,
// x-ratelimit-reset, anthropic-ratelimit-requests-reset and their like. Without a count of what remains
// each limit may be the one.
func headerReset(h http.Header, now time.Time) time.Duration {
	var longest time.Duration
	for key, values := range h {
		name := strings.ToLower(key)
		if !strings.Contains(name, "ratelimit") && !strings.Contains(name, "rate-limit") ||
			!strings.Contains(name, "reset") {
			continue
		}
		left := h.Get(strings.Replace(name, "reset", "remaining", 1))
		if n, err := strconv.ParseFloat(left, 64); err == nil && n > 0 {
			continue
		}
		longest = max(longest, momentOf(values[0], time.Second, now))
	}
	return longest
}

// resetField matches the names of fields that say when to ask again: retryDelay, retry_after_ms,
// resets_at, resets_in_seconds, X-RateLimit-Reset.
var resetField = shell.Pattern(`(?i)^(retry[_-]?(delay|after|in)|(x[_-])?rate[_-]?limit[_-]?resets?|` +
	`resets?([_-]?(at|in|after|time))?|quota[_-]?reset[a-z_-]*)([_-]?(ms|seconds|secs|at|timestamp))?$`)

// fieldReset searches a body for them.
func fieldReset(v any, now time.Time) time.Duration {
	var longest time.Duration
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			longest = max(longest, fieldReset(e, now))
		}
	case map[string]any:
		for key, e := range v {
			unit := time.Second
			if strings.HasSuffix(strings.ToLower(key), "ms") {
				unit = time.Millisecond
			}
			if n, ok := e.(json.Number); ok {
				e = n.String()
			}
			if text, ok := e.(string); !ok {
				longest = max(longest, fieldReset(e, now))
			} else if resetField().MatchString(key) {
				longest = max(longest, momentOf(text, unit, now))
			}
		}
	}
	return longest
}

// momentOf reads a value that says when: a number of units, a time since 1970 in seconds or
// milliseconds, a duration, or a date. It returns the time until then, 0 if it is no such value or past.
func momentOf(s string, unit time.Duration, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case !(n > 0):
			return 0
		case n >= 1e11 && n < 1e14: // in milliseconds the years 1973 to 5138
			return until(time.UnixMilli(int64(n)), now)
		case n >= 1e9 && n < 1e11 && unit == time.Second: // in seconds the years 2001 to 5138
			return until(time.Unix(int64(n), 0), now)
		}
		return time.Duration(min(n*float64(unit), float64(maxReset)))
	}
	if t, err := http.ParseTime(s); err == nil {
		return until(t, now)
	}
	if t := dateOf(s, now); !t.IsZero() {
		return until(t, now)
	}
	if d, n := durationOf(s); n == len(s) {
		return d
	}
	return 0
}

func until(t, now time.Time) time.Duration { return min(max(t.Sub(now), 0), maxReset) }

var durationPart = shell.Pattern(`^(?:\s*(?:,|and)?\s*)(\d+(?:\.\d+)?)\s*([A-Za-z]+)`)

// durationOf reads the duration at the beginning of a text, such as 3h 12m, 54.2s or 2 hours and 5
// minutes. It returns the bytes read, 0 if there is none.
func durationOf(s string) (d time.Duration, n int) {
	for {
		m := durationPart().FindStringSubmatch(s[n:])
		if m == nil {
			return min(d, maxReset), n
		}
		unit := unitOf(strings.ToLower(m[2]))
		f, err := strconv.ParseFloat(m[1], 64)
		if unit == 0 || err != nil {
			return min(d, maxReset), n
		}
		d += time.Duration(min(f*float64(unit), float64(maxReset)))
		d, n = min(d, maxReset), n+len(m[0])
	}
}

func unitOf(name string) time.Duration {
	switch name {
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	case "w", "week", "weeks":
		return 7 * 24 * time.Hour
	}
	return 0
}

var (
	// resetLead comes before a time in a message: try again in, retry after, will reset at.
	resetLead = shell.Pattern(`(?i)\b(?:try(?:ing)? again|retry(?:ing)?|wait|resets?|renews?|refreshes|available)\b` +
		`(?:\W+(?:again|in|after|at|on|for|until|within|about|approximately|time|is|by)\b)*\W+`)
	// barEpoch ends Claude's message: Claude AI usage limit reached|1764302400.
	barEpoch = shell.Pattern(`\|(\d{10})\b`)
)

// textReset reads when to ask again from a message.
func textReset(text string, now time.Time) time.Duration {
	for _, lead := range resetLead().FindAllStringIndex(text, -1) {
		rest := text[lead[1]:]
		if d, n := durationOf(rest); n > 0 {
			return d
		}
		if t := dateOf(rest, now); !t.IsZero() {
			return until(t, now)
		}
	}
	if m := barEpoch().FindStringSubmatch(text); m != nil {
		return momentOf(m[1], time.Second, now)
	}
	return 0
}

var (
	isoDate = shell.Pattern(`^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?\s*(Z\b|UTC|GMT|` +
		`[+-]\d\d:?\d\d)?`)
	// monthDate is as in Nov 5th, 2026 at 1:23 PM; clockTime as in 3pm (America/New_York) or 14:05 UTC.
	monthDate = shell.Pattern(`^([A-Za-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? `)
	clockTime = shell.Pattern(`(?i)^(\d{1,2})(?::(\d\d))?(?::\d\d)?\s*(am|pm)?\b\s*\(?([A-Za-z]+(?:/[A-Za-z_/]+)?)?`)
)

// dateOf reads the date or the time of day at the beginning of a text; the zero time if there is none.
// A date with year, month and day is in UTC unless it names a zone, a time of day in this machine's.
func dateOf(s string, now time.Time) time.Time {
	if m := isoDate().FindStringSubmatch(s); m != nil {
		zone := strings.ReplaceAll(m[3], ":", "")
		if zone == "" || zone[0] > '9' { // a date without a zone is UTC, as providers write it
			zone = "+0000"
		}
		for _, layout := range []string{"2006-01-02 15:04:05 -0700", "2006-01-02 15:04 -0700", "2006-01-02  -0700"} {
			if t, err := time.Parse(layout, m[1]+" "+m[2]+" "+zone); err == nil {
				return t
			}
		}
		return time.Time{}
	}
	day := now
	dated := false
	if m := monthDate().FindStringSubmatch(s); m != nil {
		t, err := time.Parse("Jan 2 2006", m[1]+" "+m[2]+" "+cmp.Or(m[3], strconv.Itoa(now.Year())))
		if err != nil {
			return time.Time{}
		}
		if m[3] == "" && t.Before(now.AddDate(0, -6, 0)) { // January, said in December
			t = t.AddDate(1, 0, 0)
		}
		day, dated, s = t, true, s[len(m[0]):]
	}
	m := clockTime().FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[3] == "" { // a number alone is no time of day
		return time.Time{}
	}
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2])
	switch half := strings.ToLower(m[3]); {
	case hour > 23 || minute > 59 || half != "" && (hour < 1 || hour > 12):
		return time.Time{}
	case half != "":
		hour = hour % 12
		if half == "pm" {
			hour += 12
		}
	}
	// Abbreviations such as utc are found in capitals only, places such as America/New_York only as they are written.
	zone, err := time.LoadLocation(strings.ToUpper(m[4]))
	if err != nil || m[4] == "" {
		if zone, err = time.LoadLocation(m[4]); err != nil || m[4] == "" {
			zone = now.Location()
		}
	}
	if !dated {
		day = now.In(zone)
	}
	t := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, zone)
	if !dated && !t.After(now) { // 3 am, said in the evening
		t = t.AddDate(0, 0, 1)
	}
	return t
}
