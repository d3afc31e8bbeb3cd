// Package redact replaces secrets in text by markers such as
//
//	[redacted:openai-key:3f9a1c]
//
// before the text is stored, shown or sent anywhere. A marker contains the
// kind of the secret and six hex digits of a keyed hash of it, so that equal
// secrets are recognisable and the secret cannot be guessed from the marker.
//
// Two things are found, in one pass over the text: values that are known to be
// secret (see Secret, Learned), plain, escaped, in base64 or in hex; and keywords, each of
// which triggers a pattern: the keys of well-known providers, Bearer and Basic credentials,
// passwords in URLs, the lines of PEM private keys, and values with a telling name
// (DB_PASSWORD=…, "api_key": "…"). Hashes, UUIDs and encoded images are not changed. A marker is never redacted again.
package redact
