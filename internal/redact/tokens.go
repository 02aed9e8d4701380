package redact

import (
	"regexp"
	"strings"
)

// A set is the characters that a token may have behind its prefix.
type set struct{ is [256]bool }

func (s *set) with(chars string) *set {
	out := *s
	for i := range len(chars) {
		out.is[chars[i]] = true
	}
	return &out
}

const (
	digits  = "0123456789"
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = lowers + uppers
)

var (
	hex    = (&set{}).with(digits + "abcdef")
	alnum  = (&set{}).with(digits + letters)
	upper  = (&set{}).with(digits + uppers)
	url    = alnum.with("_-")
	base64 = url.with("+/=")
	inWord = alnum.with("_")
)

// kind is a kind of token that is recognized by how it begins.
type kind struct {
	prefixes string // by space
	of       *set
	least    int  // characters behind the prefix
	most     int  // 0: any number
	mixed    bool // letters and digits: the prefix alone is too much like a word
}

// kinds are the tokens of well-known services, as these document them, and those for which gitleaks
// has a rule of its own (config/gitleaks.toml), with the alphabets and lengths that it accepts.
var kinds = []kind{
	{"ghp_ gho_ ghu_ ghs_ ghr_", alnum, 36, 0, false},
	{"github_pat_", inWord, 50, 0, false},
	{"glpat- gldt- glft- glptt- glrt- glrtr- glagent- glimt- glsoat- glcbt- glffct- gloas- GR1348941", url.with("."), 20, 0, false},
	{"AKIA ASIA ABIA ACCA", upper, 16, 16, false}, // AWS
	{"ABSK", base64, 60, 0, false},                // AWS Bedrock
	{"LTAI", alnum, 16, 26, true},                 // Alibaba
	{"xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", alnum.with("-"), 10, 0, false},
	{"xoxe. xapp-", alnum.with("-."), 20, 0, false},
	{"sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_ pk_prod_", alnum, 10, 0, false},
	{"whsec_", base64, 24, 0, false},
	{"sk-", url, 20, 0, true}, // OpenAI, Anthropic and others
	{"gsk_ xai-", alnum, 40, 0, true},
	{"pplx- r8_", alnum, 30, 0, false},
	{"hf_ api_org_", alnum, 34, 40, false}, // Hugging Face: letters alone, so a longer name is none
	{"AIza", url, 35, 35, false},           // Google
	{"ya29. GOCSPX- 1//0", url, 20, 0, true},
	{"npm_", alnum, 36, 0, false},
	{"pypi-", url, 50, 0, false},
	{"rubygems_", hex, 48, 0, false},
	{"CLOJARS_", alnum, 60, 0, false},
	{"hvs. hvb. hvr.", url, 24, 0, false}, // Vault
	{"dop_v1_ doo_v1_ dor_v1_", hex, 64, 0, false},
	{"SG.", url.with(".="), 30, 0, true}, // SendGrid
	{"xkeysib- xsmtpsib-", hex.with("-"), 60, 0, false},
	{"key- pubkey-", hex, 32, 32, false}, // Mailgun
	{"SK", hex, 32, 32, false},           // Twilio
	{"shpat_ shpca_ shppa_ shpss_", alnum, 32, 0, false},
	{"sq0atp- sq0csp- sq0idp-", url, 22, 0, false},
	{"dapi", hex.with("-"), 32, 0, true}, // Databricks
	{"dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.", alnum.with("."), 40, 0, false},
	{"lin_api_ lin_oauth_ ntn_ tfp_", inWord.with("-"), 40, 0, false},
	{"secret_", alnum, 43, 43, true}, // Notion
	{"PMAK-", hex.with("-"), 59, 0, false},
	{"pul- shippo_live_ shippo_test_ sbp_ bkua_", hex, 40, 0, false},
	{"NRAK- NRII- NRJS-", alnum.with("-"), 19, 0, false},
	{"glsa_ figd_ dckr_pat_ dckr_oat_", url, 27, 0, false},
	{"glc_", base64, 32, 0, true},
	{"ATATT3 ATCTT3", base64, 60, 0, false},
	{"sl.", url, 130, 0, false}, // Dropbox
	{"AGE-SECRET-KEY-1", upper, 58, 0, false},
	{"sntrys_ sntryu_", base64, 60, 0, false},
	{"pnu_", alnum, 36, 0, false},
	{"pscale_tkn_ pscale_pw_ pscale_oauth_", url.with(".="), 32, 0, false},
	{"tskey-", url, 20, 0, false},
	{"dt0c01.", alnum.with("."), 80, 0, false},
	{"duffel_live_ duffel_test_", url.with("="), 40, 0, false},
	{"EZAK EZTK", alnum, 54, 0, false},
	{"sha256~", url, 43, 0, false}, // OpenShift
	{"fo1_ fm1a_ fm1r_ fm2_", base64, 40, 0, true},
	{"HRKU-AA", url, 40, 0, false},
	{"CCIPAT_", inWord, 40, 0, false},
	{"AKCp cmVmd", base64, 50, 0, false}, // Artifactory
	{"ops_ey", base64, 250, 0, false},    // 1Password
	{"p8e-", alnum, 32, 32, true},        // Adobe
	{"bedrock-api-key-", base64, 28, 0, false},
	{"4b1d", alnum, 38, 38, true}, // ClickHouse
	{"dnkey-", url.with("="), 79, 79, false},
	{"EAAM EAAC", alnum, 100, 0, true}, // Facebook
	{"EAAA", url, 22, 60, true},        // Square
	{"FLWPUBK_TEST- FLWSECK_TEST- FLWPUBK- FLWSECK-", alnum.with("-"), 12, 0, true},
	{"fio-u-", url.with("="), 64, 0, false},                                                 // Frame.io
	{"live_", url.with("="), 40, 40, true},                                                  // GoCardless
	{"eyJrIjoi", base64, 70, 0, false},                                                      // Grafana
	{"pat. sat.", url.with("."), 68, 68, true},                                              // Harness
	{"s-s4t2ud- s-s4t2af-", hex, 64, 64, false},                                             // 42
	{"API-", upper, 26, 26, true},                                                           // Octopus Deploy
	{"access-sandbox- access-development- access-production-", hex.with("-"), 36, 36, true}, // Plaid
	{"rdme_", alnum, 60, 0, true},
	{"tk-us-", url, 48, 48, true},                         // Scalingo
	{"sm_aat_ sm_pat_ sm_sat_", alnum, 16, 16, true},      // SettleMint
	{"sgp_local_ sgp_", hex.with("ABCDEF_"), 40, 0, true}, // Sourcegraph
	{"squ_ sqp_ sqa_", url.with("="), 40, 40, true},       // SonarQube
	{"s.", alnum, 24, 24, true},                           // Vault before 1.10
	{"AQVN", url, 35, 38, true},                           // Yandex
	{"ZXlK", base64, 60, 0, true},                         // a JSON Web Token in base64
}

// prefix is one of the prefixes of a kind.
type prefix struct {
	text string
	*kind
}

// beginning has the prefixes by their first character.
var beginning = func() (out [256][]prefix) {
	for i := range kinds {
		for _, p := range strings.Fields(kinds[i].prefixes) {
			out[p[0]] = append(out[p[0]], prefix{p, &kinds[i]})
		}
	}
	return out
}()

// shaped are secrets that are recognized by more than their beginning; each is looked for only in texts
// that have the mark.
var shaped = []struct {
	mark string
	re   *regexp.Regexp
	to   string
}{
	{"PRIVATE KEY", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`), Mask},
	// A JSON Web Token: two objects in base64, and a signature.
	{".ey", regexp.MustCompile(`\bey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_/-]{10,}\.[A-Za-z0-9_/+=-]*`), Mask},
	{".atlasv1.", regexp.MustCompile(`\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}`), Mask},
	// A bot of Telegram's.
	{":A", regexp.MustCompile(`\b[0-9]{5,16}:A[A-Za-z0-9_-]{33,}`), Mask},
	// Mailchimp, with the data centre at the end.
	{"-us", regexp.MustCompile(`\b[0-9a-f]{32}-us[0-9]{1,2}\b`), Mask},
	// A client secret of Azure's.
	{"Q~", regexp.MustCompile(`(?:\b|[~.])[A-Za-z0-9_~.-]{2,3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}`), Mask},
	// Airtable.
	{"pat", regexp.MustCompile(`\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b`), Mask},
	// A bot of Discord's.
	{".", regexp.MustCompile(`\b(?:M[TjzD]|[NO][DTjz])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`), Mask},
	// 1Password.
	{"A3-", regexp.MustCompile(`\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b`), Mask},
	// Authress.
	{".acc", regexp.MustCompile(`\b(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}`), Mask},
	// Cloudflare's origin keys.
	{"v1.0-", regexp.MustCompile(`\bv1\.0-[0-9a-f]{24}-[0-9a-f]{146}\b`), Mask},
	// Facebook: the number of a program, and its token.
	{"|", regexp.MustCompile(`\b[0-9]{15,16}\|[A-Za-z0-9_-]{27,40}`), Mask},
	{"_gitlab_session=", regexp.MustCompile(`(_gitlab_session=)[A-Za-z0-9]{32}`), "$1" + Mask},
	{"ico-", regexp.MustCompile(`(^|[\s=:,"'(/])ico-[A-Za-z0-9]{32}\b`), "$1" + Mask}, // Infracost
	// Mapbox.
	{"pk.", regexp.MustCompile(`\bpk\.[A-Za-z0-9]{60,}\.[A-Za-z0-9_-]{22}`), Mask},
	{"_mmk", regexp.MustCompile(`\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b`), Mask}, // MaxMind
	// Bundler's settings for the gems of Sidekiq.
	{"CONTRIBSYS__COM", regexp.MustCompile(`(CONTRIBSYS__COM["']?\s*[=:]+\s*["']?)[0-9a-fA-F]{8}:[0-9a-fA-F]{8}`), "$1" + Mask},
	{"t1.", regexp.MustCompile(`\bt1\.[A-Za-z0-9_-]+={0,2}\.[A-Za-z0-9_-]{86}={0,2}`), Mask}, // Yandex
	// Twitter.
	{"AAAAAAAAAAAAAAAAAAAAAA", regexp.MustCompile(`\bA{22}[A-Za-z0-9%]{80,}`), Mask},
	// Addresses that need no other password.
	{"hooks.slack.com/", regexp.MustCompile(`(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9_/-]+`), "$1" + Mask},
	{"/api/webhooks/", regexp.MustCompile(`(discord(?:app)?\.com/api/webhooks/[0-9]+/)[A-Za-z0-9_-]+`), "$1" + Mask},
	{".webhook.office.com/", regexp.MustCompile(`(\.webhook\.office\.com/webhookb2/)[A-Za-z0-9_/@-]+`), "$1" + Mask},
	{"sig=", regexp.MustCompile(`([?&]sig=)[A-Za-z0-9%+/=_-]{20,}`), "$1" + Mask}, // shared access in Azure
}

// tokens masks what looks like a token of a well-known service.
func tokens(s string) string {
	for i := range shaped {
		if r := &shaped[i]; strings.Contains(s, r.mark) {
			s = r.re.ReplaceAllString(s, r.to)
		}
	}
	var out strings.Builder
	done := 0
	for i := 0; i < len(s); i++ {
		if i > 0 && inWord.is[s[i-1]] {
			continue
		}
		for _, p := range beginning[s[i]] {
			if n := p.length(s[i:]); n > 0 {
				out.WriteString(s[done:i] + Mask)
				done = i + n
				i = done - 1
				break
			}
		}
	}
	if done == 0 {
		return s
	}
	return out.String() + s[done:]
}

// mixedBy is how far beyond the least length a token has had both letters and digits.
const mixedBy = 64

// length returns the length of the token at the beginning of a text, 0 if there is none of this kind.
// It looks at little more of the text than the token has: what looks at every beginning in a long text
// would take quadratic time otherwise.
func (p *prefix) length(s string) int {
	if !strings.HasPrefix(s, p.text) {
		return 0
	}
	n, letter, digit := len(p.text), false, false
	for ; n < len(s) && p.of.is[s[n]]; n++ {
		if p.mixed && !(digit && letter) && n-len(p.text) > p.least+mixedBy {
			return 0
		}
		if p.most > 0 && n-len(p.text) == p.most {
			return 0
		}
		digit = digit || s[n] >= '0' && s[n] <= '9'
		letter = letter || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z'
	}
	if n-len(p.text) < p.least || p.mixed && !(digit && letter) || p.most > 0 && n < len(s) && inWord.is[s[n]] {
		return 0
	}
	return n
}
