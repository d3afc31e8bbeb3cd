package redact

import (
	"regexp"
	"strings"
)

// keyForm is the form of a provider's keys: a prefix and a random rest.
type keyForm struct {
	kind     string
	prefixes string // separated by blanks; case-sensitive, at the beginning of a word
	least    int    // the fewest bytes behind the prefix
	chars    string // what they consist of
	source   string // where the form is published
	rest     string // made up; an example behind the first prefix
}

// Where forms are published.
const (
	gitleaks = "gitleaks 8.30.1, config/gitleaks.toml"
	github   = "GitHub, supported secret scanning patterns"
)

// awsIDs begin the ids of AWS keys.
const awsIDs = "AKIA ASIA ABIA ACCA"

// keyForms returns the forms of keys that providers publish. least is at most what the source
// requires, because a key that was cut at its end still says much of its secret.
func keyForms() []keyForm {
	return []keyForm{
		{"adafruit-key", "aio_", 28, alnum, github, "Kd83hTz0PqLm47XcVbRw92NsYgJf"},
		{"adobe-secret", "p8e-", 32, alnum, gitleaks, "q7Rz0kLm3Xv9Tn2Wb5Yc8Hd1Jf4Gs6Pa"},
		{"age-key", "AGE-SECRET-KEY-1", 40, upperDigits, gitleaks, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF"},
		{"airtable-token", "pat", 79, alnum + ".", gitleaks, "Kx8Rt3Vq0ZmL7n.3f9a1c7e5d2b8f603f9a1c7e5d2b8f603f9a1c7e5d2b8f603f9a1c7e5d2b8f60"},
		{"alibaba-key-id", "LTAI", 16, alnum, gitleaks, "5tQx8Rz2Lm9Kv4Wn7Yb1"},
		{"artifactory-key", "AKCp", 60, alnum, gitleaks, "8kT3vRz0QmX7nLw2YbS9dHf4JgP6cVa1Ze5Ux8Kt3Rm0Qn7Lw2Yb9Sd4Hf6J"},
		{"artifactory-token", "cmVmd", 50, alnum, gitleaks, "GtuOjAxOjE3NjAxMjM0NTY6Qk1mN3RYd0xZcVJ2S3pUaEpkUGNWYl"},
		{"atlassian-token", "ATATT3 ATCTT3", 60, base64URL + "=", github, "xFfGF0kR7vQz2Lm9XtW4nYb8Hd1Jf6GsPa3Kc5Vu0TqRz7Lm2Xv9Wn=1A2B3C4D"},
		{"aws-bedrock-key", "ABSK", 60, base64Std, gitleaks, "QmVkcm9ja0FQSUtleS1hYjEyLWF0LTEyMzQ1Njc4OTAxMjpLbTN4Vno5UnQ3UWxX"},
		{"bitbucket-password", "ATBB", 28, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf93F9A1C7E"},
		{"brevo-key", "xkeysib-", 40, base64URL, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f-Kx8Rt3Vq0ZmL7nWb"},
		{"buildkite-token", "bkua_", 32, alnum, github, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f"},
		{"cerebras-key", "csk-", 40, alnum, "Cerebras, documentation", "kx8rt3vq0zml7nwbyc2hdjf9gs4pa6ku1te5xobi7nvqz0zm"},
		{"circleci-token", "CCIPAT_", 40, base64URL, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJ_3f9a1c7e5d2b8f604a1c9e7d5b3f"},
		{"clickhouse-key", "4b1d", 38, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5Xo"},
		{"clojars-token", "CLOJARS_", 40, alnum, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f7b5a3926e0"},
		{"cloudflare-key", "v1.0-", 60, hexDigits + "-", gitleaks, "3f9a1c7e5d2b8f604a1c9e7d-5b3f2a806c4e8d1f7b5a3926e0c8d4f1b7a59362"},
		{"contentful-token", "CFPAT-", 40, base64URL, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"context7-key", "ctx7sk-", 32, hexDigits + "-", "Context7, documentation", "3f9a1c7e-5d2b-4f60-8a1c-9e7d5b3f2a80"},
		{"crates-token", "cio", 32, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"databricks-token", "dapi", 32, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80"},
		{"digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", 40, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f7b"},
		{"docker-token", "dckr_pat_ dckr_oat_", 20, base64URL, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4"},
		{"doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", 40, alnum + "._-", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"dropbox-token", "sl.", 60, base64URL + ".", github, "BKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8Hd1Jf6G"},
		{"duffel-token", "duffel_live_ duffel_test_", 40, base64URL + "=", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"dynatrace-token", "dt0c01. dt0s01.", 40, upperDigits + ".", gitleaks, "ST2EY72KQINMH574WMNVI7YN.G3DFPBEJYMODIDAEX454M7YWBU"},
		{"e2b-key", "e2b_", 40, hexDigits, "E2B, documentation", "3f9a1c7e5d2b8f604a1c9e7d5b3f2a803f9a1c7e"},
		{"easypost-key", "EZAK EZTK", 40, alnum, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80KxRtVqZmLnWbYcHdJf9Gs4"},
		{"facebook-token", "EAAM EAAC EAAB EAAG", 60, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8Hd1Jf6G"},
		{"figma-token", "figd_", 20, base64URL, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi"},
		{"firecrawl-key", "fc-", 32, hexDigits, "Firecrawl, documentation", "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80"},
		{"flutterwave-key", "FLWSECK_TEST- FLWSECK-", 12, alnum + "-", gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80-X"},
		{"fly-token", "fo1_ fm1a_ fm1r_ fm2_", 40, base64Std + "-_=", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"frameio-token", "fio-u-", 40, base64URL + "=", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQz"},
		{"github-token", "ghp_ gho_ ghu_ ghs_ ghr_", 36, alnum, gitleaks, "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"},
		{"github-token", "github_pat_", 22, alnum + "_", gitleaks, "11Kx8Rt3Vq0ZmL7nWbYc2H_dJf9Gs4Pa6Ku1Te5XoBi7NvQz"},
		{"gitlab-token", "glpat- glrt- gldt- glft- glimt- glffct- glagent- gloas- glsoat- glptt- glcbt- GR1348941", 20, base64URL + ".", gitleaks, "aBQdEwgHtjKmNpRsUvXy"},
		{"google-key", "AIza", 35, base64URL, gitleaks, "SyD3-fGh7JkL0_pQr5StUv8WxYz1Ab4Cd6E"},
		{"google-oauth", "ya29. GOCSPX- 1//0", 28, base64URL + ".", github, "a0AfB_byKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5"},
		{"grafana-token", "glc_ glsa_ eyJrIjoi", 32, base64Std + "_=", gitleaks, "eyJvIjoiMTIzNDU2IiwibiI6Imtlc3QiLCJrIjoiS3g4UnQzVnEwWm1MN25XYiJ9"},
		{"groq-key", "gsk_", 40, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9W"},
		{"harness-key", "pat. sat.", 60, base64URL + ".", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJ.3f9a1c7e5d2b8f604a1c9e7d.Kx8Rt3Vq0ZmL7nWbYc2H"},
		{"heroku-key", "HRKU-", 36, base64URL, gitleaks, "AAKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8H"},
		{"honeycomb-key", "hcaik_ hcxik_ hcamk_", 40, alnum, github, "01kx8rt3vq0zml7nwbyc2hdjf9gs4pa6ku1te5xobi7nvqz0zml7nwbyc2hdjf9gs4"},
		{"hubspot-token", "pat-na1- pat-na2- pat-eu1-", 36, hexDigits + "-", github, "3f9a1c7e-5d2b-8f60-4a1c-9e7d5b3f2a80"},
		{"huggingface-token", "hf_ api_org_", 30, alnum, gitleaks, "aBcDeFgHiJkLmNoPqRsTuVwXyZqWeRtYuI"},
		{"infracost-key", "ico-", 32, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"intra42-secret", "s-s4t2ud- s-s4t2af-", 60, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f7b5a3926e0c8d4f1b7a59362"},
		{"langsmith-key", "lsv2_pt_ lsv2_sk_", 32, hexDigits + "_", github, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80_6c4e8d1f7b"},
		{"linear-key", "lin_api_ lin_oauth_", 32, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi"},
		{"mailgun-key", "key-", 32, hexDigits, github, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80"},
		{"mapbox-token", "sk.eyJ tk.eyJ", 40, base64URL + ".", github, "1IjoidXNlcjEyIiwiYSI6ImNrM3g4In0.Kx8Rt3Vq0ZmL7nWbYc2HdJ"},
		{"mongodb-secret", "mdb_sa_sk_", 36, base64URL, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi"},
		{"neon-key", "napi_", 40, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9W"},
		{"netlify-token", "nfp_ nfc_ nfo_ nfu_", 36, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5"},
		{"newrelic-key", "NRAK- NRJS- NRII- NRIQ-", 19, base64URL, github, "7XK2Q9RZ3TM8LW4NYB6HD1JFGS5"},
		{"notion-token", "ntn_", 40, alnum, gitleaks, "12345678901Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te"},
		{"notion-token", "secret_", 43, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"npm-token", "npm_", 36, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5"},
		{"nuget-key", "oy2", 43, alnum, github, "kx8rt3vq0zml7nwbyc2hdjf9gs4pa6ku1te5xobi7nv"},
		{"nvidia-key", "nvapi-", 60, base64URL, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8Hd1Jf6Gs"},
		{"octopus-key", "API-", 26, upperDigits, gitleaks, "7XK2Q9RZ3TM8LW4NYB6HD1JFGS"},
		{"onepassword-key", "A3-", 30, upperDigits + "-", gitleaks, "7XK2Q9-RZ3TM8LW4NY-B6HD1-JFGS5-PAKU1"},
		{"onepassword-token", "ops_eyJ", 60, base64Std + "=", gitleaks, "zaWduSW5BZGRyZXNzIjoibXkuMXBhc3N3b3JkLmNvbSIsInVzZXJBdXRoIjp7Im1ldGhv"},
		{"openai-key", "sk-", 20, base64URL, gitleaks, "proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1w"},
		{"openshift-token", "sha256~", 40, base64URL, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"paypal-token", "A21AA", 60, base64URL, "PayPal, documentation", "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8Hd1Jf6GsKx8R"},
		{"perplexity-key", "pplx-", 40, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3"},
		{"planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", 32, base64URL + ".=", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"posthog-key", "phx_", 36, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"postman-key", "PMAK-", 50, hexDigits + "-", gitleaks, "3f9a1c7e5d2b8f604a1c9e7d-5b3f2a806c4e8d1f7b5a3926e0c8d4f1b7"},
		{"prefect-key", "pnu_ pnb_", 36, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5"},
		{"pulumi-token", "pul-", 40, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f"},
		{"pypi-token", "pypi-", 50, base64URL, gitleaks, "AgEIcHlwaS5vcmcCJDNmOWExYzdlLTVkMmItOGY2MC00YTFjLTllN2Q1YjNmMmE4MA"},
		{"readme-key", "rdme_", 60, alnum, gitleaks, "kx8rt3vq0zml7nwbyc2hdjf9gs4pa6ku1te5xobi7nv3f9a1c7e5d2b8f604a1c9e7d5b3"},
		{"render-key", "rnd_", 28, alnum, "Render, documentation", "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4P"},
		{"replicate-token", "r8_", 36, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5X"},
		{"resend-key", "re_", 24, alnum + "_", github, "Kx8Rt3Vq_0ZmL7nWbYc2HdJf9Gs4Pa6K"},
		{"rubygems-key", "rubygems_", 48, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f7b5a3926"},
		{"scalingo-token", "tk-us-", 40, base64URL, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3"},
		{"sendgrid-key", "SG.", 40, base64URL + ".", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJ.f9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8Hd1Jf6"},
		{"sentry-token", "sntrys_ sntryu_ sntrya_", 40, base64Std + "_=", gitleaks, "eyJpYXQiOjE3NjAxMjM0NTYuMTIzLCJ1cmwiOiJodHRwczovL3NlbnRyeS5pbyJ9_Kx8Rt3Vq0ZmL7n"},
		{"settlemint-token", "sm_aat_ sm_pat_ sm_sat_", 16, alnum, gitleaks, "Kx8Rt3Vq0ZmL7nWb"},
		{"shippo-token", "shippo_live_ shippo_test_", 40, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f"},
		{"shopify-token", "shpat_ shpca_ shppa_ shpss_", 32, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80"},
		{"slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe- xoxe.xoxp- xoxe.xoxb- xapp-", 10, alnum + "-%", gitleaks, "210987654321-abcDEF123ghi"},
		{"sonarqube-token", "sqp_ sqa_ squ_", 40, hexDigits, github, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f"},
		{"sourcegraph-token", "sgp_ sgp_local_", 40, hexDigits + "_", gitleaks, "3f9a1c7e5d2b8f60_4a1c9e7d5b3f2a806c4e8d1f7b5a3926e0c8d4f1"},
		{"square-token", "sq0atp- sq0csp- EAAA", 22, base64URL, gitleaks, "lKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"stripe-key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", 10, alnum, gitleaks, "51HqLyjWDarjtT1zdp7dc"},
		{"together-key", "tgp_v1_", 40, base64URL, "Together AI, documentation", "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv"},
		{"webhook-secret", "whsec_", 24, base64Std + "-_=", github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"supabase-key", "sbp_ sb_secret_", 22, base64URL, github, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f"},
		{"tailscale-key", "tskey-", 20, base64URL, github, "auth-kx8Rt3Vq0Z11CNTRL-mL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"tavily-key", "tvly-", 24, base64URL, github, "dev-Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"tencent-key-id", "AKID", 32, alnum, github, "z8krbsJ5yKBZQpn74WFkmLPx3Gs4Pa6K"},
		{"twilio-key", "SK", 32, hexDigits, gitleaks, "3f9a1c7e5d2b8f604a1c9e7d5b3f2a80"},
		{"typeform-token", "tfp_", 40, base64URL + ".", gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv_3pZ7"},
		{"vault-token", "hvs. hvb. hvr.", 24, base64URL, gitleaks, "CAESIKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQz"},
		{"vercel-token", "vcp_ vci_ vca_ vcr_ vck_", 24, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku"},
		{"xai-key", "xai-", 60, alnum, github, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7NvQzLm3Xv9WnYb8Hd1Jf6GsKx8R"},
		{"yandex-token", "AQVN y0_", 35, base64URL, gitleaks, "Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5"},
		// An id of an AWS key has exactly 16 bytes behind its prefix; see providerKey.
		{"aws-key-id", awsIDs, 16, upperDigits, gitleaks, "Q3EGTZ7XN5BWKM2A"},
	}
}

// pattern is the form of a secret that needs more than a prefix.
type pattern struct {
	kind     string
	keywords string // separated by blanks; lower case, one is part of each match
	match    string // a regular expression; its first group is the secret
	source   string
	example  string // made up; the secret is between « and »
}

// maxPatternBytes is how far a pattern is searched before and behind its keyword.
const maxPatternBytes = 512

func patterns() []pattern {
	return []pattern{
		{"azure-client-secret", "q~", `([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})`, gitleaks, "x «Kx88Q~" + "Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5X»"},
		{"azure-key", "accountkey= accesskey=", `(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{42,86}={1,2})`, github, "AccountKey=«/" + strings.Repeat("Kx8Rt3Vq+0ZmL7nWb", 5) + "==»;Endpoint=x"},
		{"azure-signature", "?sig= &sig= ;sig=", `[?&;]sig=([A-Za-z0-9%+/]{40,}(?:=|%3[Dd])?)`, github, "?sv=2024&sig=«Kx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1Te5XoBi7Nv%3D»"},
		{"azure-devops-token", "azdo", `\b([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})\b`, github, "«" + strings.Repeat("Kx8Rt3Vq0ZmL7nWbYc2", 4) + "AZDO1a2B»"},
		{"discord-webhook", "/webhooks/", `discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/([A-Za-z0-9_-]{60,70})`, github, "https://discord.com/api/webhooks/123456789012345678/«" + strings.Repeat("Kx8Rt3Vq0ZmL7nWbYc2", 3) + "HdJf9Gs4»"},
		{"google-chat-webhook", "chat.googleapis.com", `chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?(key=[\w-]+&token=[\w%=-]+)`, github, "https://chat.googleapis.com/v1/spaces/AAA/messages?«key=Kx8Rt3Vq0Zm&token=L7nWbYc2HdJ%3D»"},
		{"mailchimp-key", "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9", `\b([0-9a-f]{32}-us\d{1,2})\b`, gitleaks, "«3f9a1c7e5d2b8f604a1c9e7d5b3f2a80-us19»"},
		{"maxmind-key", "_mmk", `\b([A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)\b`, gitleaks, "«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»"},
		{"jwt", "zxlkagjh", `\b(ZXlKaGJH[A-Za-z0-9+/]{40,})`, gitleaks, "«ZXlKaGJHY2lPaUpJVXpJMU5pSjku" + strings.Repeat("Kx8Rt3Vq", 4) + "»"},
		{"password", "password> passphrase> secret> token>", `(?i)<[\w.]*(?:password|passphrase|secret|token)>([^<\s]{6,})</`, "Maven, settings.xml", "<password>«hunter2x»</password>"},
		{"password", "password", `(?i)password\\?"\s{1,4}value=\\?"([^"\\]{6,})\\?"`, gitleaks, `<add key="ClearTextPassword" value="«hunter2x»" />`},
		{"rails-session", "_session=", `\w_session=([0-9a-zA-Z%_-]{32,})`, gitleaks, "_gitlab_session=«3f9a1c7e5d2b8f604a1c9e7d5b3f2a80»"},
		{"signature", "signature=", `(?i)[?&]X-(?:Amz|Goog)-Signature=([0-9a-f]{64,})`, github, "&X-Amz-Signature=«" + strings.Repeat("3f9a1c7e5d2b8f60", 4) + "»"},
		{"slack-webhook", "hooks.slack.com", `hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})`, gitleaks, "https://hooks.slack.com/services/«T01AB2CD3/B04EF5GH6/Kx8Rt3Vq0ZmL7nWbYc2HdJf9»"},
		{"teams-webhook", "webhookb2", `/webhookb2/([\w@-]+/IncomingWebhook/[\w-]+/[\w-]+)`, gitleaks, "https://x.webhook.office.com/webhookb2/«3f9a1c7e-1@2b8f-60/IncomingWebhook/3f9a1c7e5d2b/8f60-4a1c»"},
		{"telegram-token", ":aa", `\b(\d{8,10}:AA[A-Za-z0-9_-]{32,33})\b`, gitleaks, "«1234567890:AAKx8Rt3Vq0ZmL7nWbYc2HdJf9Gs4Pa6Ku1»"},
		{"terraform-token", "atlasv1.", `\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9=_-]{60,70})`, gitleaks, "«Kx8Rt3Vq0ZmL7n.atlasv1." + strings.Repeat("Wb5Yc2HdJf9Gs4Pa", 4) + "»"},
		{"zapier-webhook", "hooks.zapier.com", `hooks\.zapier\.com/hooks/catch/(\d+/\w+)`, github, "https://hooks.zapier.com/hooks/catch/«1234567/3kx8rt3»"},
	}
}

// find returns a function that matches the pattern at a keyword.
func (p pattern) find() func(s string, from, to int) (match, bool) {
	re := regexp.MustCompile(p.match)
	return func(s string, from, to int) (match, bool) {
		begin := from
		for begin > 0 && from-begin < maxPatternBytes && s[begin-1] > ' ' && s[begin-1] != '"' && s[begin-1] != '\'' && escapeLen(s, begin) == 0 {
			begin--
		}
		for base := begin; base <= from; {
			loc := re.FindStringSubmatchIndex(s[base:min(len(s), to+maxPatternBytes)])
			if loc == nil {
				return match{none: to + maxPatternBytes/2}, false // the shortest text of each pattern is shorter than that
			}
			if base+loc[0] > from {
				return match{none: base + loc[0]}, false
			}
			if base+loc[1] >= to { // it contains the keyword
				m := match{start: base + loc[2], end: base + loc[3], from: begin, kind: p.kind, rank: rankProvider}
				return m, random(s[m.start:m.end]) || p.kind == "password" && !placeholder(s[m.start:m.end])
			}
			base += loc[1]
		}
		return match{}, false
	}
}
