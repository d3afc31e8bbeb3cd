package redact

import "regexp"

// keyForm is the form of a provider's keys: a prefix and a random rest.
type keyForm struct {
	kind     string
	prefixes string // separated by blanks; case-sensitive, at the beginning of a word
	least    int    // the fewest bytes behind the prefix
	chars    string // what they consist of
	source   string // where the form is published
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
		{"adafruit-key", "aio_", 28, alnum, github},
		{"adobe-secret", "p8e-", 32, alnum, gitleaks},
		{"age-key", "AGE-SECRET-KEY-1", 40, upperDigits, gitleaks},
		{"airtable-token", "pat", 79, alnum + ".", gitleaks},
		{"alibaba-key-id", "LTAI", 16, alnum, gitleaks},
		{"artifactory-key", "AKCp", 60, alnum, gitleaks},
		{"artifactory-token", "cmVmd", 50, alnum, gitleaks},
		{"atlassian-token", "ATATT3 ATCTT3", 60, base64URL + "=", github},
		{"aws-bedrock-key", "ABSK", 60, base64Std, gitleaks},
		{"bitbucket-password", "ATBB", 28, alnum, github},
		{"brevo-key", "xkeysib-", 40, base64URL, gitleaks},
		{"buildkite-token", "bkua_", 32, alnum, github},
		{"cerebras-key", "csk-", 40, alnum, "Cerebras, documentation"},
		{"circleci-token", "CCIPAT_", 40, base64URL, github},
		{"clickhouse-key", "4b1d", 38, alnum, gitleaks},
		{"clojars-token", "CLOJARS_", 40, alnum, gitleaks},
		{"cloudflare-key", "v1.0-", 60, hexDigits + "-", gitleaks},
		{"contentful-token", "CFPAT-", 40, base64URL, github},
		{"context7-key", "ctx7sk-", 32, hexDigits + "-", "Context7, documentation"},
		{"crates-token", "cio", 32, alnum, github},
		{"databricks-token", "dapi", 32, hexDigits, gitleaks},
		{"digitalocean-token", "doo_v1_ dop_v1_ dor_v1_", 40, hexDigits, gitleaks},
		{"docker-token", "dckr_pat_ dckr_oat_", 20, base64URL, github},
		{"doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", 40, alnum + "._-", gitleaks},
		{"dropbox-token", "sl.", 60, base64URL + ".", github},
		{"duffel-token", "duffel_live_ duffel_test_", 40, base64URL + "=", gitleaks},
		{"dynatrace-token", "dt0c01. dt0s01.", 40, upperDigits + ".", gitleaks},
		{"e2b-key", "e2b_", 40, hexDigits, "E2B, documentation"},
		{"easypost-key", "EZAK EZTK", 40, alnum, gitleaks},
		{"facebook-token", "EAAM EAAC EAAB EAAG", 60, alnum, gitleaks},
		{"figma-token", "figd_", 20, base64URL, github},
		{"firecrawl-key", "fc-", 32, hexDigits, "Firecrawl, documentation"},
		{"flutterwave-key", "FLWSECK_TEST- FLWSECK-", 12, alnum + "-", gitleaks},
		{"fly-token", "fo1_ fm1a_ fm1r_ fm2_", 40, base64Std + "-_=", gitleaks},
		{"frameio-token", "fio-u-", 40, base64URL + "=", gitleaks},
		{"github-token", "ghp_ gho_ ghu_ ghs_ ghr_", 36, alnum, gitleaks},
		{"github-token", "github_pat_", 22, alnum + "_", gitleaks},
		{"gitlab-token",
			"glpat- glrt- gldt- glft- glimt- glffct- glagent- gloas- glsoat- glptt- glcbt- GR1348941",
			20, base64URL + ".", gitleaks},
		{"google-key", "AIza", 35, base64URL, gitleaks},
		{"google-oauth", "ya29. GOCSPX- 1//0", 28, base64URL + ".", github},
		{"grafana-token", "glc_ glsa_ eyJrIjoi", 32, base64Std + "_=", gitleaks},
		{"groq-key", "gsk_", 40, alnum, github},
		{"harness-key", "pat. sat.", 60, base64URL + ".", gitleaks},
		{"heroku-key", "HRKU-", 36, base64URL, gitleaks},
		{"honeycomb-key", "hcaik_ hcxik_ hcamk_", 40, alnum, github},
		{"hubspot-token", "pat-na1- pat-na2- pat-eu1-", 36, hexDigits + "-", github},
		{"huggingface-token", "hf_ api_org_", 30, alnum, gitleaks},
		{"infracost-key", "ico-", 32, alnum, gitleaks},
		{"intra42-secret", "s-s4t2ud- s-s4t2af-", 60, hexDigits, gitleaks},
		{"langsmith-key", "lsv2_pt_ lsv2_sk_", 32, hexDigits + "_", github},
		{"linear-key", "lin_api_ lin_oauth_", 32, alnum, gitleaks},
		{"mailgun-key", "key-", 32, hexDigits, github},
		{"mapbox-token", "sk.eyJ tk.eyJ", 40, base64URL + ".", github},
		{"mongodb-secret", "mdb_sa_sk_", 36, base64URL, github},
		{"neon-key", "napi_", 40, alnum, github},
		{"netlify-token", "nfp_ nfc_ nfo_ nfu_", 36, alnum, github},
		{"newrelic-key", "NRAK- NRJS- NRII- NRIQ-", 19, base64URL, github},
		{"notion-token", "ntn_", 40, alnum, gitleaks},
		{"notion-token", "secret_", 43, alnum, github},
		{"npm-token", "npm_", 36, alnum, gitleaks},
		{"nuget-key", "oy2", 43, alnum, github},
		{"nvidia-key", "nvapi-", 60, base64URL, github},
		{"octopus-key", "API-", 26, upperDigits, gitleaks},
		{"onepassword-key", "A3-", 30, upperDigits + "-", gitleaks},
		{"onepassword-token", "ops_eyJ", 60, base64Std + "=", gitleaks},
		{"openai-key", "sk-", 20, base64URL, gitleaks},
		{"openshift-token", "sha256~", 40, base64URL, gitleaks},
		{"paypal-token", "A21AA", 60, base64URL, "PayPal, documentation"},
		{"perplexity-key", "pplx-", 40, alnum, gitleaks},
		{"planetscale-token", "pscale_tkn_ pscale_oauth_ pscale_pw_", 32, base64URL + ".=", gitleaks},
		{"posthog-key", "phx_", 36, alnum, github},
		{"postman-key", "PMAK-", 50, hexDigits + "-", gitleaks},
		{"prefect-key", "pnu_ pnb_", 36, alnum, gitleaks},
		{"pulumi-token", "pul-", 40, hexDigits, gitleaks},
		{"pypi-token", "pypi-", 50, base64URL, gitleaks},
		{"readme-key", "rdme_", 60, alnum, gitleaks},
		{"render-key", "rnd_", 28, alnum, "Render, documentation"},
		{"replicate-token", "r8_", 36, alnum, github},
		{"resend-key", "re_", 24, alnum + "_", github},
		{"rubygems-key", "rubygems_", 48, hexDigits, gitleaks},
		{"scalingo-token", "tk-us-", 40, base64URL, gitleaks},
		{"sendgrid-key", "SG.", 40, base64URL + ".", gitleaks},
		{"sentry-token", "sntrys_ sntryu_ sntrya_", 40, base64Std + "_=", gitleaks},
		{"settlemint-token", "sm_aat_ sm_pat_ sm_sat_", 16, alnum, gitleaks},
		{"shippo-token", "shippo_live_ shippo_test_", 40, hexDigits, gitleaks},
		{"shopify-token", "shpat_ shpca_ shppa_ shpss_", 32, hexDigits, gitleaks},
		{"slack-token",
			"xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe- xoxe.xoxp- xoxe.xoxb- xapp-",
			10, alnum + "-%", gitleaks},
		{"sonarqube-token", "sqp_ sqa_ squ_", 40, hexDigits, github},
		{"sourcegraph-token", "sgp_ sgp_local_", 40, hexDigits + "_", gitleaks},
		{"square-token", "sq0atp- sq0csp- EAAA", 22, base64URL, gitleaks},
		{"stripe-key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", 10, alnum, gitleaks},
		{"together-key", "tgp_v1_", 40, base64URL, "Together AI, documentation"},
		{"webhook-secret", "whsec_", 24, base64Std + "-_=", github},
		{"supabase-key", "sbp_ sb_secret_", 22, base64URL, github},
		{"tailscale-key", "tskey-", 20, base64URL, github},
		{"tavily-key", "tvly-", 24, base64URL, github},
		{"tencent-key-id", "AKID", 32, alnum, github},
		{"twilio-key", "SK", 32, hexDigits, gitleaks},
		{"typeform-token", "tfp_", 40, base64URL + ".", gitleaks},
		{"vault-token", "hvs. hvb. hvr.", 24, base64URL, gitleaks},
		{"vercel-token", "vcp_ vci_ vca_ vcr_ vck_", 24, alnum, github},
		{"xai-key", "xai-", 60, alnum, github},
		{"yandex-token", "AQVN y0_", 35, base64URL, gitleaks},
		// An id of an AWS key has exactly 16 bytes behind its prefix; see providerKey.
		{"aws-key-id", awsIDs, 16, upperDigits, gitleaks},
	}
}

// pattern is the form of a secret that needs more than a prefix.
type pattern struct {
	kind     string
	keywords string // separated by blanks; lower case, one is part of each match
	match    string // a regular expression; its first group is the secret
	source   string
}

// maxPatternBytes is how far a pattern is searched before and behind its keyword.
const maxPatternBytes = 512

func patterns() []pattern {
	return []pattern{
		{"azure-client-secret", "q~", `([A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})`, gitleaks},
		{"azure-key", "accountkey= accesskey=",
			`(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{42,86}={1,2})`, github},
		{"azure-signature", "?sig= &sig= ;sig=", `[?&;]sig=([A-Za-z0-9%+/]{40,}(?:=|%3[Dd])?)`, github},
		{"azure-devops-token", "azdo", `\b([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})\b`, github},
		{"discord-webhook", "/webhooks/",
			`discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/([A-Za-z0-9_-]{60,70})`, github},
		{"google-chat-webhook", "chat.googleapis.com",
			`chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?(key=[\w-]+&token=[\w%=-]+)`, github},
		{"mailchimp-key", "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9", `\b([0-9a-f]{32}-us\d{1,2})\b`, gitleaks},
		{"maxmind-key", "_mmk", `\b([A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)\b`, gitleaks},
		{"jwt", "zxlkagjh", `\b(ZXlKaGJH[A-Za-z0-9+/]{40,})`, gitleaks},
		{"password", "password> passphrase> secret> token>",
			`(?i)<[\w.]*(?:password|passphrase|secret|token)>([^<\s]{6,})</`, "Maven, settings.xml"},
		{"password", "password", `(?i)password\\?"\s{1,4}value=\\?"([^"\\]{6,})\\?"`, gitleaks},
		{"rails-session", "_session=", `\w_session=([0-9a-zA-Z%_-]{32,})`, gitleaks},
		{"signature", "signature=", `(?i)[?&]X-(?:Amz|Goog)-Signature=([0-9a-f]{64,})`, github},
		{"slack-webhook", "hooks.slack.com",
			`hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})`, gitleaks},
		{"teams-webhook", "webhookb2", `/webhookb2/([\w@-]+/IncomingWebhook/[\w-]+/[\w-]+)`, gitleaks},
		{"telegram-token", ":aa", `\b(\d{8,10}:AA[A-Za-z0-9_-]{32,33})\b`, gitleaks},
		{"terraform-token", "atlasv1.", `\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9=_-]{60,70})`, gitleaks},
		{"zapier-webhook", "hooks.zapier.com", `hooks\.zapier\.com/hooks/catch/(\d+/\w+)`, github},
	}
}

// find returns a function that matches the pattern at a keyword.
func (p pattern) find() func(s string, from, to int) (match, bool) {
	re := regexp.MustCompile(p.match)
	return func(s string, from, to int) (match, bool) {
		begin := from
		for begin > 0 && from-begin < maxPatternBytes && s[begin-1] > ' ' &&
			s[begin-1] != '"' && s[begin-1] != '\'' && escapeLen(s, begin) == 0 {
			begin--
		}
		for base := begin; base <= from; {
			loc := re.FindStringSubmatchIndex(s[base:min(len(s), to+maxPatternBytes)])
			if loc == nil {
				// A match around a keyword before this offset would, at its shortest, lie in what was searched.
				return match{none: to + maxPatternBytes/2}, false
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
